//! A worker that asks and tells and does nothing in between: for `benches/store/compare.py`.
//!
//! `store_speed ADDRESS METHOD DIMENSION TRIALS` opens or makes a study, prints `ready`, waits for a line, runs so many trials,
//! and prints the seconds that asks and tells took as JSON.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::time::Instant;

use boscage_study::{
    Access, Asked, Definition, Error, Kind, Location, MethodChoice, Outcome, Store, Study,
    StudyParameter, StudySpace, Worker,
};

const NAME: &str = "speed";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, method, dimension, trials] = arguments.as_slice() else {
        return Err("usage: store_speed ADDRESS METHOD DIMENSION TRIALS".into());
    };
    let parameter = |d: usize| {
        let kind = Kind::Real { low: 0.0, high: 1.0, step: None, log: false };
        StudyParameter::new(format!("x{d}"), kind)
    };
    let parameters = (0..dimension.parse()?).map(parameter).collect();
    let mut definition = Definition::new(StudySpace::new(parameters, Vec::new())?)?;
    definition.choice = MethodChoice { name: method.clone(), settings: Default::default() };
    definition.method = definition.choice.resolve()?;
    let store = Store::open(&Location::parse(address)?, &Access::default())?;
    let (mut study, _) = Study::open(store, NAME, definition, false)?;
    let worker = Worker::this_process();
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;

    let (mut asking, mut telling) = (0.0, 0.0);
    for _ in 0..trials.parse()? {
        let begin = Instant::now();
        let Asked::Trial(trial) = study.ask(&worker, 600.0, None)? else {
            return Err(Error::Study { reason: "there is no other trial".to_string() }.into());
        };
        asking += begin.elapsed().as_secs_f64();
        let values = trial.values.iter().flatten().filter_map(boscage::Value::as_f64);
        let value = values.map(|x| (x - 0.3).powi(2)).sum();
        let begin = Instant::now();
        study.store().tell(NAME, trial.number, &Outcome::Value(value), Some(&trial.token))?;
        telling += begin.elapsed().as_secs_f64();
    }
    println!("{{\"ask\": {asking}, \"tell\": {telling}}}");
    Ok(())
}
