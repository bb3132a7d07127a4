//! A method chosen by name, with some of its settings changed.
//!
//! ```
//! use boscage_study::MethodChoice;
//!
//! let choice: MethodChoice = serde_json::from_str(
//!     r#"{"name": "tree-paper", "settings": {"structure": {"tree": {"samples": 50}}}}"#,
//! )?;
//! let method = choice.resolve()?;
//! # assert_ne!(method, boscage::Method::named("tree-paper")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use boscage::Method;
use regex_lite::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The name of a method, and the settings that differ from that name's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodChoice {
    /// A name that [`Method::named`] knows.
    pub name: String,
    /// Changed settings; tables within are changed key by key. The text "none" stands for an absent value, for which TOML has no
    /// word.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

impl MethodChoice {
    /// The method with all its settings. [`Method::build`] checks that they make sense together.
    pub fn resolve(&self) -> Result<Method> {
        let named = Method::named(&self.name)?;
        if self.settings.is_empty() {
            return Ok(named);
        }
        let refused = |reason: String| Error::Method { name: self.name.clone(), reason };
        let mut whole = serde_json::to_value(named).map_err(|e| refused(e.to_string()))?;
        let Some(settings) = whole.get_mut("settings") else {
            let given = self.settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(refused(format!("it has no settings; remove {given}")));
        };
        merge(settings, &with_absent(&Value::Object(self.settings.clone())));
        serde_path_to_error::deserialize(whole).map_err(|error| {
            let path = error.path().to_string();
            let path = path.strip_prefix("settings.").unwrap_or(&path);
            refused(format!("setting {path}: {}", error.inner()))
        })
    }
}

/// The value with "none" as what it stands for. Not in lists, where it may be a choice.
fn with_absent(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "none" => Value::Null,
        Value::Object(table) => {
            table.iter().map(|(key, value)| (key.clone(), with_absent(value))).collect()
        }
        other => other.clone(),
    }
}

/// Reads a method with all its settings, also as it was stored before settings came and went, so that a study goes on with those
/// that it began with: all pairs had a constant of variance 1 that was no setting, a plain GP had none, variables had nothing in
/// common, no model saw logarithms or stretched ranges, `surprise` was there and 0 unless it was set, and kernel learning could start
/// from the initial parameters, too, with few observations only. Local asks could leave the best point where nothing was left to gain
/// (`local.gain`); that is gone, and a study that did goes on without.
pub(crate) fn stored_method<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Method, D::Error> {
    let mut method = Value::deserialize(deserializer)?;
    let settings = method.get_mut("settings").and_then(Value::as_object_mut);
    if let Some(settings) = settings.filter(|settings| settings.contains_key("structure")) {
        if settings.get("surprise").and_then(Value::as_f64) == Some(0.0) {
            settings.remove("surprise");
        }
        if settings.get("kernel_start").is_some_and(|start| start == "initial-early") {
            settings.insert("kernel_start".to_string(), "present-and-initial".into());
        }
        let of_pairs = if settings["structure"] == "pairs" { 1.0 } else { 0.0 };
        settings.entry("constant").or_insert(of_pairs.into());
        settings.entry("common_std").or_insert(0.0.into());
        if let Some(Value::Object(guard)) = settings.get_mut("guard") {
            guard.entry("constant").or_insert(0.0.into());
            guard.entry("logarithm").or_insert(false.into());
            guard.entry("stretch").or_insert(false.into());
        }
        if let Some(Value::Object(local)) = settings.get_mut("local") {
            local.remove("gain");
        }
    }
    serde_json::from_value(method).map_err(D::Error::custom)
}

/// Changes `whole` key by key. A table with a single key that `whole` does not have is a choice between alternatives
/// (`{"every": 15}` for `{"growth": 0.1}`) and replaces what was there.
pub fn merge(whole: &mut Value, change: &Value) {
    match (whole, change) {
        (Value::Object(whole), Value::Object(change)) => {
            let is_choice = change.len() == 1
                && whole.len() == 1
                && !change.keys().all(|key| whole.contains_key(key));
            if is_choice {
                whole.clear();
            }
            for (key, value) in change {
                merge(whole.entry(key).or_insert(Value::Null), value);
            }
        }
        (whole, change) => *whole = change.clone(),
    }
}

/// One setting of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingDescription {
    /// Its place in the settings, with dots between the keys: `structure.tree.samples`.
    pub path: String,
    /// Its value unless it is changed.
    pub default: Value,
    /// What it means.
    pub help: String,
}

/// All settings of the method of this name, in the order of their paths. Settings that are tables are given key by key,
/// choices between alternatives (`{"growth": 0.1}`) as a whole.
pub fn describe(name: &str) -> Result<Vec<SettingDescription>> {
    let refused =
        |reason: &str| Error::Method { name: name.to_string(), reason: reason.to_string() };
    let method = serde_json::to_value(Method::named(name)?).map_err(|e| refused(&e.to_string()))?;
    let schema = Schema::of_methods();
    let variant = schema.alternatives(&schema.whole).find(|variant| {
        variant.pointer("/properties/name/const").or(variant.pointer("/properties/name/enum/0"))
            == method.get("name")
    });
    let variant = variant.ok_or_else(|| refused("its settings have no schema"))?;
    let mut found = Vec::new();
    if let (Some(defaults), Some(part)) =
        (method.get("settings"), variant.pointer("/properties/settings"))
    {
        schema.walk("", defaults, part, &mut found);
    }
    Ok(found)
}

/// The JSON schema of all methods.
struct Schema {
    whole: Value,
    link: Option<Regex>,
}

impl Schema {
    fn of_methods() -> Self {
        // A link to an item: only its last name means something outside of the documentation.
        let link = Regex::new(r"\[`(?:\w+::)*(\w+)(?:\(\))?`\](?:\([^)]*\))?").ok();
        Self { whole: schemars::schema_for!(Method).to_value(), link }
    }

    /// What a reference refers to, or the schema itself; of an optional one, that of its content.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let target =
                reference.strip_prefix('#').and_then(|pointer| self.whole.pointer(pointer));
            return target.map_or(schema, |target| self.resolve(target));
        }
        let mut contents =
            list(schema, "anyOf").filter(|part| part.get("type") != Some(&Value::from("null")));
        match (contents.next(), contents.next()) {
            (Some(content), None) => self.resolve(content),
            _ => schema,
        }
    }

    fn alternatives<'a>(&'a self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        list(self.resolve(schema), "oneOf")
    }

    /// Describes a setting, or each setting of a table.
    fn walk(
        &self,
        path: &str,
        default: &Value,
        schema: &Value,
        found: &mut Vec<SettingDescription>,
    ) {
        let resolved = self.resolve(schema);
        let properties = resolved.get("properties").and_then(Value::as_object);
        if let (Value::Object(defaults), Some(properties)) = (default, properties) {
            for (key, default) in defaults {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                self.walk(&path, default, properties.get(key).unwrap_or(&Value::Null), found);
            }
            return;
        }
        // What was chosen among alternatives may itself be a table of settings.
        if let Value::Object(chosen) = default
            && let (1, Some((key, content))) = (chosen.len(), chosen.iter().next())
            && let Some(part) =
                list(resolved, "oneOf").find_map(|one| one.get("properties")?.get(key))
            && content.is_object()
            && self.resolve(part).get("properties").is_some()
        {
            return self.walk(&format!("{path}.{key}"), content, part, found);
        }
        let own = schema.get("description").or(resolved.get("description")).and_then(Value::as_str);
        let mut help = self.plain(own.unwrap_or_default());
        let choices = self.choices(resolved);
        if !choices.is_empty() {
            help = format!("{help} Choices: {}.", choices.join(", "));
        } else if let Some(properties) = properties {
            let keys: Vec<&str> = properties.keys().map(String::as_str).collect();
            help = format!("{help} A table with {}.", keys.join(", "));
        }
        let help = help.trim().to_string();
        found.push(SettingDescription { path: path.to_string(), default: default.clone(), help });
    }

    /// The alternatives of a choice as they are written: `"greedy"`, `{"every": integer}`.
    fn choices(&self, resolved: &Value) -> Vec<String> {
        let mut choices: Vec<String> = list(resolved, "enum").map(Value::to_string).collect();
        for alternative in list(resolved, "oneOf") {
            choices.extend(alternative.get("const").map(Value::to_string));
            choices.extend(list(alternative, "enum").map(Value::to_string));
            for (key, content) in
                alternative.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let content =
                    self.resolve(content).get("type").and_then(Value::as_str).unwrap_or("…");
                choices.push(format!("{{\"{key}\": {content}}}"));
            }
        }
        choices
    }

    /// A doc comment as plain text in one line.
    fn plain(&self, text: &str) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match &self.link {
            Some(link) => link.replace_all(&text, "`$1`").into_owned(),
            None => text,
        }
    }
}

/// The elements of a list in a schema; none if there is no such list.
fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use boscage::additive_gp_ucb::{Acquisition, AdditiveGpUcbSettings, KernelStart, Learning};
    use boscage::guard::Guard;
    use boscage::kernel_learning::Budget;
    use boscage::optimizer::NamedMethod;
    use boscage::structure::Structure;
    use serde_json::json;

    use super::*;

    fn choice(name: &str, settings: Value) -> MethodChoice {
        serde_json::from_value(json!({"name": name, "settings": settings})).unwrap()
    }

    fn tree(name: &str, settings: Value) -> AdditiveGpUcbSettings {
        match choice(name, settings).resolve().unwrap() {
            Method::Tree(settings) => *settings,
            other => panic!("{other:?}"),
        }
    }

    fn refused(name: &str, settings: Value) -> String {
        choice(name, settings).resolve().unwrap_err().to_string()
    }

    #[test]
    fn every_name_without_settings_is_the_named_method() {
        for NamedMethod { name, .. } in Method::NAMES {
            let bare: MethodChoice = serde_json::from_value(json!({"name": name})).unwrap();
            assert_eq!(bare.resolve().unwrap(), Method::named(name).unwrap());
            assert_eq!(choice(name, json!({})).resolve().unwrap(), Method::named(name).unwrap());
        }
        let unknown = refused("tre", json!({"samples": 1}));
        assert!(unknown.contains("tre") && unknown.contains("tree-paper"), "{unknown}");
    }

    #[test]
    fn a_method_that_was_stored_before_is_what_it_was() {
        let stored = |name: &str, surprise: f64| {
            let mut json = serde_json::to_value(Method::named(name).unwrap()).unwrap();
            let settings = json["settings"].as_object_mut().unwrap();
            settings.remove("constant");
            settings.remove("common_std");
            if let Some(prior) = settings["kernel_learning"]["prior"].as_object_mut() {
                prior.remove("common_std");
            }
            settings.insert("surprise".to_string(), json!(surprise));
            if name == "boscage" {
                settings.insert("kernel_start".to_string(), json!("initial-early"));
            }
            if let Some(guard) = settings["guard"].as_object_mut() {
                guard.remove("constant");
                guard.remove("logarithm");
                guard.remove("stretch");
            }
            if let Some(local) = settings["local"].as_object_mut() {
                local.insert("gain".to_string(), json!(0.5));
            }
            json
        };
        for (name, constant) in [("boscage", 1.0), ("gp-ucb", 0.0), ("tree", 0.0)] {
            let method = stored_method(stored(name, 0.0)).unwrap();
            let (Method::Boscage(found) | Method::GpUcb(found) | Method::Tree(found)) = &method
            else {
                panic!("{method:?}")
            };
            let (Method::Boscage(named) | Method::GpUcb(named) | Method::Tree(named)) =
                Method::named(name).unwrap()
            else {
                panic!("{name}")
            };
            let (constant_of_plain, logarithm, stretch) = (0.0, false, false);
            let guard = named.guard.map(|guard| Guard {
                constant: constant_of_plain,
                logarithm,
                stretch,
                ..guard
            });
            let kernel_start = match name {
                "boscage" => KernelStart::PresentAndInitial,
                _ => named.kernel_start,
            };
            let common_std = 0.0;
            let expected =
                AdditiveGpUcbSettings { constant, common_std, guard, kernel_start, ..*named };
            assert_eq!(**found, expected);
        }
        // What was asked for and is gone is not passed over.
        let refused = stored_method(stored("boscage", 1.0)).unwrap_err().to_string();
        assert!(refused.contains("surprise"), "{refused}");
        // What is stored now is read as it is.
        for NamedMethod { name, .. } in Method::NAMES {
            let method = Method::named(name).unwrap();
            assert_eq!(stored_method(serde_json::to_value(&method).unwrap()).unwrap(), method);
        }
    }

    #[test]
    fn all_settings_of_a_method_as_a_change_change_nothing() {
        for NamedMethod { name, .. } in Method::NAMES {
            let method = Method::named(name).unwrap();
            if let Some(settings) = serde_json::to_value(&method).unwrap().get("settings") {
                assert_eq!(choice(name, settings.clone()).resolve().unwrap(), method);
            }
        }
    }

    #[test]
    fn none_switches_off_what_may_be_absent() {
        let boscage = |settings: Value| match choice("boscage", settings).resolve().unwrap() {
            Method::Boscage(settings) => *settings,
            other => panic!("{other:?}"),
        };
        let off = boscage(json!({"guard": "none", "local": {"plain": "none"}}));
        let mut expected = AdditiveGpUcbSettings::boscage();
        expected.guard = None;
        expected.local.as_mut().unwrap().plain = None;
        assert_eq!(off, expected);
        assert_eq!(off, boscage(json!({"guard": null, "local": {"plain": null}})));
        let refused = refused("boscage", json!({"news": "none"}));
        assert!(refused.contains("setting news"), "{refused}");
    }

    #[test]
    fn only_the_changed_settings_differ() {
        let changed = tree(
            "tree-paper",
            json!({"structure": {"tree": {"samples": 50}}, "zoom": {"levels": 2}, "scale": 1.5}),
        );
        let mut expected = AdditiveGpUcbSettings::paper();
        if let Structure::Tree(learning) = &mut expected.structure {
            learning.samples = 50;
        }
        expected.zoom.levels = 2;
        expected.scale = Some(1.5);
        assert_eq!(changed, expected);
    }

    #[test]
    fn alternatives_replace_each_other() {
        let changed = tree(
            "tree",
            json!({
                "learning": {"every": 15},
                "acquisition": "additive",
                "kernel_learning": {"budget": "growing"},
            }),
        );
        assert_eq!(changed.learning, Learning::Every(15));
        assert_eq!(changed.acquisition, Acquisition::Additive);
        assert_eq!(changed.kernel_learning.budget, Budget::Growing);
        let back = tree(
            "tree-paper",
            json!({
                "learning": {"growth": 0.5},
                "acquisition": {"joint": 1.0},
                "kernel_learning": {"budget": {"fixed": 9}},
            }),
        );
        assert_eq!(back.learning, Learning::Growth(0.5));
        assert_eq!(back.acquisition, Acquisition::Joint(1.0));
        assert_eq!(back.kernel_learning.budget, Budget::Fixed(9));
        assert_eq!(
            tree("tree", json!({"learning": {"growth": 0.3}})).learning,
            Learning::Growth(0.3)
        );
        let both = refused("tree", json!({"learning": {"every": 15, "growth": 0.1}}));
        assert!(both.contains("setting learning"), "{both}");
    }

    #[test]
    fn null_switches_optional_settings_off() {
        let off =
            tree("tree", json!({"kernel_learning": {"prior": null, "noise_std_bounds": null}}));
        assert_eq!((off.kernel_learning.prior, off.kernel_learning.noise_std_bounds), (None, None));
        assert_eq!(
            tree("tree-paper", json!({"scale": null, "max_evaluations": null})).max_evaluations,
            None
        );
        let needed = refused("tree", json!({"lengthscale": null}));
        assert!(needed.contains("setting lengthscale") && needed.contains("null"), "{needed}");
        // A table that is not there has nothing to change: it must be given as a whole.
        let partial = refused(
            "tree-paper",
            json!({"kernel_learning": {"prior": {"scales": {"median": 2.0}}}}),
        );
        assert!(
            partial.contains("kernel_learning.prior") && partial.contains("missing field"),
            "{partial}"
        );
    }

    #[test]
    fn a_refusal_names_the_setting_and_what_would_be_right() {
        let key = refused("tree", json!({"structure": {"tree": {"sampels": 50}}}));
        for part in ["tree", "structure", "sampels", "samples", "edge_prior"] {
            assert!(key.contains(part), "{key}");
        }
        let top = refused("tree", json!({"nois": 1}));
        assert!(top.contains("`nois`") && top.contains("noise_std"), "{top}");
        let kind = refused("tree", json!({"structure": {"tree": {"samples": "many"}}}));
        assert!(kind.contains("structure.tree.samples") && kind.contains("many"), "{kind}");
        let table = refused("tree", json!({"zoom": 3}));
        assert!(table.contains("setting zoom") && table.contains('3'), "{table}");
        let alternative = refused("tree", json!({"learning": {"often": 3}}));
        assert!(alternative.contains("often") && alternative.contains("every"), "{alternative}");
        let negative = refused("tree", json!({"structure": {"tree": {"samples": -1}}}));
        assert!(
            negative.contains("structure.tree.samples") && negative.contains("-1"),
            "{negative}"
        );
    }

    #[test]
    fn a_method_without_settings_takes_none() {
        let random = refused("random", json!({"samples": 50}));
        assert_eq!(random, "method \"random\": it has no settings; remove samples");
        let extra =
            serde_json::from_value::<MethodChoice>(json!({"name": "random", "setings": {}}));
        assert!(extra.unwrap_err().to_string().contains("setings"));
    }

    /// The leaves of a table of defaults, found without the schema.
    fn leaves(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
        match value {
            // No table of settings has a single key; choices do.
            Value::Object(table) if table.len() > 1 => {
                for (key, value) in table {
                    leaves(&format!("{path}.{key}"), value, found);
                }
            }
            // What is chosen may be a table, of any size.
            Value::Object(choice) if choice.values().all(Value::is_object) => {
                for (name, table) in choice {
                    for (key, value) in table.as_object().into_iter().flatten() {
                        leaves(&format!("{path}.{name}.{key}"), value, found);
                    }
                }
            }
            _ => found.push((path.trim_start_matches('.').to_string(), value.clone())),
        }
    }

    #[test]
    fn every_setting_of_every_method_is_described() {
        for NamedMethod { name, .. } in Method::NAMES {
            let described = describe(name).unwrap();
            let mut expected = Vec::new();
            if let Some(settings) =
                serde_json::to_value(Method::named(name).unwrap()).unwrap().get("settings")
            {
                leaves("", settings, &mut expected);
            }
            let found: Vec<_> =
                described.iter().map(|s| (s.path.clone(), s.default.clone())).collect();
            assert_eq!(found, expected, "{name}");
            for setting in &described {
                assert!(setting.help.len() > 3, "{name}: {} has no help", setting.path);
                assert!(
                    !setting.help.contains("[`") && !setting.help.contains('\n'),
                    "{setting:?}"
                );
            }
        }
        assert!(describe("random").unwrap().is_empty());
        assert!(describe("tre").is_err());
    }

    #[test]
    fn descriptions_are_the_doc_comments_with_the_alternatives() {
        let described = describe("tree").unwrap();
        let help = |path: &str| described.iter().find(|s| s.path == path).unwrap().help.clone();
        assert_eq!(help("structure.tree.samples"), "S: how many likelihoods may be evaluated.");
        assert_eq!(
            help("structure.tree.edge_rule"),
            "How edges are chosen. Choices: \"sample\", \"greedy\"."
        );
        assert!(help("learning").ends_with("Choices: {\"every\": integer}, {\"growth\": number}."));
        assert!(help("acquisition").contains("{\"joint\": number}"), "{}", help("acquisition"));
        assert!(help("kernel_learning.prior.scales.median").contains("Median"));
        let paper = describe("tree-paper").unwrap();
        let prior = paper.iter().find(|s| s.path == "kernel_learning.prior").unwrap();
        assert_eq!(prior.default, Value::Null);
        assert!(
            prior
                .help
                .contains("A table with common_std, lengthscales, noise_std, pair_weights, scales"),
            "{}",
            prior.help
        );
    }
}
