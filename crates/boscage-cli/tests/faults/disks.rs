//! A disk that is full, and one that can only be read.

use std::process::Stdio;

use crate::support::{
    Ran, Scene, assert_ended_without_gaps, bits, end_of, essence, mounted, pause, run, states,
    until,
};

/// The program fills the disk in trial 5 and all later ones, as long as there is a file `fill`; if there is a file `two`, not
/// before trial 6 has begun too.
const STUDY: &str = r#"
seed = 5
[parameters]
x = { type = "real", low = 0, high = 1 }
y = { type = "real", low = 0, high = 1 }
[program]
command = ["sh", "-c", "if [ {trial} -ge 5 ] && [ -e ../fill ]; then touch ../begun-{trial}; while [ -e ../two ] && [ ! -e ../begun-6 ]; do sleep 0.01; done; cat /dev/zero > filler 2>/dev/null; fi; echo $(({trial} * 3)).5", "program", "{x}", "{y}"]
[budget]
trials = 12
"#;

/// A command in the mounted folder with little patience.
fn impatient(scene: &Scene, arguments: &[&str]) -> Ran {
    run(scene.boscage(arguments).current_dir(scene.path("disk")).env("BOSCAGE_PATIENCE", "1"))
}

#[test]
fn a_full_disk_costs_no_result_and_the_same_command_goes_on() {
    let scene = Scene::empty();
    let Some(disk) = mounted("size=6m", &scene.path("disk")) else { return };
    for jobs in ["1", "2"] {
        let file = format!("study{jobs}.toml");
        scene.write(&format!("disk/{file}"), STUDY);
        scene.write("fill", "");
        std::fs::remove_file(scene.path("begun-6")).ok();
        if jobs == "2" {
            scene.write("two", "");
        }
        let tune = ["tune", &file, "--no-report", "--quiet", "--jobs", jobs];
        let full = impatient(&scene, &tune);
        assert_eq!(full.code, Some(2), "{}", full.stderr);
        assert!(full.stderr.contains("the disk is full; make room and run the same command again"));
        // Each trial that has a value which could not be stored is named with it.
        let lost: Vec<&str> =
            full.stderr.lines().filter(|line| line.contains("could not be stored")).collect();
        assert_eq!(lost.len().to_string(), jobs, "{}", full.stderr);
        for line in &lost {
            let number: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            let value = format!("{}.5", number * 3);
            let told = format!(
                "trial {number} could not be stored; its value is {value}: `boscage tell STUDY {number} {value}` stores it later"
            );
            assert_eq!(*line, told);
        }
        // A full disk can still be read.
        let study = format!("disk/{file}");
        let trials = scene.trials_of(&study);
        let complete: Vec<_> = trials.iter().filter(|trial| trial["state"] == "COMPLETE").collect();
        assert!(complete.len() >= 4, "{:?}", states(&trials));
        for trial in &complete {
            let expected = trial["number"].as_f64().unwrap() * 3.0 + 0.5;
            assert_eq!(bits(trial), Some(expected.to_bits()));
        }
        // Every trial that is left open is in the message.
        let running = trials.iter().filter(|trial| trial["state"] == "RUNNING");
        for trial in running.clone() {
            let begin = format!("trial {} could", trial["number"]);
            assert!(lost.iter().any(|line| line.starts_with(&begin)), "{trial}: {lost:?}");
        }
        assert_eq!(running.count(), lost.len());

        // The advice of the message works as soon as there is room.
        std::fs::remove_file(scene.path("disk/filler")).unwrap();
        std::fs::remove_file(scene.path("fill")).unwrap();
        let number = lost[0].split(' ').nth(1).unwrap().to_string();
        let value = format!("{}.5", number.parse::<u64>().unwrap() * 3);
        let told = impatient(&scene, &["tell", &file, &number, &value]);
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
        let again = impatient(&scene, &tune);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        let trials = scene.trials_of(&study);
        assert_ended_without_gaps(&trials);
        assert_eq!(states(&trials)["COMPLETE"], 12);
        for trial in &trials {
            assert_eq!(trial["value"].as_f64(), trial["number"].as_f64().map(|n| n * 3.0 + 0.5));
        }
        scene.assert_whole(&format!("disk/study{jobs}.db"));
        if jobs == "1" {
            let undisturbed = Scene::new(STUDY);
            undisturbed.tune(&[]);
            assert_eq!(essence(&trials), essence(&undisturbed.trials()));
        }
        println!(
            "{jobs} jobs, disk full after {} trials: {} values in the message, 1 of them told by hand, 12 trials in the end",
            complete.len(),
            lost.len()
        );
        std::fs::remove_file(scene.path(&format!("disk/study{jobs}.db"))).unwrap();
    }
    scene.assert_no_orphans(&[]);
    drop(disk);
}

#[test]
fn a_disk_that_has_room_again_in_time_interrupts_nothing() {
    let scene = Scene::empty();
    let Some(disk) = mounted("size=6m", &scene.path("disk")) else { return };
    scene.write("disk/study.toml", STUDY);
    scene.write("fill", "");
    let errors = std::fs::File::create(scene.path("errors")).unwrap();
    let mut command = scene.boscage(&["tune", "study.toml", "--no-report"]);
    command.current_dir(&disk.path).stdout(Stdio::null()).stderr(Stdio::from(errors));
    let mut tune = command.spawn().unwrap();
    until("it says that the disk is full", || scene.read("errors").contains("trying again"));
    pause(500);
    assert_eq!(tune.try_wait().unwrap(), None, "{}", scene.read("errors"));
    std::fs::remove_file(scene.path("fill")).unwrap();
    std::fs::remove_file(scene.path("disk/filler")).unwrap();
    assert_eq!(end_of(&mut tune), Some(0), "{}", scene.read("errors"));
    let trials = scene.trials_of("disk/study.toml");
    assert_ended_without_gaps(&trials);
    assert_eq!(states(&trials)["COMPLETE"], 12);
    println!("disk full for a while: 12 trials, without a second command");
}

#[test]
fn a_store_that_can_only_be_read_is_read_and_not_written() {
    let scene = Scene::empty();
    let Some(disk) = mounted("size=4m", &scene.path("disk")) else { return };
    scene.write("disk/study.toml", STUDY);
    let made = impatient(&scene, &["tune", "study.toml", "--quiet", "--no-report"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    // As a killed worker leaves it: the last trials are in the log beside the store.
    let file = rusqlite::Connection::open(scene.path("disk/study.db")).unwrap();
    file.execute_batch("UPDATE trials SET state = 'PRUNED' WHERE number = 3").unwrap();
    std::fs::create_dir(scene.path("disk/left")).unwrap();
    for ending in ["", "-wal", "-shm"] {
        let name = format!("study.db{ending}");
        std::fs::copy(scene.path("disk").join(&name), scene.path("disk/left").join(&name)).unwrap();
    }
    std::fs::create_dir(scene.path("disk/torn")).unwrap();
    for ending in ["", "-wal"] {
        let name = format!("study.db{ending}");
        std::fs::copy(scene.path("disk").join(&name), scene.path("disk/torn").join(&name)).unwrap();
    }
    drop(file);
    disk.remount("ro");

    let mut read = 0;
    for store in ["study.toml", "study.db", "left/study.db"] {
        for arguments in [
            &["show", store][..],
            &["show", store, "--json"],
            &["export", store, "--out", "-"],
            &["export", store, "--out", "../trials.parquet"],
            &["report", store, "--out", "../report.html"],
            &["studies"],
        ] {
            let ran = impatient(&scene, arguments);
            assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
            read += 1;
        }
        let exported = impatient(&scene, &["export", store, "--format", "jsonl", "--out", "-"]);
        assert_eq!(exported.stdout.lines().count(), 12, "{store}");
        assert_eq!(exported.stdout.matches("\"PRUNED\"").count(), 1, "{store}");
    }
    assert!(scene.read("report.html").ends_with("</html>\n"));

    let mut refused = Vec::new();
    for arguments in [
        &["tune", "study.toml", "--trials", "20"][..],
        &["tune", "study.toml", "--storage", "new.db"],
        &["enqueue", "study.toml", "x=0.5"],
        &["ask", "study.toml", "--trials", "20"],
        &["tell", "study.toml", "1", "3.0"],
        &["export", "study.toml"],
        &["report", "study.toml"],
        &["show", "torn/study.db"],
    ] {
        let ran = impatient(&scene, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        let here = scene.path("disk").display().to_string();
        let text = ran.stderr.replace(&here, "DISK");
        // A name that is different each time.
        let random = text.find(".tmp").map(|at| text[at..at + 10].to_string());
        let text = random.map_or(text.clone(), |random| text.replace(&random, ".tmpXXXXXX"));
        refused.push(format!("{}\n{}", arguments.join(" "), text.trim_end()));
    }
    insta::assert_snapshot!(refused.join("\n\n"), @r#"
    tune study.toml --trials 20
    error: study.db: it cannot be written; check the permissions of the file and its folder; `boscage show` and `export` need only to read it

    tune study.toml --storage new.db
    error: new.db: it cannot be made; check the permissions of the folder (unable to open database file: new.db)

    enqueue study.toml x=0.5
    error: study.db: it cannot be written; check the permissions of the file and its folder; `boscage show` and `export` need only to read it

    ask study.toml --trials 20
    error: study.db: it cannot be written; check the permissions of the file and its folder; `boscage show` and `export` need only to read it

    tell study.toml 1 3.0
    error: study.db: it cannot be written; check the permissions of the file and its folder; `boscage show` and `export` need only to read it

    export study.toml
    error: study.csv: writing failed: Read-only file system (os error 30)

    report study.toml
    error: the report cannot be written to study.html; name another file with --out or --report
      caused by: Read-only file system (os error 30) at path "DISK/./.tmpXXXXXX"

    show torn/study.db
    error: the store cannot be read
      caused by: torn/study.db: its last changes are in torn/study.db-wal, which cannot be read in a folder that cannot be written to; copy both files to another folder
    "#);
    println!("read-only disk: {read} commands have read, {} were refused", refused.len());
}
