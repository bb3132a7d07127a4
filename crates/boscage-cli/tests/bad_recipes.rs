//! Every way to get a recipe or a command wrong gives one clear error and exit code 2.

use std::path::Path;

use assert_cmd::Command;

/// A recipe without mistakes, to make one in.
const GOOD: &str = r#"name = "mine"
seeds = 2
trials = 5
initial_points = 3

[problems.star]
preset = "star25"

[methods.tree]

[profiles.quick]
seeds = 1
"#;

/// What `boscage bench run` says of this recipe, with these arguments. The folder of the test is called DIR.
fn refusal_with(recipe: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), recipe).unwrap();
    refusal_in(folder.path(), &[&["bench", "run", "mine.toml", "--dry-run"], arguments].concat())
}

fn refusal_in(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::cargo_bin("boscage")
        .unwrap()
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(output.stdout, b"", "{error}");
    error.replace(&folder.display().to_string(), "DIR")
}

fn refusal(recipe: &str) -> String {
    refusal_with(recipe, &[])
}

/// The good recipe with this in the place of that.
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replace(from, to)
}

#[test]
fn the_good_recipe_is_good() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), GOOD).unwrap();
    let mut command = Command::cargo_bin("boscage").unwrap();
    command
        .current_dir(folder.path())
        .args(["bench", "run", "mine.toml", "--dry-run"])
        .assert()
        .success();
}

#[test]
fn invalid_toml() {
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = = 2")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "trials = 2")), @"");
}

#[test]
fn unknown_keys() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trails = 5")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevles = 21")), @"");
    insta::assert_snapshot!(
        refusal(&changed("preset = \"star25\"", "preset = \"star25\"\ngraph = { vertexes = 3 }")), @"");
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.tree]\nsamples = 3")), @"");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.tree_learning.sampels = 3")), @"");
    insta::assert_snapshot!(refusal(&changed("[profiles.quick]", "[profiles.quick]\nbudget = 1")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = { from = 2, count = 3 }")), @"");
}

#[test]
fn unknown_names() {
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.tre]")), @"");
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.a]\nname = \"bayes\"")), @"");
    insta::assert_snapshot!(refusal(&changed("star25", "star52")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "kind = \"addditive\"")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 1", "problems = [\"stars\"]")), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--profile", "quikc"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--problems", "stars"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--methods", "tree,bayes"]), @"");
}

#[test]
fn budgets_and_seeds() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = -5")), @"");
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = 0")), @"");
    insta::assert_snapshot!(refusal(&changed("trials = 5", "")), @"");
    insta::assert_snapshot!(refusal(&changed("initial_points = 3", "initial_points = -3")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = 0")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = []")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = [1, 2, 1]")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = 2000000")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 1\n", "seeds = 0\n")), @"");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = \"many\"")), @"");
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = 5.5")), @"");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = true")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = 25")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = \"many\"")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = -5")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\ndomain = \"real\"")), @"");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.tree_learning.samples = \"many\"")), @"");
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods]\ntree = 3")), @"");
}

#[test]
fn values_that_make_no_sense() {
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = 1")), @"");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlengthscale = inf")), @"");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.lengthscale = -1.0")), @"");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.random]\nsettings.lengthscale = 1.0")), @"");
}

#[test]
fn labels() {
    insta::assert_snapshot!(refusal(&changed("[problems.star]", "[problems.\"a/b\"]")), @"");
    insta::assert_snapshot!(refusal(&changed("name = \"mine\"", "name = \"../mine\"")), @"");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.Tree]\nname = \"tree\"\n[methods.tree]")), @"");
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods]")), @"");
    insta::assert_snapshot!(
        refusal("name = \"mine\"\nseeds = 2\ntrials = 5\n[methods.tree]\n"), @"");
}

#[test]
fn variants() {
    let vary = |vary: &str| {
        changed("preset = \"star25\"", &format!("preset = \"star25\"\nvary = {{ {vary} }}"))
    };
    insta::assert_snapshot!(refusal(&vary("levels = 3")), @"");
    insta::assert_snapshot!(refusal(&vary("levels = []")), @"");
    insta::assert_snapshot!(refusal(&vary("levles = [3]")), @"");
    insta::assert_snapshot!(refusal(&vary("\"graph.shape\" = [\"star\"], \"graph.shape.vertices\" = [3]")), @"");
    insta::assert_snapshot!(refusal(&vary("graph = [{ shape = \"star\" }]")), @"");
}

#[test]
fn files() {
    let edges = "kind = \"additive\"\ngraph = { shape = \"edge-list\", file = \"edges.txt\" }";
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", edges)), @"");
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(refusal_in(folder.path(), &["bench", "run", "none.toml"]), @"");
    insta::assert_snapshot!(refusal_in(folder.path(), &["bench", "run", "star52"]), @"");
}

#[test]
fn settings_on_the_command_line() {
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "problems.star.levles=3"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "problems.stars.levels=3"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "budget=3"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials.all=3"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials=many"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--trials", "0"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "0"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "3,x"]), @"");
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "9-3"]), @"");
}
