//! `boscage bench problems`, `methods` and `recipes`: what there is.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::bail;
use boscage::Method;
use boscage_bench::problem::Preset;
use boscage_bench::problems::presets::{ProblemFacts, facts, preset, presets};
use boscage_bench::recipe::{Overrides, Recipe, choices, embedded};
use boscage_bench::{Goal, ProblemSpec};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets as borders};
use serde_json::json;

/// List the problems, or show one of them as TOML for a recipe.
#[derive(Args)]
#[command(after_help = "Examples:
  boscage bench problems
  boscage bench problems star25
  boscage bench problems --json")]
pub(crate) struct ProblemsArgs {
    /// A problem: shows its settings as TOML for a recipe.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// List the methods, or show all settings of one of them.
#[derive(Args)]
#[command(after_help = "Examples:
  boscage bench methods
  boscage bench methods tree
  boscage bench methods tree-paper --json")]
pub(crate) struct MethodsArgs {
    /// A method: shows its settings with defaults and meaning.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// List the recipes that come with boscage, or show one of them.
#[derive(Args)]
#[command(after_help = "Examples:
  boscage bench recipes
  boscage bench recipes star25 > my.toml       begin a recipe of your own")]
pub(crate) struct RecipesArgs {
    /// A recipe: prints its text.
    name: Option<String>,
}

/// A table with these headings, no wider than the terminal.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(borders::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    // Elsewhere than in a terminal lines are as long as they have to be: programs read them.
    if let Some((_, width)) = console::Term::stdout().size_checked() {
        table.set_width(width);
    }
    table.set_header(headings.iter().map(|heading| heading.to_uppercase()));
    table
}

/// A table as text: columns two blanks apart, no blanks at the ends of lines.
pub(crate) fn text(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// `boscage bench problems`.
pub(crate) fn problems(args: &ProblemsArgs) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if let Some(name) = &args.name {
        let Some(preset) = preset(name) else {
            bail!(
                "there is no problem {name:?}{}",
                choices(name, presets().iter().map(|preset| preset.name))
            );
        };
        if args.json {
            let entry =
                json!({ "name": preset.name, "summary": preset.summary, "settings": preset.spec });
            writeln!(stdout, "{}", serde_json::to_string_pretty(&entry)?)?;
        } else {
            writeln!(stdout, "# {}: {}", preset.name, preset.summary)?;
            // With its place in the recipe, for the headings of tables within.
            let place =
                BTreeMap::from([("problems", BTreeMap::from([(preset.name, &preset.spec)]))]);
            write!(stdout, "{}", toml::to_string(&place)?)?;
        }
        return Ok(());
    }
    let all = presets();
    let facts = all.iter().map(|preset| Ok(facts(preset.spec.build(0, Path::new(""))?.as_ref())));
    let facts = facts.collect::<anyhow::Result<Vec<_>>>()?;
    if args.json {
        let entries: Vec<_> =
            all.iter().zip(&facts).map(|(preset, facts)| problem_json(preset, facts)).collect();
        writeln!(stdout, "{}", serde_json::to_string_pretty(&entries)?)?;
        return Ok(());
    }
    let mut rows =
        table(&["problem", "D", "domain", "sought", "optimum", "noise", "edges", "what it is"]);
    for (preset, facts) in all.iter().zip(&facts) {
        rows.add_row([
            preset.name.to_string(),
            facts.dimension.to_string(),
            facts.domain.clone(),
            match facts.goal {
                Goal::Minimize => "min".to_string(),
                Goal::Maximize => "max".to_string(),
            },
            match facts.optimum {
                None => "unknown".to_string(),
                // Each seed draws a function with an optimum of its own.
                Some(_) if matches!(preset.spec, ProblemSpec::Additive(_)) => "by seed".to_string(),
                Some((value, _)) => format!("{}", (value * 1e6).round() / 1e6).replace('-', "−"),
            },
            facts.noise_std.to_string(),
            facts.edges.map_or("unknown".to_string(), |edges| edges.to_string()),
            preset.summary.to_string(),
        ]);
    }
    writeln!(stdout, "{}\n", text(rows))?;
    writeln!(
        stdout,
        "noise is the standard deviation; edges are those of the true dependency graph, for seed 0 if it is random"
    )?;
    writeln!(stdout, "All settings of a problem, for a recipe: boscage bench problems star25")?;
    writeln!(stdout, "In a recipe:")?;
    writeln!(stdout, "  [problems.star-coarse]")?;
    writeln!(stdout, "  preset = \"star25\"")?;
    writeln!(stdout, "  levels = 21")?;
    Ok(())
}

fn problem_json(preset: &Preset, facts: &ProblemFacts) -> serde_json::Value {
    json!({
        "name": preset.name,
        "summary": preset.summary,
        "dimension": facts.dimension,
        "domain": facts.domain,
        "goal": facts.goal,
        // Of seed 0, where the seed makes a difference.
        "optimum": facts.optimum.map(|(value, certainty)| json!({ "value": value, "certainty": certainty })),
        "noise_std": facts.noise_std,
        "edges": facts.edges,
        "settings": preset.spec,
    })
}

/// `boscage bench methods`.
pub(crate) fn methods(args: &MethodsArgs) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let Some(name) = &args.name else {
        if args.json {
            let all =
                Method::NAMES.map(|known| json!({ "name": known.name, "summary": known.summary }));
            writeln!(stdout, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(());
        }
        let mut rows = table(&["method", "what it is"]);
        rows.add_rows(Method::NAMES.map(|known| [known.name, known.summary]));
        writeln!(stdout, "{}\n", text(rows))?;
        writeln!(stdout, "All settings of a method: boscage bench methods tree")?;
        writeln!(stdout, "In a recipe:")?;
        writeln!(stdout, "  [methods.tree-few-samples]")?;
        writeln!(stdout, "  name = \"tree\"")?;
        writeln!(stdout, "  settings = {{ structure.tree.samples = 50 }}")?;
        return Ok(());
    };
    if !Method::NAMES.iter().any(|known| known.name == name) {
        bail!(
            "there is no method {name:?}{}",
            choices(name, Method::NAMES.map(|known| known.name))
        );
    }
    let settings = boscage_study::describe(name)?;
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&settings)?)?;
    } else if settings.is_empty() {
        writeln!(stdout, "{name} has no settings")?;
    } else {
        let mut rows = table(&["setting", "default", "what it means"]);
        for setting in &settings {
            rows.add_row([
                setting.path.clone(),
                toml_value(&setting.default),
                setting.help.clone(),
            ]);
        }
        writeln!(stdout, "{}\n", text(rows))?;
        writeln!(
            stdout,
            "In a recipe: settings.initial_points = 20; \"none\" switches an optional setting off."
        )?;
    }
    Ok(())
}

/// A value as it is written in a recipe.
fn toml_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "\"none\"".to_string(),
        serde_json::Value::Object(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{key} = {}", toml_value(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// `boscage bench recipes`.
pub(crate) fn recipes(args: &RecipesArgs) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if let Some(name) = &args.name {
        let known = || embedded().iter().map(|(name, _)| *name);
        let Some((_, text)) = embedded().iter().find(|(known, _)| known == name) else {
            bail!("there is no recipe {name:?}{}", choices(name, known()));
        };
        write!(stdout, "{text}")?;
        return Ok(());
    }
    let mut rows =
        table(&["recipe", "profile", "problems", "methods", "seeds", "trials", "what it is"]);
    for (name, _) in embedded() {
        let recipe = Recipe::embedded(name)?;
        let profiles = recipe.profiles().into_iter().map(Some);
        for profile in std::iter::once(None).chain(profiles) {
            let outline =
                recipe.outline(&Overrides { profile: profile.clone(), ..Overrides::default() })?;
            let first = profile.is_none();
            rows.add_row([
                if first { name.to_string() } else { String::new() },
                profile.unwrap_or_default(),
                outline.problems.len().to_string(),
                outline.methods.len().to_string(),
                outline.seeds.len().to_string(),
                outline.trials.to_string(),
                if first { outline.title } else { String::new() },
            ]);
        }
    }
    writeln!(stdout, "{}\n", text(rows))?;
    writeln!(stdout, "Run one: boscage bench run star25 --profile quick")?;
    writeln!(stdout, "Begin your own: boscage bench recipes star25 > my.toml")?;
    Ok(())
}
