//! Reads arbitrary text as a condition and as the space of another tool. The first byte says as what; the rest is the text.
//! Nothing may panic, and whatever is accepted must make sense as a space and survive being written and read.

#![no_main]

use boscage_study::import::{self, Format};
use boscage_study::{Condition, StudySpace};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let format = match first % 6 {
        0 => return check_condition(text),
        1 => Some(Format::Irace),
        2 => Some(Format::Pcs),
        3 => Some(Format::ConfigSpace),
        4 => Some(Format::Optuna),
        _ => None,
    };
    if let Ok(imported) = import::read(text, format, "space") {
        let space = StudySpace::new(imported.parameters, imported.forbidden)
            .expect("what was read makes sense");
        let written = serde_json::to_string(&space).expect("a space can be written");
        let again: StudySpace =
            serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(again, space);
        let middle = vec![0.5; space.dimension()];
        let point = space.engine().from_uniform(&middle).expect("the middle is a point");
        let values = space.decode(&point).expect("a point has values");
        space.encode(&values).expect("values have a point");
        space.forbidden_by(&values);
    }
});

fn check_condition(text: &str) {
    let Ok(condition) = Condition::parse(text) else { return };
    assert_eq!(condition.text(), text);
    let none = |_: &str| None;
    // It may have become too long or too deep.
    if let Ok(negated) = condition.negated() {
        assert_ne!(negated.holds(&none), condition.holds(&none));
        assert_eq!(negated.names(), condition.names());
    }
}
