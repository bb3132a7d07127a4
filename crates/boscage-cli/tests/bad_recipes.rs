//! Every way to get a recipe or a command wrong gives one clear error and exit code 2.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = = 2")), @"error: mine.toml: line 2, column 9: this is not valid TOML: extra `=`, expected nothing");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "trials = 2")), @"error: mine.toml: line 3, column 1: this is not valid TOML: duplicate key");
}

#[test]
fn unknown_keys() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trails = 5")), @r#"error: mine.toml: unknown key "trails"; did you mean "trials"? known are name, title, seeds, trials, initial_points, problems, methods, profiles"#);
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevles = 21")), @r#"error: mine.toml: problems.star.levles: unknown key "levles"; did you mean "levels"? known are graph, domain, levels, lengthscale, variance, noise_std, draw_seed"#);
    insta::assert_snapshot!(
        refusal(&changed("preset = \"star25\"", "preset = \"star25\"\ngraph = { vertexes = 3 }")), @r#"error: mine.toml: problems.star.graph: unknown key "vertexes"; did you mean "vertices"? known are vertices"#);
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.tree]\nsamples = 3")), @r#"error: mine.toml: methods.tree: unknown key "samples"; known are name, settings, noise_free, vary; settings of the method go into `settings`"#);
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.structure.tree.sampels = 3")), @r#"error: mine.toml: methods.tree.settings.structure.tree: unknown key "sampels"; did you mean "samples"? known are edge_prior, edge_rule, generation, samples"#);
    insta::assert_snapshot!(refusal(&changed("[profiles.quick]", "[profiles.quick]\nbudget = 1")), @r#"error: mine.toml: profiles.quick: unknown key "budget"; known are seeds, trials, initial_points, problems, methods"#);
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = { from = 2, count = 3 }")), @r#"error: mine.toml: seeds: unknown key "from"; known are first, count"#);
}

#[test]
fn unknown_names() {
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.tre]")), @r#"error: mine.toml: methods.tre: there is no method "tre"; did you mean "tree"? known are boscage, tree, tree-paper, overlap, no-overlap, no-overlap-5, no-overlap-10, random-trees, oracle, gp-ucb, gp-ucb-textbook, line-coordinate, line-random, line-ascent, rembo, rembo-interleaved, random"#);
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods.a]\nname = \"bayes\"")), @r#"error: mine.toml: methods.a.name: there is no method "bayes"; known are boscage, tree, tree-paper, overlap, no-overlap, no-overlap-5, no-overlap-10, random-trees, oracle, gp-ucb, gp-ucb-textbook, line-coordinate, line-random, line-ascent, rembo, rembo-interleaved, random"#);
    insta::assert_snapshot!(refusal(&changed("star25", "star52")), @r#"error: mine.toml: problems.star.preset: there is no preset "star52"; did you mean "star25"? known are star25, path10, empty10, partition12, star25-continuous, path50-continuous, partition12-continuous, grid3x3, ancestry132, erdos-renyi20, power-law-tree50, random-tree50, random-tree50-continuous, hartmann6, hartmann6+14, camelback, camelback+8, camelback+10, styblinski-tang-20, styblinski-tang-50, styblinski-tang-100, styblinski-tang-250, rosenbrock-20, rosenbrock-20-noisy, gaussian-4, ackley-rotated-20, levy-rotated-12, hartmann6-embedded-40, ellipsoid-integer-16, rastrigin-rotated-10, griewank-rotated-10, rosenbrock-rotated-10, styblinski-tang-rotated-15, ellipsoid-rotated-20, quadratic-embedded-100, ackley-moved-50, levy-moved-50, rastrigin-moved-30, griewank-moved-60, rosenbrock-moved-40, styblinski-tang-moved-50, ellipsoid-moved-100, ackley53, pest-control-25, labs-40, half-spaces-penalised-20, corner-penalised-20, choices-penalised-20, memory-penalised-20, log-bowl-20, log-bowl-turned-10, log-few-12, saturating-20, log-counts-18, power-time-16"#);
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "kind = \"addditive\"")), @r#"error: mine.toml: problems.star.kind: unknown kind "addditive"; did you mean "additive"? known are additive, closed-form, rotated, discrete, penalised, linear-ranges, program"#);
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "")), @"error: mine.toml: problems.star: neither a preset nor a kind is given; `boscage bench problems` lists the presets, the kinds are additive, closed-form, rotated, discrete, penalised, linear-ranges and program");
    insta::assert_snapshot!(refusal(&changed("seeds = 1", "problems = [\"stars\"]")), @r#"error: mine.toml: profiles.quick.problems: there is no "stars"; did you mean "star"? known are star"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--profile", "quikc"]), @r#"error: mine.toml: profiles: there is no profile "quikc"; did you mean "quick"? known are quick"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--problems", "stars"]), @r#"error: mine.toml: --problems: there is no "stars"; did you mean "star"? known are star"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--methods", "tree,bayes"]), @r#"error: mine.toml: --methods: there is no "bayes"; known are tree"#);
}

#[test]
fn budgets_and_seeds() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = -5")), @"error: mine.toml: trials: it is -5, but it must be at least 1");
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = 0")), @"error: mine.toml: trials: it is 0, but it must be at least 1");
    insta::assert_snapshot!(refusal(&changed("trials = 5", "")), @r#"error: mine.toml: the key "trials" is missing"#);
    insta::assert_snapshot!(refusal(&changed("initial_points = 3", "initial_points = -3")), @"error: mine.toml: initial_points: it is -3, but it must be at least 0");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = 0")), @"error: mine.toml: seeds: it is 0, but it must be at least 1");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = []")), @"error: mine.toml: seeds: there must be at least one seed");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = [1, 2, 1]")), @"error: mine.toml: seeds: the seed 1 is there twice");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = 2000000")), @"error: mine.toml: seeds: 2000000 seeds are too many; at most 10000 can be run at once");
    insta::assert_snapshot!(refusal(&changed("seeds = 1\n", "seeds = 0\n")), @"error: mine.toml: profiles.quick.seeds: it is 0, but it must be at least 1");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = \"many\"")), @r#"error: mine.toml: trials: it must be a whole number of at least 1, but it is the text "many""#);
    insta::assert_snapshot!(refusal(&changed("trials = 5", "trials = 5.5")), @"error: mine.toml: trials: it must be a whole number of at least 1, but it is the number 5.5");
    insta::assert_snapshot!(refusal(&changed("seeds = 2", "seeds = true")), @"error: mine.toml: seeds: it must be a number of seeds, a list of seeds or { first = …, count = … }, but it is true");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = 25")), @"error: mine.toml: problems.star.preset: it must be a text in quotes, but it is the number 25");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = \"many\"")), @r#"error: mine.toml: problems.star.levels: it must be a whole number of at least 0, but it is the text "many""#);
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = -5")), @"error: mine.toml: problems.star.levels: it must be a whole number of at least 0, but it is the number -5");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\ndomain = \"real\"")), @r#"error: mine.toml: problems.star.domain: unknown value "real"; known are discrete, continuous"#);
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.structure.tree.samples = \"many\"")), @r#"error: mine.toml: methods.tree.settings.structure.tree.samples: it must be a whole number of at least 0, but it is the text "many""#);
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods]\ntree = 3")), @"error: mine.toml: methods.tree: it must be a table, but it is the number 3");
}

#[test]
fn values_that_make_no_sense() {
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlevels = 1")), @"error: mine.toml: problems.star: levels = 1 is not between 2 and 1000");
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", "preset = \"star25\"\nlengthscale = inf")), @"error: mine.toml: problems.star.lengthscale: the number inf cannot be used here");
    for place in ["preset = \"star25\"", "preset = \"hartmann6\""] {
        let noisy = changed("preset = \"star25\"", &format!("{place}\nnoise_std = 1e300"));
        assert_eq!(
            refusal(&noisy),
            "error: mine.toml: problems.star: noise_std = 1e300 is not between 0 and 1e100\n"
        );
    }
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.tree]\nsettings.lengthscale = -1.0")), @"error: mine.toml: methods.tree: setting `lengthscale` is -1: it must be positive and finite");
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.random]\nsettings.lengthscale = 1.0")), @r#"error: mine.toml: methods.random.settings: the method has no settings, but "lengthscale" is set"#);
}

#[test]
fn labels() {
    insta::assert_snapshot!(refusal(&changed("[problems.star]", "[problems.\"a/b\"]")), @r#"error: mine.toml: problems: "a/b" cannot be a label: use up to 64 letters, digits and . _ + - and begin with none of . and -"#);
    insta::assert_snapshot!(refusal(&changed("name = \"mine\"", "name = \"../mine\"")), @r#"error: mine.toml: name: "../mine" cannot be a label: use up to 64 letters, digits and . _ + - and begin with none of . and -"#);
    insta::assert_snapshot!(
        refusal(&changed("[methods.tree]", "[methods.Tree]\nname = \"tree\"\n[methods.tree]")), @r#"error: mine.toml: methods: the labels "Tree" and "tree" would share a folder; rename one"#);
    insta::assert_snapshot!(refusal(&changed("[methods.tree]", "[methods]")), @"error: mine.toml: there are no methods; add a method as [methods.LABEL]");
    insta::assert_snapshot!(
        refusal("name = \"mine\"\nseeds = 2\ntrials = 5\n[methods.tree]\n"), @"error: mine.toml: there are no problems; add a problem as [problems.LABEL]");
}

#[test]
fn variants() {
    let vary = |vary: &str| {
        changed("preset = \"star25\"", &format!("preset = \"star25\"\nvary = {{ {vary} }}"))
    };
    insta::assert_snapshot!(refusal(&vary("levels = 3")), @"error: mine.toml: problems.star.vary.levels: it must be a list of at least one value, but it is the number 3");
    insta::assert_snapshot!(refusal(&vary("levels = []")), @"error: mine.toml: problems.star.vary.levels: it must be a list of at least one value, but it is an empty list");
    insta::assert_snapshot!(refusal(&vary("levles = [3]")), @r#"error: mine.toml: problems.star.levles: unknown key "levles"; did you mean "levels"? known are graph, domain, levels, lengthscale, variance, noise_std, draw_seed"#);
    insta::assert_snapshot!(refusal(&vary("\"graph.shape\" = [\"star\"], \"graph.shape.vertices\" = [3]")), @"error: mine.toml: problems.star.vary.graph.shape.vertices: the path leads through a value that is not a table");
    insta::assert_snapshot!(refusal(&vary("graph = [{ shape = \"star\" }]")), @"error: mine.toml: problems.star.vary.graph: it must be a list of numbers, texts or true and false, but it is a table");
}

#[test]
fn files() {
    let edges = "kind = \"additive\"\ngraph = { shape = \"edge-list\", file = \"edges.txt\" }";
    insta::assert_snapshot!(refusal(&changed("preset = \"star25\"", edges)), @"error: mine.toml: problems.star: ./edges.txt: reading failed: No such file or directory (os error 2)");
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(refusal_in(folder.path(), &["bench", "run", "none.toml"]), @"error: none.toml: reading the recipe failed: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal_in(folder.path(), &["bench", "run", "star52"]), @r#"error: star52: this is neither a file nor a recipe that comes with boscage; did you mean "star25"? known are star25, partition12, grid3x3, ancestry132, grid-scaling, hartmann6, hartmann6-14, camelback, camelback-8, styblinski-tang-250, default-settings, rivals, rivals-drawn, ablation"#);
}

#[test]
fn settings_on_the_command_line() {
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "problems.star.levles=3"]), @r#"error: mine.toml: problems.star.levles: unknown key "levles"; did you mean "levels"? known are graph, domain, levels, lengthscale, variance, noise_std, draw_seed"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "problems.stars.levels=3"]), @r#"error: mine.toml: --set problems.stars.levels: there is no "stars" in problems; did you mean "star"? known are star"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "budget=3"]), @r#"error: mine.toml: --set budget: unknown key "budget"; known are name, title, seeds, trials, initial_points, problems, methods"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials.all=3"]), @r#"error: mine.toml: --set trials.all: "trials" is the number 5, not a table, so nothing can be set in it"#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials=many"]), @r#"error: mine.toml: trials: it must be a whole number of at least 1, but it is the text "many""#);
    insta::assert_snapshot!(refusal_with(GOOD, &["--set", "trials"]), @r###"
    error: invalid value 'trials' for '--set <PATH=VALUE>': write PATH=VALUE, such as trials=100

    For more information, try '--help'.
    "###);
    insta::assert_snapshot!(refusal_with(GOOD, &["--trials", "0"]), @r###"
    error: invalid value '0' for '--trials <N>': 0 is not in 1..18446744073709551615

    For more information, try '--help'.
    "###);
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "0"]), @r###"
    error: invalid value '0' for '--seeds <SEEDS>': there must be at least one seed

    For more information, try '--help'.
    "###);
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "3,x"]), @r###"
    error: invalid value '3,x' for '--seeds <SEEDS>': "x" is not a whole number of at least 0

    For more information, try '--help'.
    "###);
    insta::assert_snapshot!(refusal_with(GOOD, &["--seeds", "9-3"]), @r###"
    error: invalid value '9-3' for '--seeds <SEEDS>': the last seed is before the first

    For more information, try '--help'.
    "###);
}

#[test]
fn claims() {
    let folder = tempfile::tempdir().unwrap();
    let refusal =
        |arguments: &[&str]| refusal_in(folder.path(), &[&["bench", "claims"], arguments].concat());
    insta::assert_snapshot!(refusal(&["--profile", "quikc"]), @r#"error: no recipe has a profile "quikc"; did you mean "quick"? known are full, quick, smoke"#);
    insta::assert_snapshot!(refusal(&["--run", "--profile", "quikc"]), @r#"error: no recipe has a profile "quikc"; did you mean "quick"? known are full, quick, smoke"#);
    insta::assert_snapshot!(refusal(&["--results", "nowhere"]), @"error: there is no folder nowhere; make results by --run, or name their folder by --results");
}
