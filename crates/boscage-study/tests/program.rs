//! Programs that evaluate points, with real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use boscage::Value;
use boscage_study::{Context, Error, Program, ResultRule};
use tempfile::TempDir;

fn program(toml: &str) -> Program {
    toml::from_str(toml).unwrap_or_else(|e| panic!("{e}"))
}

/// A program that is a shell script whose first argument is the value of `x`.
fn script(text: &str) -> Program {
    let command = ["/bin/sh", "-c", &text.replace('{', "{{").replace('}', "}}"), "script", "{x}"];
    Program { command: command.map(Into::into).to_vec(), ..Program::default() }
}

fn run_in(program: &Program, x: i64, folder: &Path) -> Result<f64, Error> {
    program.validate(&["x"])?;
    program.evaluate(&[("x", Some(Value::Integer(x)))], folder, Context::default())
}

fn run(program: &Program, x: i64) -> Result<f64, Error> {
    run_in(program, x, &std::env::temp_dir())
}

fn failure(program: &Program) -> String {
    match run(program, 1).unwrap_err() {
        Error::Evaluation { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_result_is_read() {
    assert_eq!(run(&script("echo step 1; echo cost $(($1 * 2)); echo 5 >&2"), -21).unwrap(), -42.0);

    let mut regex = script("echo cost: $1; echo time: 9");
    regex.result = ResultRule::Regex("cost: (.*)".to_string());
    assert_eq!(run(&regex, -7).unwrap(), -7.0);

    let mut json = script(r#"echo start; printf '{"test": {"loss": [%s]}}\n' $1"#);
    json.result = ResultRule::Json("test.loss.0".to_string());
    assert_eq!(run(&json, 13).unwrap(), 13.0);

    let mut code = script("exit $1");
    code.result = ResultRule::ExitCode;
    assert_eq!(run(&code, 3).unwrap(), 3.0);
    assert_eq!(run(&code, 0).unwrap(), 0.0);
}

#[test]
fn a_result_may_come_from_a_file() {
    let folder = TempDir::new().unwrap();
    let mut fixed = script("echo 99; if [ $1 -gt 0 ]; then echo $1 > result.txt; fi");
    fixed.result_file = Some("result.txt".to_string());
    assert_eq!(run_in(&fixed, 5, folder.path()).unwrap(), 5.0);
    assert_eq!(run_in(&fixed, 5, folder.path()).unwrap(), 5.0);
    // The result of an earlier run is none, but stays where it is.
    let stale = run_in(&fixed, -5, folder.path()).unwrap_err().to_string();
    assert!(stale.contains("result.txt is from before"), "{stale}");
    assert_eq!(fs::read_to_string(folder.path().join("result.txt")).unwrap(), "5\n");
    assert_eq!(run_in(&fixed, 6, folder.path()).unwrap(), 6.0);

    fixed.result_file = Some("nothing.txt".to_string());
    let missing = run_in(&fixed, 1, folder.path()).unwrap_err().to_string();
    assert!(missing.contains("nothing.txt does not exist"), "{missing}");

    let mut fresh = script(r#"test ! -e "$2" && echo "{\"a\": $1}" > "$2"; echo "$2" > path"#);
    fresh.command.push("{result_file}".into());
    fresh.result = ResultRule::Json("a".to_string());
    assert_eq!(run_in(&fresh, 8, folder.path()).unwrap(), 8.0);
    let first = fs::read_to_string(folder.path().join("path")).unwrap();
    assert_eq!(run_in(&fresh, 9, folder.path()).unwrap(), 9.0);
    let second = fs::read_to_string(folder.path().join("path")).unwrap();
    assert_ne!(first, second);
    assert!(
        !Path::new(first.trim()).exists() && !Path::new(second.trim()).exists(),
        "files are left behind"
    );

    fixed.result_file = Some("of-{trial}-{seed}.txt".to_string());
    fixed.command[2] = "echo $1 > \"$2\"".into();
    fixed.command.push("{result_file}".into());
    let context = Context { trial: Some(4), seed: Some(2), instance: None };
    assert_eq!(
        fixed.evaluate(&[("x", Some(Value::Integer(3)))], folder.path(), context).unwrap(),
        3.0
    );
    assert_eq!(fs::read_to_string(folder.path().join("of-4-2.txt")).unwrap(), "3\n");
}

#[test]
fn values_arrive_as_they_are() {
    let nasty = [
        "two words",
        "it's \"quoted\"",
        "$(touch x); rm -rf .",
        "`id` $HOME * ~ \\n",
        "line\nbreak\n",
        "-rf",
        "",
        "{x} }} {",
        "müßig 🌳",
        "a\tb",
    ];
    let folder = TempDir::new().unwrap();
    let program = program(
        r#"
        command = ["/bin/sh", "-c", 'printf "%s" "$1" > argument; printf "%s" "$VALUE" > variable; printf "%s" "$BOSCAGE_PARAM_X" > passed; cp "$2" file.json; echo $#', "script", "a{x}b", "{parameters_file}"]
        environment = { VALUE = "a{x}b" }
        parameters_in_environment = true
        "#,
    );
    program.validate(&["x"]).unwrap();
    for choice in nasty {
        let values = [("x", Some(Value::Choice(choice.to_string())))];
        assert_eq!(program.evaluate(&values, folder.path(), Context::default()).unwrap(), 2.0);
        let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(file("argument"), format!("a{choice}b"));
        assert_eq!(file("variable"), format!("a{choice}b"));
        assert_eq!(file("passed"), choice);
        let json: serde_json::Value = serde_json::from_str(&file("file.json")).unwrap();
        assert_eq!(json, serde_json::json!({"x": choice}));
    }
    assert!(!folder.path().join("x").exists());
    let zero = [("x", Some(Value::Choice("a\0b".to_string())))];
    let refused =
        program.evaluate(&zero, folder.path(), Context::default()).unwrap_err().to_string();
    assert!(refused.contains("could not be started"), "{refused}");
}

#[test]
fn numbers_can_be_read_back_exactly() {
    let reals = [0.1 + 0.2, 1.0, -1e-300, 5e-324, f64::MAX, -0.0, 1e16, 123_456_789.123_456_78];
    let folder = TempDir::new().unwrap();
    for format in ["json", "toml"] {
        let program = program(&format!(
            r#"
            command = ["/bin/sh", "-c", 'echo "$1 $2 $3" > values; cp "$4" file; echo "$1"', "script", "{{real}}", "{{whole}}", "{{flag}}", "{{parameters_file}}"]
            parameters_file = "{format}"
            "#
        ));
        program.validate(&["real", "whole", "flag"]).unwrap();
        for real in reals {
            let whole = i64::MIN / 1024;
            let values = [
                ("real", Some(Value::Real(real))),
                ("whole", Some(Value::Integer(whole))),
                ("flag", Some(Value::Boolean(true))),
            ];
            let result = program.evaluate(&values, folder.path(), Context::default()).unwrap();
            assert_eq!(result.to_bits(), real.to_bits(), "{real}");
            let line = fs::read_to_string(folder.path().join("values")).unwrap();
            assert!(line.ends_with(&format!(" {whole} true\n")), "{line}");
            let file = fs::read_to_string(folder.path().join("file")).unwrap();
            let (written, others) = if format == "json" {
                let table: serde_json::Value = serde_json::from_str(&file).unwrap();
                (table["real"].as_f64(), (table["whole"].as_i64(), table["flag"].as_bool()))
            } else {
                let table: toml::Table = file.parse().unwrap();
                (table["real"].as_float(), (table["whole"].as_integer(), table["flag"].as_bool()))
            };
            assert_eq!(written.map(f64::to_bits), Some(real.to_bits()), "{file}");
            assert_eq!(others, (Some(whole), Some(true)));
        }
    }
}

#[test]
fn programs_and_folders_are_found_from_the_folder_of_the_study() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    // A link, because a program that was just written may still be open for writing in another thread's child.
    symlink("/bin/sh", folder.path().join("bin/solver")).unwrap();
    let mut relative = script("pwd > here; echo $1");
    relative.command[0] = "bin/solver".into();
    assert_eq!(run_in(&relative, 4, folder.path()).unwrap(), 4.0);
    assert!(folder.path().join("here").exists());
    relative.command[0] = "./bin/solver".into();
    relative.working_folder = Some("runs/{trial}".to_string());
    let context = Context { trial: Some(7), ..Context::default() };
    assert_eq!(
        relative.evaluate(&[("x", Some(Value::Integer(4)))], folder.path(), context).unwrap(),
        4.0
    );
    assert!(folder.path().join("runs/7/here").exists());
    let no_trial = run_in(&relative, 4, folder.path()).unwrap_err().to_string();
    assert!(no_trial.contains("{trial}"), "{no_trial}");
    relative.command[0] = "sh".into();
    relative.working_folder = None;
    assert_eq!(run_in(&relative, 4, folder.path()).unwrap(), 4.0);
    assert_eq!(run_in(&script("echo $1"), 4, Path::new("")).unwrap(), 4.0);
}

#[test]
fn failures_say_what_happened() {
    let code = failure(&script("echo some output; echo first >&2; echo the reason >&2; exit 3"));
    for part in ["/bin/sh", "exit code 3", "first\n", "the reason"] {
        assert!(code.contains(part), "{code}");
    }
    let signal = failure(&script("echo going down >&2; kill -SEGV $$"));
    assert!(signal.contains("signal 11 (SEGV)") && signal.contains("going down"), "{signal}");
    let mut as_code = script("kill -KILL $$");
    as_code.result = ResultRule::ExitCode;
    assert!(failure(&as_code).contains("signal 9"));
    let silent = failure(&script("exit 0"));
    assert!(silent.contains("no number") && silent.contains("its output is empty"), "{silent}");
    let words = failure(&script("echo nothing to see"));
    assert!(words.contains("no number") && words.contains("nothing to see"), "{words}");
    for (text, shown) in [("nan", "NaN"), ("-inf", "-inf"), ("1e999", "inf")] {
        let reason = failure(&script(&format!("echo 5 {text}")));
        assert!(reason.contains(shown) && reason.contains("finite"), "{reason}");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_explained() {
    let folder = TempDir::new().unwrap();
    let start = |command: &str| {
        let mut program = script("");
        program.command[0] = command.into();
        run_in(&program, 1, folder.path()).unwrap_err().to_string()
    };
    let unknown = start("no-such-program");
    assert!(unknown.contains("PATH") && unknown.contains("./no-such-program"), "{unknown}");
    let missing = start("./no-such-program");
    assert!(missing.contains("there is no file"), "{missing}");
    fs::write(folder.path().join("data"), "1").unwrap();
    fs::set_permissions(folder.path().join("data"), fs::Permissions::from_mode(0o644)).unwrap();
    let plain = start("./data");
    assert!(plain.contains("chmod +x"), "{plain}");
    let nowhere =
        run_in(&script("echo 1"), 1, &folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(nowhere.contains("there is no folder"), "{nowhere}");
    fs::write(folder.path().join("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(folder.path().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let interpreter = start("./script");
    // Another thread's child may hold the file open for a moment, and then the system says so.
    assert!(interpreter.contains("interpreter") || interpreter.contains("busy"), "{interpreter}");
}

#[test]
fn large_outputs_on_both_pipes_neither_block_nor_hide_the_result() {
    let chatty = script(
        "head -c 30000000 /dev/zero | tr '\\0' 'a' >&2; head -c 30000000 /dev/zero | tr '\\0' 'b'; echo; \
         head -c 3000000 /dev/zero | tr '\\0' 'c' >&2; echo $1",
    );
    assert_eq!(run(&chatty, 12).unwrap(), 12.0);
    let mut cut = script("echo cost: 1; head -c 30000000 /dev/zero | tr '\\0' 'b'; echo");
    cut.result = ResultRule::Regex("cost: (.*)".to_string());
    let reason = failure(&cut);
    assert!(reason.contains("were kept") && reason.len() < 5000, "{reason}");
}

/// Whether a process is there. One that only has its number left, because nobody has taken note of its end, is not.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for the end of a process that was killed.
fn wait_for_end(pid: &str) {
    for _ in 0..6000 {
        if !is_running(pid) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("process {pid} is still running");
}

/// Runs a script that starts a child and a grandchild that would last for ever, and then signs that it is ready. On a slow
/// machine the time is over before that: then it gets more.
fn run_family(text: &str, timeout_seconds: Option<f64>) -> (TempDir, Result<f64, Error>) {
    let family = "sh -c 'sleep 100000 & echo $! > grandchild; wait' & echo $! > child; \
                  while [ ! -s grandchild ]; do sleep 0.01; done; echo 1 > ready; ";
    let mut program = script(&format!("{family}{text}"));
    for longer in [1.0, 8.0, 64.0] {
        let folder = TempDir::new().unwrap();
        program.timeout_seconds = timeout_seconds.map(|seconds| seconds * longer);
        let result = run_in(&program, 1, folder.path());
        if !folder.path().join("ready").exists() {
            continue;
        }
        for name in ["child", "grandchild"] {
            wait_for_end(&fs::read_to_string(folder.path().join(name)).unwrap());
        }
        return (folder, result);
    }
    panic!("the script never got ready");
}

#[test]
fn a_time_out_ends_the_whole_family() {
    let error = run_family("echo waiting >&2; wait", Some(1.0)).1.unwrap_err();
    assert!(matches!(error, Error::LimitReached { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("took longer than") && text.contains("waiting"), "{text}");
}

#[test]
fn a_program_that_ignores_the_request_to_end_is_killed() {
    let deaf = "echo deaf >&2; while :; do sleep 0.1; done";
    let error = run_family(&format!("trap '' TERM; {deaf}"), Some(1.0)).1.unwrap_err();
    assert!(matches!(error, Error::LimitReached { .. }), "{error:?}");
}

#[test]
fn a_program_may_clean_up_when_it_is_asked_to_end() {
    // It ends with exit code 0 and a number, but late.
    let tidy = "trap 'echo done > cleaned; exit 0' TERM; echo 3; while :; do sleep 0.01; done";
    let (folder, result) = run_family(tidy, Some(2.0));
    assert!(matches!(result, Err(Error::LimitReached { .. })), "{result:?}");
    assert_eq!(fs::read_to_string(folder.path().join("cleaned")).unwrap(), "done\n");
}

#[test]
fn what_a_program_leaves_running_is_killed() {
    assert_eq!(run_family("echo 4", None).1.unwrap(), 4.0);
    let error = run_family("exit 2", None).1.unwrap_err().to_string();
    assert!(error.contains("exit code 2"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_escapes_with_the_pipes_holds_nothing_up() {
    let folder = TempDir::new().unwrap();
    let escape = script(
        "setsid sh -c 'echo $$ > escaped; exec sleep 100000' & while [ ! -s escaped ]; do sleep 0.01; done; echo 6",
    );
    assert_eq!(run_in(&escape, 1, folder.path()).unwrap(), 6.0);
    let pid = fs::read_to_string(folder.path().join("escaped")).unwrap();
    assert!(is_running(&pid));
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn cpu_time_is_limited_for_the_whole_family() {
    let mut busy = script("(while :; do :; done) & (while :; do :; done) & wait");
    busy.cpu_seconds = Some(0.5);
    let error = run(&busy, 1).unwrap_err();
    assert!(
        matches!(error, Error::LimitReached { .. }) && error.to_string().contains("CPU"),
        "{error}"
    );
    let mut idle = script("sleep 0.5; echo 1");
    idle.cpu_seconds = Some(0.4);
    assert_eq!(run(&idle, 1).unwrap(), 1.0);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_limited_for_the_whole_family() {
    // Each of six children holds somewhat more than 10 MB, and never more than 25.
    let hold = "(x=$(head -c 10000000 /dev/zero | tr '\\0' a); sleep 100000) &";
    let mut six = script(&format!("{} wait", [hold; 6].join(" ")));
    six.memory_bytes = Some(300_000_000);
    six.timeout_seconds = Some(2.0);
    let enough = run(&six, 1).unwrap_err().to_string();
    assert!(enough.contains("longer than"), "{enough}");
    // Little more than one of them: systems that take idle pages away must not make a difference.
    six.memory_bytes = Some(30_000_000);
    six.timeout_seconds = Some(600.0);
    let error = run(&six, 1).unwrap_err();
    assert!(
        matches!(error, Error::LimitReached { .. }) && error.to_string().contains("memory"),
        "{error}"
    );
}

#[test]
fn a_program_that_makes_no_sense_is_refused() {
    let names = ["x", "learning-rate"];
    let both = r#"command = ["p", "{x}", "{learning-rate}"]"#;
    for (toml, expected) in [
        ("command = []".to_string(), "the command is empty"),
        (r#"command = ["", "{x}", "{learning-rate}"]"#.to_string(), "the command is empty"),
        (r#"command = ["p", "{y}"]"#.to_string(), "the parameters are x, learning-rate"),
        (r#"command = ["p", "{x}"]"#.to_string(), "never gets learning-rate"),
        (r#"command = ["p", "--x={x", "{learning-rate}"]"#.to_string(), "element 2 of the command"),
        (format!("{both}\nenvironment = {{ A = \"}}\" }}"), "the environment variable A"),
        (format!("{both}\nenvironment = {{ \"A=B\" = \"1\" }}"), "\"A=B\" cannot be the name"),
        (format!("{both}\nresult = {{ regex = \"(\" }}"), "the regular expression \"(\""),
        (format!("{both}\nresult = {{ regex = \"cost\" }}"), "has no group"),
        (format!("{both}\nresult = {{ json = \"a..b\" }}"), "has an empty part"),
        (
            format!("{both}\nresult = \"exit-code\"\nresult_file = \"r\""),
            "no use for a result file",
        ),
        (format!("{both}\nresult_file = \"{{x}}\""), "result_file: {x} cannot be used here"),
        (format!("{both}\nworking_folder = \"{{x}}\""), "working_folder: {x} cannot be used here"),
        (format!("{both}\ntimeout_seconds = 0.0"), "timeout_seconds is 0"),
        (format!("{both}\ntimeout_seconds = -1"), "timeout_seconds is -1"),
        (format!("{both}\ntimeout_seconds = nan"), "timeout_seconds is NaN"),
        (format!("{both}\ncpu_seconds = inf"), "cpu_seconds is inf"),
        (format!("{both}\nmemory_bytes = 0"), "memory_bytes is 0"),
        (
            format!(
                "{both}\nparameters_in_environment = true\nenvironment = {{ BOSCAGE_PARAM_X = \"1\" }}"
            ),
            "both parameters_in_environment and environment",
        ),
    ] {
        let error = program(&toml).validate(&names).unwrap_err();
        assert!(matches!(error, Error::InvalidProgram { .. }), "{toml}: {error:?}");
        assert!(error.to_string().contains(expected), "{toml}: {error}");
    }
    for toml in [
        both.to_string(),
        r#"command = ["p", "{x}{learning-rate}", "{trial}", "{seed}", "{{"]"#.to_string(),
        r#"command = ["p", "{parameters_file}"]"#.to_string(),
        "command = [\"p\"]\nparameters_in_environment = true".to_string(),
        "command = [\"p\", \"{x}\"]\nenvironment = { RATE = \"{learning-rate}\" }".to_string(),
    ] {
        program(&toml).validate(&names).unwrap_or_else(|e| panic!("{toml}: {e}"));
    }
    let unknown =
        toml::from_str::<Program>("command = [\"p\"]\ntimeout = 3").unwrap_err().to_string();
    assert!(unknown.contains("timeout_seconds"), "{unknown}");
}

#[test]
fn names_that_could_mean_two_things_are_refused() {
    let ambiguous =
        program(r#"command = ["p", "{seed}"]"#).validate(&["seed"]).unwrap_err().to_string();
    assert!(ambiguous.contains("rename the parameter"), "{ambiguous}");
    program("command = [\"p\"]\nparameters_in_environment = true").validate(&["seed"]).unwrap();
    let clash = program("command = [\"p\"]\nparameters_in_environment = true")
        .validate(&["a-b", "A_B"])
        .unwrap_err();
    assert!(clash.to_string().contains("BOSCAGE_PARAM_A_B"), "{clash}");
}

#[test]
fn settings_survive_a_round_trip() {
    let whole = program(
        r#"
        command = ["p", "{x}", "{parameters_file}"]
        environment = { A = "1" }
        parameters_in_environment = true
        parameters_file = "toml"
        result = { json = "a.b" }
        result_file = "r.json"
        working_folder = "w"
        timeout_seconds = 1.5
        cpu_seconds = 2
        memory_bytes = 1000000
        "#,
    );
    for program in [whole, program(r#"command = ["p"]"#)] {
        assert_eq!(
            toml::from_str::<Program>(&toml::to_string(&program).unwrap()).unwrap(),
            program
        );
        let json = serde_json::to_string(&program).unwrap();
        assert_eq!(serde_json::from_str::<Program>(&json).unwrap(), program);
    }
}
