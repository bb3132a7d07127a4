//! Workers killed with SIGKILL at any moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::support::{
    Dice, Scene, assert_ended_without_gaps, bits, end_of, essence, json_lines, kill, states, until,
};

const KILLS: usize = 200;

/// The program notes each evaluation, and leaves a child behind that sleeps for long.
const STUDY: &str = r#"
seed = 3
[parameters]
x = { type = "real", low = -1, high = 1 }
y = { type = "real", low = -1, high = 1 }
k = { type = "integer", low = 0, high = 9, default = 7 }
[program]
command = ["sh", "program.sh", "{trial}", "{x}", "{y}", "{k}"]
[workers]
lost_retries = 1000
lease_seconds = 600
"#;

/// The note is one write, so that it is there as a whole or not at all.
const PROGRAM: &str = r#"
sleep 600 &
value=$(awk -v x="$2" -v y="$3" -v k="$4" 'BEGIN { printf "%.17g", x*x + x*y + (k - 4)*(k - 4)*0.1 }')
echo "$1 $2 $3 $4 $value" >> log
echo "$value"
"#;

fn scene() -> Scene {
    let scene = Scene::new(STUDY);
    scene.write("program.sh", PROGRAM);
    scene
}

/// A running tune whose events go to a file.
struct Running {
    child: Child,
    events: String,
}

fn start(scene: &Scene, number: usize, arguments: &[&str]) -> Running {
    let events = format!("events-{number}");
    let file = File::create(scene.path(&events)).unwrap();
    let errors = File::options().create(true).append(true).open(scene.path("errors")).unwrap();
    let child = scene
        .boscage(&[&["tune", "study.toml", "--no-report", "--json"], arguments].concat())
        .stdout(Stdio::from(file))
        .stderr(Stdio::from(errors))
        .spawn()
        .unwrap();
    Running { child, events }
}

/// What the program noted: the parameters and the value of each trial. A trial that was begun again has the same.
fn noted(scene: &Scene) -> (BTreeMap<u64, Vec<f64>>, usize) {
    let mut notes = BTreeMap::new();
    let log = scene.read("log");
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 5, "{line:?}");
        let number: u64 = words[0].parse().unwrap();
        let values: Vec<f64> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        let before = notes.insert(number, values.clone());
        assert!(before.is_none_or(|before| before == values), "trial {number} was changed");
    }
    (notes, log.lines().count())
}

/// Compares the store with what the program has noted and with what boscage has said. Gives the number of told results.
fn assert_nothing_lost(scene: &Scene, trials: &[Json], events: &[String]) -> usize {
    assert_ended_without_gaps(trials);
    let (notes, _) = noted(scene);
    assert_eq!(trials.len(), notes.len());
    for trial in trials {
        assert_eq!(trial["state"], "COMPLETE", "{trial}");
        let note = &notes[&trial["number"].as_u64().unwrap()];
        for (name, noted) in ["x", "y", "k"].into_iter().zip(note) {
            assert_eq!(trial["params"][name].as_f64().map(f64::to_bits), Some(noted.to_bits()));
        }
        assert_eq!(bits(trial), Some(note[3].to_bits()), "{trial}");
    }
    let mut told = 0;
    for file in events {
        for event in json_lines(&scene.read(file)) {
            if event["event"] == "ended" {
                told += 1;
                let trial = &trials[event["trial"].as_u64().unwrap() as usize];
                assert_eq!(bits(trial), bits(&event), "{trial} was told as {event}");
            }
        }
    }
    let errors = scene.read("errors");
    assert!(!errors.contains("error") && !errors.contains("panicked"), "{errors}");
    told
}

#[test]
fn one_worker_killed_at_any_moment_finds_what_an_undisturbed_one_finds() {
    let scene = scene();
    let mut boscages = Vec::new();
    let mut events = Vec::new();
    // How long starting and a few trials take here.
    let begin = Instant::now();
    let mut first = start(&scene, KILLS, &["--trials", "4"]);
    assert_eq!(end_of(&mut first.child), Some(0));
    let longest = begin.elapsed().max(Duration::from_millis(5));
    boscages.push(first.child.id());
    events.push(first.events);

    let mut dice = Dice::new(1);
    let mut progress = 0;
    for number in 0..KILLS {
        let mut running = start(&scene, number, &["--trials", "100000"]);
        std::thread::sleep(longest.mul_f64(dice.share()));
        kill(&mut running.child);
        boscages.push(running.child.id());
        progress += usize::from(scene.read(&running.events).contains("\"ended\""));
        events.push(running.events);
    }
    let begun = scene.trials().len();
    let wanted = (begun + 5).max(60).to_string();
    let mut last = start(&scene, KILLS + 1, &["--trials", &wanted]);
    assert_eq!(end_of(&mut last.child), Some(0), "{}", scene.read("errors"));
    boscages.push(last.child.id());
    events.push(last.events);
    scene.assert_no_orphans(&boscages);

    let trials = scene.trials();
    assert_eq!(trials.len().to_string(), wanted);
    let told = assert_nothing_lost(&scene, &trials, &events);
    scene.assert_whole("study.db");
    let undisturbed = self::scene();
    undisturbed.tune(&["--trials", &wanted]);
    assert_eq!(essence(&trials), essence(&undisturbed.trials()));
    println!(
        "one worker: {KILLS} kills, {progress} after a trial had ended; {begun} trials by then, {wanted} in the end; \
         {} evaluations, {told} results told, all there; equal to an undisturbed run bit for bit; no orphans",
        noted(&scene).1
    );
    assert!(progress > 0 && progress < KILLS, "kills hit starts and trials: {progress}");
}

#[test]
fn four_workers_killed_at_any_moment_lose_nothing() {
    let scene = scene();
    let mut boscages = Vec::new();
    let mut events = Vec::new();
    let mut dice = Dice::new(2);
    let arguments = ["--jobs", "2", "--trials", "100000"];
    let mut number = 0;
    let mut next = |boscages: &mut Vec<u32>, events: &mut Vec<String>| {
        let running = start(&scene, number, &arguments);
        number += 1;
        boscages.push(running.child.id());
        events.push(running.events.clone());
        running
    };
    let mut crew = [next(&mut boscages, &mut events), next(&mut boscages, &mut events)];
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_secs_f64(0.025 * dice.share()));
        let killed = &mut crew[dice.below(2)];
        kill(&mut killed.child);
        *killed = next(&mut boscages, &mut events);
    }
    for running in &mut crew {
        kill(&mut running.child);
    }
    let begun = scene.trials().len();
    let wanted = (begun + 5).max(60).to_string();
    let mut last: Vec<Running> = (1000..1002)
        .map(|number| start(&scene, number, &["--jobs", "2", "--trials", &wanted]))
        .collect();
    for running in &mut last {
        assert_eq!(end_of(&mut running.child), Some(0), "{}", scene.read("errors"));
        boscages.push(running.child.id());
        events.push(running.events.clone());
    }
    scene.assert_no_orphans(&boscages);
    let trials = scene.trials();
    assert_eq!(trials.len().to_string(), wanted);
    let told = assert_nothing_lost(&scene, &trials, &events);
    scene.assert_whole("study.db");
    println!(
        "four workers in two processes: {} kills; {begun} trials by then, {wanted} in the end; {} evaluations, {told} \
         results told, all there; no orphans",
        KILLS + 2,
        noted(&scene).1
    );
}

#[test]
fn a_trial_whose_workers_are_lost_too_often_fails_with_a_reason() {
    let scene = Scene::new(
        r#"
        [parameters]
        x = { type = "real", low = 0, high = 1 }
        [program]
        command = ["sh", "-c", "echo {trial} >> log; if [ {trial} = 1 ]; then sleep 600; fi; echo {x}"]
        [workers]
        lost_retries = 1
        "#,
    );
    let mut boscages = Vec::new();
    for loss in 1..=2 {
        let mut running = start(&scene, loss, &["--trials", "4"]);
        let begun = || scene.read("log").lines().filter(|line| *line == "1").count();
        until("trial 1 is run", || begun() == loss);
        kill(&mut running.child);
        boscages.push(running.child.id());
    }
    let before = scene.trials();
    assert_eq!(before[1]["state"], "RUNNING");
    let ran = scene.tune(&["--trials", "4"]);
    scene.assert_no_orphans(&boscages);
    let trials = scene.trials();
    assert_ended_without_gaps(&trials);
    assert_eq!(
        states(&trials),
        BTreeMap::from([("COMPLETE".to_string(), 3), ("FAIL".to_string(), 1)])
    );
    let reason = trials[1]["failure"].as_str().unwrap();
    assert!(reason.starts_with("its worker was lost 2 times, the last one was "), "{reason}");
    assert!(reason.ends_with("workers.lost_retries is 1"), "{reason}");
    assert_eq!(scene.read("log"), "0\n1\n1\n2\n3\n");
    assert!(!ran.stdout.contains("\"began\",\"trial\":1"));
    println!("2 losses with lost_retries = 1: trial 1 failed ({reason}), 3 trials complete");
}
