//! A method chosen by name, with some of its settings changed.
//!
//! ```
//! use boscage_study::MethodChoice;
//!
//! let choice: MethodChoice = serde_json::from_str(
//!     r#"{"name": "tree-paper", "settings": {"tree_learning": {"samples": 50}}}"#,
//! )?;
//! let method = choice.resolve()?;
//! # assert_ne!(method, boscage::Method::named("tree-paper")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use boscage::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The name of a method, and the settings that differ from that name's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodChoice {
    /// A name that [`Method::named`] knows.
    pub name: String,
    /// Changed settings; tables within are changed key by key.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

impl MethodChoice {
    /// The method with all its settings.
    pub fn resolve(&self) -> Result<Method> {
        let named = Method::named(&self.name)?;
        if self.settings.is_empty() {
            return Ok(named);
        }
        let refused = |reason: String| Error::Method { name: self.name.clone(), reason };
        let mut whole = serde_json::to_value(named).map_err(|e| refused(e.to_string()))?;
        let Some(settings) = whole.get_mut("settings") else {
            return Err(refused("it has no settings".to_string()));
        };
        merge(settings, &Value::Object(self.settings.clone()));
        serde_json::from_value(whole).map_err(|e| refused(e.to_string()))
    }
}

/// Changes `whole` key by key. A table with a single key that `whole` does not have is a choice between alternatives
/// (`{"every": 15}` for `{"growth": 0.1}`) and replaces what was there.
pub fn merge(whole: &mut Value, change: &Value) {
    match (whole, change) {
        (Value::Object(whole), Value::Object(change)) => {
            let is_choice =
                change.len() == 1 && whole.len() == 1 && !change.keys().all(|key| whole.contains_key(key));
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
