// What must hold for every text of a study file: shared by the fuzz target and the tests, each of which brings the names into
// scope.

use super::{Definition, Path, StudyFile};

/// Panics if an invariant is broken; says whether the text was accepted.
pub(super) fn check(text: &str) -> bool {
    let path = Path::new("folder/study.toml");
    let file = match StudyFile::parse(text, path) {
        Ok(file) => file,
        Err(error) => {
            // A message says where, and nothing of our own types.
            let message = error.to_string();
            assert!(message.starts_with("folder/study.toml: "), "{message}");
            assert!(!message.contains("untagged enum"), "{message}");
            return false;
        }
    };
    let definition = &file.definition;
    definition.validate().expect("what was read makes sense");
    // It is stored as JSON, and compared with what is read the next time.
    let stored = serde_json::to_string(definition).expect("a definition can be written");
    let again: Definition = serde_json::from_str(&stored).expect("what was written can be read");
    assert_eq!(again, *definition);
    assert!(again.differences(definition).is_empty(), "{:?}", again.differences(definition));
    again.validate().expect("what was stored makes sense");
    assert_eq!(StudyFile::parse(text, path).expect("it was read before"), file);

    let space = &definition.space;
    let middle = vec![0.5; space.dimension()];
    let point = space.engine().from_uniform(&middle).expect("the middle is a point");
    let values = space.decode(&point).expect("a point has values");
    space.encode(&values).expect("values have a point");
    for start in definition.start_points().expect("they were checked") {
        assert_eq!(start.len(), space.dimension());
    }
    true
}
