//! The paper's claims as tests on stored results, each with an interval.
//!
//! The text's experiments section states them in words and its figures show them without numbers; what a claim means in numbers
//! is therefore ours, and each [`Claim`] says it. A claim is about a [`Quantity`] that every seed gives one value of, mostly a
//! difference of two methods on the same seed, that is, on the same function, initial design and noise. It holds if the 95 %
//! interval of the mean lies wholly on the claimed side, does not hold if it lies wholly on the other, and is undecided
//! otherwise, or with fewer than five seeds. Every claim is judged on its own: of forty whose truth is just at the bound, one is
//! expected to come out as holding and one as not.
//!
//! Notation: "Tree" is the method `tree-paper`, t counts the chosen points after the initial design. "No-Overlap" is
//! `no-overlap-10` where the paper does not limit its components. Left out: that Overlap does not finish on Ancestry-132, which
//! is a statement about patience.
//!
//! Cost: reading the results; milliseconds a claim.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::recipe::{Overrides, Recipe};
use crate::results::{RunResult, read_runs};
use crate::runner::difference;
use crate::statistics::{
    Interval, RESAMPLES, Statistic, bootstrap_interval, paired_differences, quantile,
};

/// Fewer seeds than this decide nothing.
pub const LEAST_SEEDS: usize = 5;

/// Level of the intervals.
pub const LEVEL: f64 = 0.95;

/// "Early" in a run: after this many chosen points, a tenth of the paper's budget.
pub const EARLY: u64 = 100;

/// "Close" in regret: within this share of what the better of two methods gained over the initial design.
pub const CLOSE: f64 = 0.1;

/// Where a claim comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// The paper states it.
    Paper,
    /// The paper's figures and its aim imply it: beating random search, learning the graph at all.
    Implied,
    /// Not in the paper: our default settings against the paper's.
    Beyond,
}

impl Section {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Section::Paper => "Stated in the paper",
            Section::Implied => "Implied by the paper",
            Section::Beyond => "Beyond the paper",
        }
    }
}

/// What every seed gives one value of. `a` and `b` are labels of methods.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Regret of a minus regret of b at the end. Needs no optimum: it is the difference of the best values.
    FinalRegret {
        /// The one that should be better.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// The same after this many chosen points.
    RegretAfter {
        /// The one that should be better.
        a: &'static str,
        /// The other.
        b: &'static str,
        /// How many.
        points: u64,
    },
    /// The final regret's difference in units of what the better of the two gained over the initial design.
    RelativeRegret {
        /// One method.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// F1 of a minus F1 of b, averaged over the run from where both have a learned graph.
    F1Difference {
        /// The one that should be better.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// F1 at the end minus F1 of the first learned graph.
    F1Growth {
        /// The method.
        a: &'static str,
    },
    /// F1 at the end minus 2/D, what a random tree is expected to have if the truth is a tree.
    F1AboveChance {
        /// The method.
        a: &'static str,
    },
    /// Cost of b over cost of a to reach the same value: the best one that both reach by their end. Read as a ratio, and averaged
    /// as a logarithm.
    CostToReach {
        /// The one that should be cheaper.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// The exponent p in cost ∝ Dᵖ: slope of log total cost over log dimension, by least squares over the problems.
    CostExponent {
        /// The method.
        a: &'static str,
    },
    /// Total cost of b over that of a on the largest problem that both have.
    TotalCost {
        /// The one that should cost less.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// The exponent of a minus that of b, over the problems that both have.
    CostExponentDifference {
        /// The one that should grow slower.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
}

impl Quantity {
    /// The methods it needs.
    pub fn methods(&self) -> Vec<&'static str> {
        use Quantity::*;
        match *self {
            FinalRegret { a, b }
            | RegretAfter { a, b, .. }
            | RelativeRegret { a, b }
            | F1Difference { a, b }
            | CostToReach { a, b }
            | TotalCost { a, b }
            | CostExponentDifference { a, b } => vec![a, b],
            F1Growth { a } | F1AboveChance { a } | CostExponent { a } => vec![a],
        }
    }

    /// What is measured, in words.
    pub fn describe(&self) -> String {
        use Quantity::*;
        match self {
            FinalRegret { a, b } => format!("final regret, {a} − {b}"),
            RegretAfter { a, b, points } => {
                format!("regret after {points} chosen points, {a} − {b}")
            }
            RelativeRegret { a, b } => {
                format!("final regret, {a} − {b}, as a share of the gain over the initial design")
            }
            F1Difference { a, b } => format!("mean F1 over the run, {a} − {b}"),
            F1Growth { a } => format!("F1 of {a}, end − first learned graph"),
            F1AboveChance { a } => format!("final F1 of {a} − 2/D, that of a random tree"),
            CostToReach { a, b } => format!("cost to reach the same regret, {b} ÷ {a}"),
            TotalCost { a, b } => format!("total cost on the largest problem, {b} ÷ {a}"),
            CostExponent { a } => format!("p in total cost of {a} ∝ Dᵖ"),
            CostExponentDifference { a, b } => format!("p in total cost ∝ Dᵖ, {a} − {b}"),
        }
    }

    /// Whether values are kept as values_by_seed and shown as ratios.
    fn is_ratio(&self) -> bool {
        matches!(self, Quantity::CostToReach { .. } | Quantity::TotalCost { .. })
    }
}

/// Where a claim says that the mean lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// Below this.
    Below(f64),
    /// Above this.
    Above(f64),
    /// Closer to zero than this.
    Within(f64),
}

impl Expectation {
    fn describe(self) -> String {
        match self {
            Expectation::Below(bound) => format!("< {bound}"),
            Expectation::Above(bound) => format!("> {bound}"),
            Expectation::Within(bound) => format!("within ± {bound}"),
        }
    }

    /// Whether the interval lies wholly inside or wholly outside; nothing if it does neither.
    fn judge(self, interval: Interval) -> Option<bool> {
        let Interval { low, high } = interval;
        let (inside, outside) = match self {
            Expectation::Below(bound) => (high < bound, low >= bound),
            Expectation::Above(bound) => (low > bound, high <= bound),
            Expectation::Within(bound) => {
                (low > -bound && high < bound, low >= bound || high <= -bound)
            }
        };
        (inside || outside).then_some(inside)
    }

    /// How far the estimate is from the nearest bound.
    fn distance(self, estimate: f64) -> f64 {
        match self {
            Expectation::Below(bound) | Expectation::Above(bound) => (estimate - bound).abs(),
            Expectation::Within(bound) => (estimate.abs() - bound).abs(),
        }
    }
}

/// One claim that results can decide.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub section: Section,
    /// The recipe whose results decide it.
    pub recipe: &'static str,
    /// The problem of the recipe; nothing for all of them.
    pub problem: Option<&'static str>,
    /// What is claimed, in words.
    pub statement: String,
    /// What is measured for each seed.
    pub quantity: Quantity,
    /// Where its mean is claimed to be. Ratios are meant as such.
    pub expectation: Expectation,
}

/// What the results say about a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies wholly where the claim says.
    Holds,
    /// The interval lies wholly elsewhere.
    DoesNotHold,
    /// The interval does not tell.
    Undecided {
        /// How many seeds would roughly decide it, if the estimate stayed as it is; nothing if no number can be told.
        seeds_needed: Option<u64>,
    },
    /// There are no results for it.
    NoData {
        /// What makes them.
        command: String,
    },
    /// This version has no such method, and the results have none of that label.
    NeedsMethod {
        /// Its name.
        method: String,
    },
}

impl Verdict {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Verdict::Holds => "holds".to_string(),
            Verdict::DoesNotHold => "does not hold".to_string(),
            Verdict::Undecided { seeds_needed: Some(n) } => {
                format!("undecided (about {n} seeds needed)")
            }
            Verdict::Undecided { seeds_needed: None } => "undecided".to_string(),
            Verdict::NoData { .. } => "no data".to_string(),
            Verdict::NeedsMethod { method } => format!("needs method {method}"),
        }
    }
}

/// A claim with its verdict and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The claim.
    pub claim: Claim,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Mean over the seeds; for ratios, the geometric mean.
    pub estimate: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The value of each seed, in order.
    pub values: Vec<(u64, f64)>,
    /// The folder of the results.
    pub folder: Option<PathBuf>,
    /// Trials of a run, the initial design included.
    pub trials: u64,
    /// Seeds with results that could not be used: unfinished runs, or no value.
    pub skipped: usize,
    /// What else has to be known.
    pub note: Option<String>,
}

/// Every claim, in the paper's order.
pub fn claims() -> Vec<Claim> {
    let mut list = ClaimList(Vec::new());
    list.star25();
    list.grid3x3();
    list.ancestry132();
    list.scalability();
    list.hartmann6_and_auxiliary();
    list.styblinski_tang();
    list.implied();
    list.beyond();
    list.0
}

const TREE: &str = "tree-paper";

/// Recipe and problem of the experiments with one problem, and how they are called in sentences.
const EXPERIMENTS: [(&str, &str, &str); 9] = [
    ("star25", "star25", "Star-25"),
    ("partition12", "partition12", "Partition-12"),
    ("grid3x3", "grid3x3", "Grid-3×3"),
    ("ancestry132", "ancestry132", "Ancestry-132"),
    ("hartmann6-14", "hartmann6+14", "Hartmann6+14"),
    ("styblinski-tang-250", "styblinski-tang-250", "Styblinski–Tang 250"),
    ("hartmann6", "hartmann6", "Hartmann6"),
    ("camelback", "camelback", "Camelback"),
    ("camelback-8", "camelback+8", "Camelback+8"),
];

/// How many of [`EXPERIMENTS`] the paper's text is about; the others are in its appendix.
const MAIN_EXPERIMENTS: usize = 6;

struct ClaimList(Vec<Claim>);

impl ClaimList {
    fn add(
        &mut self,
        section: Section,
        (recipe, problem): (&'static str, Option<&'static str>),
        name: String,
        statement: String,
        quantity: Quantity,
        expectation: Expectation,
    ) {
        let id = format!("{recipe}-{name}");
        self.0.push(Claim { id, section, recipe, problem, statement, quantity, expectation });
    }

    fn stated(
        &mut self,
        problem: &'static str,
        name: String,
        statement: String,
        quantity: Quantity,
        expectation: Expectation,
    ) {
        let recipe = EXPERIMENTS.iter().find(|(_, label, _)| *label == problem);
        let recipe = recipe.map_or(problem, |(recipe, _, _)| recipe);
        self.add(Section::Paper, (recipe, Some(problem)), name, statement, quantity, expectation);
    }

    fn star25(&mut self) {
        for b in ["overlap", "no-overlap-10"] {
            self.stated(
                "star25",
                format!("regret-{b}"),
                format!("On Star-25, whose graph is a tree, Tree ends with less regret than {b}"),
                Quantity::FinalRegret { a: TREE, b },
                Expectation::Below(0.0),
            );
            self.stated(
                "star25",
                format!("f1-{b}"),
                format!("On Star-25, Tree's graph is closer to the truth than that of {b}"),
                Quantity::F1Difference { a: TREE, b },
                Expectation::Above(0.0),
            );
            self.stated(
                "star25",
                format!("cost-{b}"),
                format!("On Star-25, Tree reaches the same regret at less cost than {b}"),
                Quantity::CostToReach { a: TREE, b },
                Expectation::Above(1.0),
            );
        }
    }

    fn grid3x3(&mut self) {
        for b in [TREE, "no-overlap-10"] {
            self.stated(
                "grid3x3",
                format!("f1-overlap-{b}"),
                format!("On Grid-3×3, Overlap learns the graph better than {b}"),
                Quantity::F1Difference { a: "overlap", b },
                Expectation::Above(0.0),
            );
        }
        self.stated(
            "grid3x3",
            "f1-no-overlap-10".to_string(),
            "On Grid-3×3, Tree learns the graph better than No-Overlap".to_string(),
            Quantity::F1Difference { a: TREE, b: "no-overlap-10" },
            Expectation::Above(0.0),
        );
        for (b, name, factor) in [("overlap", "Overlap", 1.0), ("no-overlap-10", "No-Overlap", 3.0)]
        {
            self.stated(
                "grid3x3",
                format!("regret-{b}"),
                format!(
                    "On Grid-3×3, Tree and {name} are close in regret (we say: within {:.0} % of the gain)",
                    100.0 * CLOSE
                ),
                Quantity::RelativeRegret { a: TREE, b },
                Expectation::Within(CLOSE),
            );
            let more = if factor > 1.0 { "more than three times" } else { "more than" };
            self.stated(
                "grid3x3",
                format!("cost-{b}"),
                format!("On Grid-3×3, {name} needs {more} Tree's cost for the same regret"),
                Quantity::CostToReach { a: TREE, b },
                Expectation::Above(factor),
            );
        }
    }

    fn ancestry132(&mut self) {
        for b in ["no-overlap-5", "no-overlap-10"] {
            self.stated(
                "ancestry132",
                format!("regret-{b}"),
                format!("On Ancestry-132, Tree ends with less regret than {b}"),
                Quantity::FinalRegret { a: TREE, b },
                Expectation::Below(0.0),
            );
            self.stated(
                "ancestry132",
                format!("cost-{b}"),
                format!("On Ancestry-132, Tree reaches the same regret at less cost than {b}"),
                Quantity::CostToReach { a: TREE, b },
                Expectation::Above(1.0),
            );
        }
    }

    fn scalability(&mut self) {
        for b in ["overlap", "no-overlap-5", "no-overlap-10"] {
            self.add(
                Section::Paper,
                ("grid-scaling", None),
                format!("exponent-{b}"),
                format!("On Grid-i×i, Tree's total cost grows slower with the dimension than that of {b}"),
                Quantity::CostExponentDifference { a: TREE, b },
                Expectation::Below(0.0),
            );
            self.add(
                Section::Paper,
                ("grid-scaling", None),
                format!("cost-{b}"),
                format!("On the largest grid, Tree's total cost is lower than that of {b}"),
                Quantity::TotalCost { a: TREE, b },
                Expectation::Above(1.0),
            );
        }
        self.add(
            Section::Implied,
            ("grid-scaling", None),
            "exponent".to_string(),
            "On Grid-i×i, Tree's total cost grows hardly faster than linearly with the dimension (we say: exponent below 1.5)"
                .to_string(),
            Quantity::CostExponent { a: TREE },
            Expectation::Below(1.5),
        );
    }

    fn hartmann6_and_auxiliary(&mut self) {
        let others = ["random", "line-coordinate", "line-random", "line-ascent", "rembo"];
        for b in others {
            self.stated(
                "hartmann6+14",
                format!("early-{b}"),
                format!("On Hartmann6+14, Tree's regret falls faster early than that of {b}"),
                Quantity::RegretAfter { a: TREE, b, points: EARLY },
                Expectation::Below(0.0),
            );
        }
        for b in others.into_iter().filter(|b| b.starts_with("line")) {
            self.stated(
                "hartmann6+14",
                format!("late-{b}"),
                format!(
                    "On Hartmann6+14, {b} has caught up with Tree at the end (we say: to within {:.0} % of the gain, or more)",
                    100.0 * CLOSE
                ),
                Quantity::RelativeRegret { a: b, b: TREE },
                Expectation::Below(CLOSE),
            );
        }
    }

    fn styblinski_tang(&mut self) {
        for b in ["random", "line-coordinate", "line-random", "line-ascent", "rembo"] {
            self.stated(
                "styblinski-tang-250",
                format!("regret-{b}"),
                format!("On Styblinski–Tang 250, Tree scales: it ends with less regret than {b}"),
                Quantity::FinalRegret { a: TREE, b },
                Expectation::Below(0.0),
            );
        }
    }

    fn implied(&mut self) {
        for (recipe, problem, name) in EXPERIMENTS.into_iter().take(MAIN_EXPERIMENTS) {
            if problem == "styblinski-tang-250" {
                continue; // stated
            }
            self.add(
                Section::Implied,
                (recipe, Some(problem)),
                "regret-random".to_string(),
                format!("On {name}, Tree ends with less regret than random search"),
                Quantity::FinalRegret { a: TREE, b: "random" },
                Expectation::Below(0.0),
            );
        }
        self.add(
            Section::Implied,
            ("star25", Some("star25")),
            "f1-grows".to_string(),
            "On Star-25, Tree's graph gets closer to the truth with more data".to_string(),
            Quantity::F1Growth { a: TREE },
            Expectation::Above(0.0),
        );
        for (recipe, name) in [("star25", "Star-25"), ("ancestry132", "Ancestry-132")] {
            self.add(
                Section::Implied,
                (recipe, Some(recipe)),
                "f1-chance".to_string(),
                format!("On {name}, Tree's graph is closer to the truth than a random tree"),
                Quantity::F1AboveChance { a: TREE },
                Expectation::Above(0.0),
            );
        }
    }

    fn beyond(&mut self) {
        for (recipe, problem, name) in EXPERIMENTS {
            self.add(
                Section::Beyond,
                (recipe, Some(problem)),
                "default".to_string(),
                format!("On {name}, the default settings end with less regret than the paper's"),
                Quantity::FinalRegret { a: "tree", b: TREE },
                Expectation::Below(0.0),
            );
        }
        for (recipe, problem, name) in EXPERIMENTS {
            self.add(
                Section::Beyond,
                (recipe, Some(problem)),
                "default-random".to_string(),
                format!("On {name}, the default settings end with less regret than random search"),
                Quantity::FinalRegret { a: "tree", b: "random" },
                Expectation::Below(0.0),
            );
        }
        self.add(
            Section::Beyond,
            ("star25", Some("star25")),
            "default-f1".to_string(),
            "On Star-25, the default settings learn the graph better than the paper's".to_string(),
            Quantity::F1Difference { a: "tree", b: TREE },
            Expectation::Above(0.0),
        );
        self.add(
            Section::Beyond,
            ("grid-scaling", None),
            "default-exponent".to_string(),
            "On Grid-i×i, the total cost of the default settings grows hardly faster than linearly (exponent below 1.5)"
                .to_string(),
            Quantity::CostExponent { a: "tree" },
            Expectation::Below(1.5),
        );
    }
}

/// The command that makes a recipe's results.
pub fn run_command(recipe: &str, profile: Option<&str>) -> String {
    match profile {
        Some(profile) => format!("boscage bench run {recipe} --profile {profile}"),
        None => format!("boscage bench run {recipe}"),
    }
}

/// Where a recipe's results are kept, in a folder of results.
pub fn results_folder(results: &Path, recipe: &str, profile: Option<&str>) -> PathBuf {
    match profile {
        Some(profile) => results.join(format!("{recipe}-{profile}")),
        None => results.join(recipe),
    }
}

/// Judges claims by the results in `results/RECIPE` and `results/RECIPE-PROFILE`. If both exist, each claim uses the one with
/// more trials among those with enough seeds, and of equal ones the one with more seeds.
///
/// # Errors
///
/// Results exist and cannot be read, or were made with other settings than the recipe of their name has.
pub fn judge_all(claims: &[Claim], results: &Path, profile: Option<&str>) -> Result<Vec<Outcome>> {
    let mut folders: BTreeMap<&str, Vec<(PathBuf, Vec<RunResult>)>> = BTreeMap::new();
    for claim in claims {
        if folders.contains_key(claim.recipe) {
            continue;
        }
        let mut found = Vec::new();
        for profile in BTreeSet::from([None, profile]) {
            let folder = results_folder(results, claim.recipe, profile);
            if folder.is_dir() {
                // A folder that a runner has only just made has no results yet: no data.
                let runs = if has_runs(&folder) { read_runs(&folder)? } else { Vec::new() };
                check_settings(claim.recipe, &runs)?;
                found.push((folder, runs));
            }
        }
        folders.insert(claim.recipe, found);
    }
    Ok(claims
        .iter()
        .map(|claim| {
            let found = folders.get(claim.recipe).map_or(&[][..], Vec::as_slice);
            let outcomes = found.iter().map(|(folder, runs)| {
                let mut outcome = judge(claim, runs, profile);
                outcome.folder = Some(folder.clone());
                outcome
            });
            outcomes
                .max_by_key(|outcome| {
                    let seeds = outcome.values.len();
                    (seeds.min(LEAST_SEEDS), outcome.trials, seeds)
                })
                .unwrap_or_else(|| judge(claim, &[], profile))
        })
        .collect())
}

/// Claims are about what the recipes say, so results of changed problems or methods cannot speak for them.
fn check_settings(recipe: &str, runs: &[RunResult]) -> Result<()> {
    let outline = Recipe::embedded(recipe)?.outline(&Overrides::default())?;
    let json = |path: &Path, value: serde_json::Result<serde_json::Value>| {
        value.map_err(|error| Error::results(path, error.to_string()))
    };
    for run in runs {
        let (start, path) = (&run.start, &run.path);
        let problem = outline.problems.iter().find(|problem| problem.label == start.problem);
        let method = outline.methods.iter().find(|method| method.label == start.method);
        let mut changes = Vec::new();
        if let Some(problem) = problem {
            let settings = json(path, serde_json::to_value(&problem.spec))?;
            changes.push(("problem", difference(&start.problem_settings, &settings)));
        }
        if let Some(method) = method {
            let settings = method.settings()?;
            changes.push(("method", difference(&start.method_settings, &settings)));
        }
        if let Some((what, Some(change))) = changes.into_iter().find(|(_, change)| change.is_some())
        {
            let reason = format!(
                "its {what} is not that of the recipe {recipe} ({change}), which the claims are about; keep such results in another folder"
            );
            return Err(Error::results(path, reason));
        }
    }
    Ok(())
}

fn has_runs(folder: &Path) -> bool {
    let folders = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let methods = folders(folder).into_iter().flat_map(|problem| folders(&problem));
    methods
        .flat_map(|method| folders(&method))
        .any(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
}

/// Judges a claim by these runs of its recipe.
pub fn judge(claim: &Claim, runs: &[RunResult], profile: Option<&str>) -> Outcome {
    let data = Data::of(claim, runs);
    let mut outcome = Outcome {
        claim: claim.clone(),
        verdict: Verdict::NoData { command: run_command(claim.recipe, profile) },
        estimate: None,
        interval: None,
        values: Vec::new(),
        folder: None,
        trials: data.horizon as u64,
        skipped: 0,
        note: None,
    };
    let methods = claim.quantity.methods();
    let missing: Vec<&str> = methods.into_iter().filter(|method| !data.has(method)).collect();
    let exists = |method: &&&str| boscage::Method::NAMES.iter().any(|known| known.name == **method);
    if let Some(method) = missing.iter().find(|method| !exists(method)) {
        outcome.verdict = Verdict::NeedsMethod { method: method.to_string() };
        return outcome;
    }
    if !missing.is_empty() {
        let some = !runs.is_empty();
        outcome.note = some.then(|| format!("the results have no runs of {}", missing.join(", ")));
        return outcome;
    }
    let values_by_seed = data.values(&claim.quantity);
    outcome.skipped = data.seeds(&claim.quantity).len() - values_by_seed.len();
    if values_by_seed.is_empty() {
        outcome.note = Some(data.why_none(&claim.quantity));
        return outcome;
    }
    let ratio = claim.quantity.is_ratio();
    let shown = |value: f64| if ratio { value.exp() } else { value };
    let expectation = match claim.expectation {
        Expectation::Above(bound) if ratio => Expectation::Above(bound.ln()),
        Expectation::Below(bound) if ratio => Expectation::Below(bound.ln()),
        expectation => expectation,
    };
    let values: Vec<f64> = values_by_seed.iter().map(|&(_, value)| value).collect();
    let estimate = Statistic::Mean.of(&values);
    let interval = bootstrap_interval(&values, Statistic::Mean, LEVEL, RESAMPLES, 0);
    let decided = interval
        .filter(|_| values.len() >= LEAST_SEEDS)
        .and_then(|interval| expectation.judge(interval));
    outcome.verdict = match decided {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::DoesNotHold,
        None => Verdict::Undecided {
            seeds_needed: estimate
                .zip(interval)
                .and_then(|(estimate, interval)| {
                    seeds_needed(values.len(), estimate, interval, expectation)
                })
                .or((values.len() < LEAST_SEEDS).then_some(LEAST_SEEDS as u64)),
        },
    };
    outcome.estimate = estimate.map(shown);
    outcome.interval =
        interval.map(|interval| Interval { low: shown(interval.low), high: shown(interval.high) });
    outcome.values = values_by_seed.into_iter().map(|(seed, value)| (seed, shown(value))).collect();
    if values.len() < LEAST_SEEDS {
        outcome.note = Some(format!("fewer than {LEAST_SEEDS} seeds decide nothing"));
    }
    outcome
}

/// The half-width of an interval falls with √n, so it just reaches the bound at n · (half-width / distance)².
fn seeds_needed(
    seeds: usize,
    estimate: f64,
    interval: Interval,
    expectation: Expectation,
) -> Option<u64> {
    let half_width = (interval.high - interval.low) / 2.0;
    let needed = seeds as f64 * (half_width / expectation.distance(estimate)).powi(2);
    // More than this says only that the estimate is at the bound.
    (needed < 1e4).then(|| (needed.ceil() as u64).max(LEAST_SEEDS as u64).max(seeds as u64 + 1))
}

/// The runs that concern a claim.
struct Data<'a> {
    /// By method, then problem, then seed: those that are complete.
    runs: BTreeMap<&'a str, BTreeMap<&'a str, BTreeMap<u64, &'a RunResult>>>,
    /// Seeds with any run of a method, complete or not.
    begun: BTreeMap<&'a str, BTreeSet<u64>>,
    /// Trials of a complete run.
    horizon: usize,
}

impl<'a> Data<'a> {
    fn of(claim: &Claim, runs: &'a [RunResult]) -> Self {
        let methods = claim.quantity.methods();
        let concerned: Vec<&RunResult> = runs
            .iter()
            .filter(|run| methods.contains(&run.start.method.as_str()))
            .filter(|run| claim.problem.is_none_or(|problem| problem == run.start.problem))
            .collect();
        let planned = |run: &&RunResult| run.trials.len().max(run.start.trials as usize);
        let horizon = concerned.iter().map(planned).max().unwrap_or_default();
        let mut data = Self { runs: BTreeMap::new(), begun: BTreeMap::new(), horizon };
        for run in concerned {
            let (method, problem) = (run.start.method.as_str(), run.start.problem.as_str());
            data.begun.entry(method).or_default().insert(run.start.seed);
            // A run that ended early for a reason of its own, such as a space without new points, is complete.
            if run.trials.len() == horizon || (run.end.is_some() && !run.trials.is_empty()) {
                let problems = data.runs.entry(method).or_default();
                problems.entry(problem).or_default().insert(run.start.seed, run);
            }
        }
        data
    }

    fn has(&self, method: &str) -> bool {
        self.begun.contains_key(method)
    }

    /// Seeds that have begun with all methods of the quantity.
    fn seeds(&self, quantity: &Quantity) -> BTreeSet<u64> {
        let mut methods = quantity.methods().into_iter();
        let of = |method: &str| self.begun.get(method).cloned().unwrap_or_default();
        let first = methods.next().map(of).unwrap_or_default();
        methods.fold(first, |seeds, method| seeds.intersection(&of(method)).copied().collect())
    }

    /// Complete runs of a method. Claims about one problem see only that one.
    fn of_method(&self, method: &str) -> impl Iterator<Item = &'a RunResult> {
        self.runs
            .get(method)
            .into_iter()
            .flat_map(|problems| problems.values())
            .flat_map(|seeds| seeds.values().copied())
    }

    fn each(&self, method: &str, value: impl Fn(&RunResult) -> Option<f64>) -> Vec<(u64, f64)> {
        let finite = |run: &&RunResult| value(run).filter(|value| value.is_finite());
        self.of_method(method).filter_map(|run| Some((run.start.seed, finite(&run)?))).collect()
    }

    /// A value of two runs with the same seed.
    fn pairs(
        &self,
        a: &str,
        b: &str,
        value: impl Fn(&RunResult, &RunResult) -> Option<f64>,
    ) -> Vec<(u64, f64)> {
        let others: BTreeMap<u64, &RunResult> =
            self.of_method(b).map(|run| (run.start.seed, run)).collect();
        self.each(a, |run| value(run, others.get(&run.start.seed)?))
    }

    fn values(&self, quantity: &Quantity) -> Vec<(u64, f64)> {
        use Quantity::*;
        // Regret up to the optimum, which is the same for both.
        let difference = |a: &str, b: &str, loss: &dyn Fn(&RunResult) -> Option<f64>| {
            paired_differences(&self.each(a, loss), &self.each(b, loss))
        };
        match *quantity {
            FinalRegret { a, b } => difference(a, b, &final_loss),
            RegretAfter { a, b, points } => difference(a, b, &|run| loss_after(run, points)),
            RelativeRegret { a, b } => self.pairs(a, b, |a, b| {
                let start = loss_after(a, 0)?;
                let gain = start - final_loss(a)?.min(final_loss(b)?);
                // Neither found anything better: they are the same.
                Some(if gain > 0.0 { (final_loss(a)? - final_loss(b)?) / gain } else { 0.0 })
            }),
            F1Difference { a, b } => self.pairs(a, b, mean_f1_difference),
            F1Growth { a } => self.each(a, |run| {
                let first = run.trials.iter().find(|trial| trial.learned.is_some())?;
                Some(final_f1(run)? - first.score?.f1)
            }),
            F1AboveChance { a } => {
                self.each(a, |run| Some(final_f1(run)? - 2.0 / run.start.dimension as f64))
            }
            CostToReach { a, b } => self.pairs(a, b, log_cost_ratio),
            CostExponent { a } => self.exponents(a, &self.common_problems(&[a])),
            TotalCost { a, b } => {
                let common = self.common_problems(&[a, b]);
                let both =
                    self.of_method(a).filter(|run| common.contains(run.start.problem.as_str()));
                let largest = both.max_by_key(|run| run.start.dimension);
                let problem = largest.map(|run| run.start.problem.as_str());
                let log_cost = |run: &RunResult| {
                    let cost = run.trials.last()?.cost;
                    (Some(run.start.problem.as_str()) == problem && cost > 0)
                        .then(|| (cost as f64).ln())
                };
                paired_differences(&self.each(b, log_cost), &self.each(a, log_cost))
            }
            CostExponentDifference { a, b } => {
                let common = self.common_problems(&[a, b]);
                paired_differences(&self.exponents(a, &common), &self.exponents(b, &common))
            }
        }
    }

    /// Problems that all these methods have complete runs of.
    fn common_problems(&self, methods: &[&str]) -> BTreeSet<&'a str> {
        let of = |method: &&str| -> BTreeSet<&'a str> {
            self.runs
                .get(*method)
                .into_iter()
                .flat_map(|problems| problems.keys().copied())
                .collect()
        };
        let sets = methods.iter().map(of);
        sets.reduce(|a, b| a.intersection(&b).copied().collect()).unwrap_or_default()
    }

    /// For each seed that has all the problems, the slope of log cost over log dimension.
    fn exponents(&self, method: &str, problems: &BTreeSet<&str>) -> Vec<(u64, f64)> {
        let mut points: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for run in self.of_method(method) {
            let cost = run.trials.last().map_or(0, |trial| trial.cost);
            if problems.contains(run.start.problem.as_str()) && cost > 0 {
                let point = ((run.start.dimension as f64).ln(), (cost as f64).ln());
                points.entry(run.start.seed).or_default().push(point);
            }
        }
        let whole = points.into_iter().filter(|(_, points)| points.len() == problems.len());
        whole.filter_map(|(seed, points)| Some((seed, slope(&points)?))).collect()
    }

    fn why_none(&self, quantity: &Quantity) -> String {
        use Quantity::*;
        match quantity {
            RegretAfter { points, .. } => {
                format!("no seed has complete runs of more than {points} chosen points")
            }
            F1Difference { .. } | F1Growth { .. } | F1AboveChance { .. } => {
                "no seed has complete runs with a learned graph and a true one".to_string()
            }
            CostExponent { .. } | CostExponentDifference { .. } | TotalCost { .. } => {
                "no seed has complete runs with a cost in three or more dimensions".to_string()
            }
            FinalRegret { .. } | RelativeRegret { .. } | CostToReach { .. } => {
                "no seed has complete runs of all methods of the claim".to_string()
            }
        }
    }
}

/// The best value at a trial with the sign that makes small good. It is the regret up to a constant of the problem.
fn loss(run: &RunResult, trial: usize) -> Option<f64> {
    run.trials.get(trial)?.best_value.map(|value| -run.start.goal.sign() * value)
}

fn final_loss(run: &RunResult) -> Option<f64> {
    loss(run, run.trials.len().checked_sub(1)?)
}

/// After this many chosen points. "Early" has to be before the end.
fn loss_after(run: &RunResult, points: u64) -> Option<f64> {
    let trials = run.start.initial_points + points;
    ((run.trials.len() as u64) > trials).then(|| loss(run, trials.checked_sub(1)? as usize))?
}

fn final_f1(run: &RunResult) -> Option<f64> {
    Some(run.trials.last()?.score?.f1)
}

fn mean_f1_difference(a: &RunResult, b: &RunResult) -> Option<f64> {
    let both = a.trials.iter().zip(&b.trials);
    let scores: Vec<f64> = both.filter_map(|(a, b)| Some(a.score?.f1 - b.score?.f1)).collect();
    Statistic::Mean.of(&scores)
}

/// Logarithm of what b needs over what a needs to reach the best value that both reach.
fn log_cost_ratio(a: &RunResult, b: &RunResult) -> Option<f64> {
    let target = final_loss(a)?.max(final_loss(b)?);
    let cost = |run: &RunResult| {
        let reached = (0..run.trials.len()).find(|&t| loss(run, t).is_some_and(|l| l <= target))?;
        Some(run.trials.get(reached)?.cost)
    };
    match (cost(a)?, cost(b)?) {
        // Reached in the initial design, which they share.
        (0, 0) => Some(0.0),
        // One of them has no message-passing cost at all: the ratio says nothing.
        (0, _) | (_, 0) => None,
        (a, b) => Some((b as f64 / a as f64).ln()),
    }
}

/// Slope of the least-squares line. Nothing for fewer than three distinct abscissas.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut abscissas: Vec<f64> = points.iter().map(|point| point.0).collect();
    abscissas.sort_unstable_by(f64::total_cmp);
    abscissas.dedup();
    if abscissas.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let above: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let below: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    Some(above / below)
}

/// The numbers of an outcome as they are shown: estimate, interval and number of seeds.
pub fn numbers(outcome: &Outcome) -> [String; 3] {
    let dash = || "–".to_string();
    [
        outcome.estimate.map_or_else(dash, short),
        outcome.interval.map_or_else(dash, |i| format!("{} … {}", short(i.low), short(i.high))),
        if outcome.values.is_empty() { dash() } else { outcome.values.len().to_string() },
    ]
}

/// Three digits, as short as they can be told.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    match digits {
        -3..=6 => format!("{value:.*}", digits.max(0) as usize).replace('-', "−"),
        _ => format!("{value:.2e}").replace('-', "−"),
    }
}

/// All outcomes as a Markdown document: a table for each section, then the numbers behind it.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::from("# The paper's claims\n");
    let _ = writeln!(
        text,
        "\nEvery claim is judged by the {:.0} % bootstrap interval of the mean over paired seeds. \
         Tree is the method `tree-paper`.",
        100.0 * LEVEL
    );
    for section in [Section::Paper, Section::Implied, Section::Beyond] {
        let mut outcomes =
            outcomes.iter().filter(|outcome| outcome.claim.section == section).peekable();
        if outcomes.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "\n## {}\n", section.title());
        let _ = writeln!(
            text,
            "| claim | verdict | estimate | 95 % interval | seeds | trials | what |"
        );
        let _ = writeln!(text, "| --- | --- | ---: | ---: | ---: | ---: | --- |");
        for outcome in outcomes {
            let [estimate, interval, seeds] = numbers(outcome);
            let trials = if outcome.values.is_empty() { 0 } else { outcome.trials };
            let trials = if trials == 0 { "–".to_string() } else { trials.to_string() };
            let _ = writeln!(
                text,
                "| **{}**<br>{} | {} | {estimate} | {interval} | {seeds} | {trials} | {} {} |",
                outcome.claim.id,
                outcome.claim.statement,
                outcome.verdict.describe(),
                outcome.claim.quantity.describe(),
                outcome.claim.expectation.describe(),
            );
        }
    }
    let known: Vec<&Outcome> = outcomes.iter().filter(|o| !o.values.is_empty()).collect();
    if !known.is_empty() {
        let _ = writeln!(text, "\n## The numbers behind it\n");
        let _ = writeln!(text, "| claim | lowest | quartiles | highest | results | note |");
        let _ = writeln!(text, "| --- | ---: | ---: | ---: | --- | --- |");
    }
    for outcome in known {
        let values: Vec<f64> = outcome.values.iter().map(|&(_, value)| value).collect();
        let at = |share| quantile(&values, share).map_or("–".to_string(), short);
        let folder = outcome.folder.as_deref().map_or(String::new(), |f| f.display().to_string());
        let _ = writeln!(
            text,
            "| {} | {} | {}, {}, {} | {} | {folder} | {} |",
            outcome.claim.id,
            at(0.0),
            at(0.25),
            at(0.5),
            at(0.75),
            at(1.0),
            remarks(outcome),
        );
    }
    let commands: BTreeSet<&str> = outcomes
        .iter()
        .filter_map(|outcome| match &outcome.verdict {
            Verdict::NoData { command } => Some(command.as_str()),
            _ => None,
        })
        .collect();
    if !commands.is_empty() {
        let _ = writeln!(text, "\n## Missing results\n\n```sh");
        for command in commands {
            let _ = writeln!(text, "{command}");
        }
        let _ = writeln!(text, "```");
    }
    text
}

/// The note of an outcome, and how many seeds could not be used.
pub fn remarks(outcome: &Outcome) -> String {
    let skipped = (outcome.skipped > 0).then(|| match outcome.skipped {
        1 => "1 seed could not be used".to_string(),
        n => format!("{n} seeds could not be used"),
    });
    let parts: Vec<String> = outcome.note.clone().into_iter().chain(skipped).collect();
    parts.join("; ")
}
