//! JSON Schema, as far as a host may trust a stranger's: bounded in what checking can cost.

mod cost;

use jsonschema::PatternOptions;
use serde_json::Value;

/// A compiled schema.
pub struct Schema {
    validator: jsonschema::Validator,
    weight: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(transparent)]
    TooCostly(#[from] cost::TooCostly),
    #[error("{0}")]
    Invalid(String),
}

/// A compiled expression of a stranger's. Expressions without lookaround run in linear time.
const PATTERN_BYTES: usize = 1 << 20;

/// One place where a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the value; empty for the value itself.
    pub path: String,
    pub message: String,
}

/// Enough for a model to mend its call.
const MOST_VIOLATIONS: usize = 5;

impl Schema {
    pub fn compile(schema: &Value) -> Result<Schema, SchemaError> {
        let weight = cost::measure(schema)?;
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| SchemaError::Invalid(cut(error.to_string())))?;
        Ok(Schema { validator, weight })
    }

    /// Bytes of all pointers to its parts: what a compiled schema takes of memory grows with them.
    pub fn weight(&self) -> usize {
        self.weight
    }

    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            path: error.instance_path().to_string(),
            message: cut(error.masked().to_string()),
        };
        Err(self.validator.iter_errors(value).take(MOST_VIOLATIONS).map(violation).collect())
    }
}

fn cut(text: String) -> String {
    const MOST: usize = 300;
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain(['…']).collect() }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

/// `/price: is not of type "number"`, joined.
pub fn describe(violations: &[Violation]) -> String {
    let one = |violation: &Violation| {
        let path = if violation.path.is_empty() { "(root)" } else { &violation.path };
        format!("{path}: {}", violation.message)
    };
    violations.iter().map(one).collect::<Vec<_>>().join("; ")
}
