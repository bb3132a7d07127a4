//! External programs as problems: the protocol of [`boscage_study::program`].
//!
//! Cost: that of the program, and about a millisecond to start it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use boscage::{Parameter, Space, Value};
use boscage_study::{Context, Program};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Goal, Optimum, Problem};

/// A problem whose values come from an external program. `{seed}` in its command is the seed of the run; there is no
/// `{trial}`, because a value must not depend on when it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramProblem {
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// What is sought.
    #[serde(default)]
    pub goal: Goal,
    /// The program.
    pub program: Program,
    /// The best value, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum: Option<KnownOptimum>,
}

/// The best value of a program, as its user knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownOptimum {
    /// The value.
    pub value: f64,
    /// Where it is attained: the value of each parameter.
    pub at: BTreeMap<String, Value>,
}

impl ProgramProblem {
    /// The problem of this seed; relative paths begin in `folder`.
    pub fn build(&self, seed: u64, folder: &Path) -> Result<ProgramFunction> {
        let space = Space::new(self.parameters.clone())?;
        let names: Vec<&str> =
            self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        self.program.validate(&names)?;
        if self.program.uses("instance")? {
            return Err(Error::problem("the program: an experiment has no {instance}"));
        }
        if self.program.uses("trial")? {
            return Err(Error::problem(
                "the program: an experiment has no {trial}; {seed} is the seed of the run",
            ));
        }
        let optimum = self.optimum.as_ref().map(|known| known.build(&space)).transpose()?;
        let (program, folder) = (self.program.clone(), folder.to_path_buf());
        Ok(ProgramFunction { space, goal: self.goal, program, folder, seed, optimum })
    }
}

impl KnownOptimum {
    fn build(&self, space: &Space) -> Result<Optimum> {
        if !self.value.is_finite() {
            return Err(Error::problem(format!(
                "optimum.value is {}; it must be finite",
                self.value
            )));
        }
        if let Some(name) = self.at.keys().find(|name| space.index_of(name).is_none()) {
            return Err(Error::problem(format!("optimum.at has {name:?}, which is no parameter")));
        }
        let values = space.parameters().iter().map(|parameter| {
            let missing =
                || Error::problem(format!("optimum.at has no value for {:?}", parameter.name));
            self.at.get(&parameter.name).cloned().ok_or_else(missing)
        });
        let point = space.encode(&values.collect::<Result<Vec<_>>>()?)?;
        Ok(Optimum { value: self.value, point, certainty: Certainty::Exact })
    }
}

/// An external program as a function.
#[derive(Debug, Clone)]
pub struct ProgramFunction {
    space: Space,
    goal: Goal,
    program: Program,
    folder: PathBuf,
    seed: u64,
    optimum: Option<Optimum>,
}

impl Problem for ProgramFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn goal(&self) -> Goal {
        self.goal
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        let context = Context { seed: Some(self.seed), ..Context::default() };
        let names = self.space.parameters().iter().map(|parameter| parameter.name.as_str());
        let values: Vec<_> = names.zip(values.iter().cloned().map(Some)).collect();
        Ok(self.program.evaluate(&values, &self.folder, context)?)
    }

    fn optimum(&self) -> Option<&Optimum> {
        self.optimum.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemSpec;

    const RECIPE: &str = r#"
        kind = "program"
        goal = "maximize"
        parameters = [
            { name = "x", type = "integer", low = -5, high = 5 },
            { name = "y", type = "integer", low = -5, high = 5 },
        ]
        optimum = { value = 100, at = { y = -1, x = 2 } }

        [program]
        command = ["./quadratic", "quadratic.sh", "--x={x}", "{y}", "{seed}"]
        result = { json = "value" }
        timeout_seconds = 600
    "#;

    const SCRIPT: &str = r#"
        x=${1#--x=}
        test "$3" = 17 || { echo "the seed is $3" >&2; exit 1; }
        echo "{\"value\": $((100 - (x - 2) * (x - 2) - (x - 2) * ($2 + 1) - ($2 + 1) * ($2 + 1)))}"
    "#;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("quadratic.sh"), SCRIPT).unwrap();
        // A link to the shell is a program that nobody has open for writing.
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("quadratic")).unwrap();
        folder
    }

    #[test]
    fn a_script_is_a_problem_with_its_optimum() {
        let folder = folder();
        let spec: ProblemSpec = toml::from_str(RECIPE).unwrap();
        let problem = spec.build(17, folder.path()).unwrap();
        assert_eq!(problem.goal(), Goal::Maximize);
        assert_eq!(problem.noise_std(), 0.0);
        let optimum = problem.optimum().unwrap();
        let at = problem.space().decode(&optimum.point).unwrap();
        assert_eq!(at, [Value::Integer(2), Value::Integer(-1)]);
        for x in -5..=5_i64 {
            for y in [-5, -1, 0, 5_i64] {
                let (a, b) = (x - 2, y + 1);
                let expected = (100 - a * a - a * b - b * b) as f64;
                let found = problem.evaluate(&[Value::Integer(x), Value::Integer(y)]).unwrap();
                assert_eq!(found, expected);
                assert!(found <= optimum.value);
            }
        }
        assert_eq!(problem.evaluate(&at).unwrap(), optimum.value);
        let failure = spec.build(18, folder.path()).unwrap().evaluate(&at).unwrap_err().to_string();
        assert!(failure.contains("exit code 1") && failure.contains("the seed is 18"), "{failure}");
    }

    #[test]
    fn a_problem_survives_a_round_trip() {
        let spec: ProblemSpec = toml::from_str(RECIPE).unwrap();
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(serde_json::from_value::<ProblemSpec>(json).unwrap(), spec);
    }

    #[test]
    fn bad_descriptions_are_refused() {
        for (from, to, expected) in [
            ("{seed}", "{trial}", "{trial}"),
            ("{seed}", "{z}", "the parameters are x, y"),
            ("\"{y}\", ", "", "never gets y"),
            ("value = 100", "value = nan", "optimum.value is NaN"),
            ("y = -1, ", "", "no value for \"y\""),
            ("y = -1, ", "y = -1, z = 1, ", "\"z\", which is no parameter"),
            ("y = -1, ", "y = 6, ", "not between -5 and 5"),
            ("timeout_seconds = 600", "timeout_seconds = 0", "timeout_seconds"),
            ("high = 5", "high = -6", "swap"),
        ] {
            let text = RECIPE.replace(from, to);
            assert_ne!(text, RECIPE, "{from}");
            let spec: ProblemSpec = toml::from_str(&text).unwrap();
            let error = spec.build(17, Path::new(".")).err().unwrap().to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
        for (from, to, expected) in [
            ("goal =", "gaol =", "gaol"),
            ("\"maximize\"", "\"max\"", "max"),
            ("timeout_seconds", "timeout", "timeout"),
        ] {
            let error =
                toml::from_str::<ProblemSpec>(&RECIPE.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }
}
