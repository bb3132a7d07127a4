//! Ctrl-C once and twice, and SIGTERM, in the middle of a study.

use std::process::{Child, Stdio};

use crate::support::{
    Scene, assert_ended_without_gaps, end_of, essence, pause, send, states, until,
};

/// Trial 7 waits for a file `go`, with a child that sleeps for long.
const STUDY: &str = r#"
seed = 8
[parameters]
x = { type = "real", low = -1, high = 1 }
y = { type = "real", low = -1, high = 1 }
[program]
command = ["sh", "program.sh", "{trial}", "{x}", "{y}"]
[budget]
trials = 20
"#;

const PROGRAM: &str = r#"
echo "$1" >> log
if [ "$1" = 7 ]; then sleep 600 & while [ ! -e go ]; do sleep 0.02; done; fi
awk -v x="$2" -v y="$3" 'BEGIN { printf "%.17g\n", x * x + x * y }'
"#;

fn scene() -> Scene {
    let scene = Scene::new(STUDY);
    scene.write("program.sh", PROGRAM);
    scene
}

/// A tune that has come to trial 7, whose words are in the file `errors`.
fn stuck(scene: &Scene) -> Child {
    let errors = std::fs::File::create(scene.path("errors")).unwrap();
    let mut tune = scene.boscage(&["tune", "study.toml", "--no-report"]);
    let mut child = tune.stdout(Stdio::null()).stderr(Stdio::from(errors)).spawn().unwrap();
    until("trial 7 is run", || {
        assert_eq!(child.try_wait().unwrap(), None, "{}", scene.read("errors"));
        scene.read("log").lines().any(|line| line == "7") && scene.alive() > 2
    });
    child
}

const FIRST: &str = "finishing the trials that are being run; press again to stop at once";

#[test]
fn the_first_interrupt_waits_and_the_study_goes_on_as_if_nothing_had_been() {
    let undisturbed = scene();
    undisturbed.write("go", "");
    undisturbed.tune(&[]);
    let expected = essence(&undisturbed.trials());
    for signal in ["-INT", "-TERM", "-HUP"] {
        let scene = scene();
        let mut tune = stuck(&scene);
        send(signal, &tune);
        until("it says so", || scene.read("errors").contains(FIRST));
        pause(100);
        assert_eq!(tune.try_wait().unwrap(), None, "{signal}: it waits for the program");
        scene.write("go", "");
        assert_eq!(end_of(&mut tune), Some(130), "{signal}");
        scene.assert_no_orphans(&[tune.id()]);
        let trials = scene.trials();
        assert_ended_without_gaps(&trials);
        assert_eq!(
            essence(&trials),
            expected[..8],
            "{signal}: trial 7 is stored, none was begun after it"
        );
        scene.tune(&[]);
        assert_eq!(essence(&scene.trials()), expected, "{signal}");
        assert_eq!(scene.read("log").lines().count(), 20, "{signal}: no trial was run twice");
        println!(
            "{signal} once: 8 trials stored, exit code 130, no orphans; equal to an undisturbed run in the end"
        );
    }
}

#[test]
fn the_second_interrupt_kills_and_the_same_command_takes_the_trial_up_again() {
    let undisturbed = scene();
    undisturbed.write("go", "");
    undisturbed.tune(&[]);
    for signal in ["-INT", "-TERM"] {
        let scene = scene();
        let mut tune = stuck(&scene);
        send(signal, &tune);
        until("it says so", || scene.read("errors").contains(FIRST));
        send(signal, &tune);
        assert_eq!(end_of(&mut tune), Some(130), "{signal}");
        scene.assert_no_orphans(&[tune.id()]);
        let trials = scene.trials();
        assert_eq!(trials.len(), 8, "{signal}");
        assert_eq!(states(&trials)["COMPLETE"], 7, "{signal}: a killed program has not failed");
        assert_eq!(trials[7]["state"], "RUNNING", "{signal}: it is taken up by whoever comes next");
        scene.write("go", "");
        let again = scene.run(&["tune", "study.toml", "--no-report"]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert!(again.stderr.contains("trial 7: begun again, attempt 2"), "{}", again.stderr);
        assert_eq!(essence(&scene.trials()), essence(&undisturbed.trials()), "{signal}");
        assert_eq!(scene.read("log").lines().count(), 21, "{signal}: only trial 7 was run twice");
        println!(
            "{signal} twice: killed at once, exit code 130, no orphans; trial 7 taken up again; equal in the end"
        );
    }
}
