//! Many workers on one study, each with a connection of its own, some of them processes: nothing is lost, doubled or stuck.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it measured"
)]

#[path = "../../boscage-cli/tests/common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use boscage::Value;
use boscage_study::{
    Access, Asked, Definition, Kind, Location, MethodChoice, Outcome, State, Store, Study,
    StudyParameter, StudySpace, Worker,
};
use common::{Keeper, Running, TestStore};

/// What a worker process is given: the store's address, how many trials it is to run, and where it writes what it has told.
const WORK: &str = "BOSCAGE_TEST_WORK";
const NAME: &str = "many";

/// With this method a point depends on the seed and the number of the trial alone: if two who ask took themselves for the same
/// trial, they would get the same point.
fn definition() -> Definition {
    let real = |name| {
        StudyParameter::new(name, Kind::Real { low: 0.0, high: 100.0, step: None, log: false })
    };
    let space = StudySpace::new(vec![real("x"), real("y")], Vec::new()).unwrap();
    let mut definition = Definition::new(space).unwrap();
    definition.choice = MethodChoice { name: "random".to_string(), settings: Default::default() };
    definition.method = definition.choice.resolve().unwrap();
    definition
}

fn objective(values: &[Option<Value>]) -> f64 {
    std::thread::sleep(Duration::from_millis(1));
    let number = |d: usize| values[d].as_ref().unwrap().as_f64().unwrap();
    number(0) + number(1) / 100.0
}

/// Runs so many trials, and gives what it has told.
fn work(address: &str, trials: usize) -> Vec<(u64, f64)> {
    let store = Store::open(&Location::parse(address).unwrap(), &Access::default()).unwrap();
    let (mut study, _) = Study::open(store, NAME, definition(), false).unwrap();
    let worker = Worker::this_process();
    let mut told = Vec::new();
    for _ in 0..trials {
        let Asked::Trial(trial) = study.ask(&worker, 300.0, None).unwrap() else {
            panic!("there is always another trial");
        };
        assert_eq!(trial.attempt, 1, "trial {} was given to two", trial.number);
        let value = objective(&trial.values);
        study.store().tell(NAME, trial.number, &Outcome::Value(value), Some(&trial.token)).unwrap();
        told.push((trial.number, value));
    }
    told
}

/// Not a test of its own: what the processes of the other tests run.
#[test]
fn worker_process() {
    let Ok(work_to_do) = std::env::var(WORK) else { return };
    let [address, trials, file] = work_to_do.split('\n').collect::<Vec<_>>()[..] else {
        panic!("{work_to_do}");
    };
    let told = work(address, trials.parse().unwrap());
    std::fs::write(file, serde_json::to_string(&told).unwrap()).unwrap();
}

fn many_workers(keeper: Keeper, threads: usize, processes: usize, trials: usize) {
    let Some(store) = TestStore::new(keeper) else { return };
    let begin = Instant::now();
    // All of them begin at once, and so the study and its tables are made by whoever is first.
    let started: Vec<_> = (0..processes)
        .map(|number| {
            let file = store.folder().join(format!("told-{number}"));
            let process = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "worker_process", "--nocapture"])
                .env(WORK, format!("{}\n{trials}\n{}", store.address, file.display()))
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            (Running(process), file)
        })
        .collect();
    let mut told: Vec<(u64, f64)> = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| work(&store.address, trials))).collect();
        for worker in workers {
            told.extend(worker.join().unwrap());
        }
    });
    for (process, file) in started {
        assert!(process.ended("a worker").success());
        let by_process: Vec<(u64, f64)> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        told.extend(by_process);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let all = (threads + processes) * trials;
    eprintln!(
        "{keeper:?}: {} workers × {trials} trials of 1 ms in {seconds:.1} s: {:.0} trials per second",
        threads + processes,
        all as f64 / seconds
    );

    assert_eq!(told.len(), all);
    let told: BTreeMap<u64, f64> = told.into_iter().collect();
    assert_eq!(told.len(), all, "a trial was told by two");
    let mut store =
        Store::open(&Location::parse(&store.address).unwrap(), &Access::default()).unwrap();
    let view = boscage_study::study::view(&mut store, Some(NAME)).unwrap();
    assert_eq!(store.studies().unwrap().len(), 1);
    assert_eq!(view.trials.len(), all);
    let mut points = BTreeSet::new();
    for (number, trial) in (0..).zip(&view.trials) {
        assert_eq!(trial.number, number, "numbers have no gaps");
        assert_eq!(trial.state, State::Complete);
        assert_eq!(trial.value, told.get(&number).copied(), "trial {number}");
        assert!(points.insert(format!("{:?}", trial.values)), "trial {number} repeats a point");
    }
}

#[test]
fn eight_workers_on_postgres() {
    many_workers(Keeper::Postgres, 6, 2, 500);
}

#[test]
fn four_workers_on_sqlite() {
    many_workers(Keeper::Sqlite, 2, 2, 250);
}
