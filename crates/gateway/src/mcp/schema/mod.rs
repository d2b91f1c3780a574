//! JSON Schema, as far as a host may trust a stranger's: bounded in what checking can cost.

mod cost;
mod expressions;
mod size;

use cost::Cost;
use jsonschema::PatternOptions;
use serde_json::Value;
use size::Size;

/// A compiled schema.
pub struct Schema {
    validator: jsonschema::Validator,
    cost: Cost,
}

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(transparent)]
    TooCostly(#[from] cost::TooCostly),
    #[error("compiled, it takes {bytes} bytes of memory, and the deployment has {left} left")]
    Heavy { bytes: usize, left: usize },
    #[error("{0}")]
    Invalid(String),
}

/// Steps of some ten nanoseconds. A check cannot be stopped, so what may take longer than seconds is not begun.
const MOST_WORK: f64 = 1e8;
/// What is done at once, without waiting for a thread.
const QUICK_WORK: f64 = 2e4;
/// Values in one value: as soon as it is parsed, each of them takes up to 200 bytes.
const MOST_PLACES: f64 = 1e6;
/// Places and steps up to which every violation may be looked for, though only a few are told of.
const DETAILED_WORK: f64 = 1e5;

/// What checking one value takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    work: f64,
}

impl Price {
    /// Whether it may be checked where it is: others wait for it, but not for long.
    pub fn is_quick(self) -> bool {
        self.work <= QUICK_WORK
    }
}

/// Why a value is not checked.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TooMuch {
    #[error(
        "checking it against the schema could take {0:.0} steps, {MOST_WORK:.0} are allowed: send less, or simplify \
         `enum`, `pattern`, `uniqueItems` and branches of the schema"
    )]
    Work(f64),
    #[error("it has {0:.0} values, {MOST_PLACES:.0} are allowed where there is a schema to check")]
    Places(f64),
}

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
    /// Compiles it, if it takes no more than these bytes of memory.
    pub fn compile(schema: &Value, memory: usize) -> Result<Schema, SchemaError> {
        let cost = cost::measure(schema, memory)?;
        if cost.memory > memory {
            return Err(SchemaError::Heavy { bytes: cost.memory, left: memory });
        }
        // How large the expressions are together was measured; here is what each of them keeps later.
        let patterns = PatternOptions::regex().size_limit(memory).dfa_size_limit(expressions::CACHE_BYTES);
        let options = jsonschema::options().with_pattern_options(patterns).should_validate_formats(false);
        let validator = options.build(schema).map_err(|error| SchemaError::Invalid(cut(error.to_string())))?;
        Ok(Schema { validator, cost })
    }

    /// Bytes that it takes of memory.
    pub fn weight(&self) -> usize {
        self.cost.memory
    }

    /// What checking this JSON text would take.
    pub fn price(&self, json: &[u8]) -> Result<Price, TooMuch> {
        let size = Size::of(json);
        let (work, places) = (size.work(&self.cost), size.places());
        match (work > MOST_WORK, places > MOST_PLACES) {
            (true, _) => Err(TooMuch::Work(work)),
            (_, true) => Err(TooMuch::Places(places)),
            _ => Ok(Price { work }),
        }
    }

    /// Checks a value of this price.
    pub fn check(&self, value: &Value, price: Price) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            path: error.instance_path().to_string(),
            message: cut(error.masked().to_string()),
        };
        // The library finds all violations before it gives the first.
        if price.work <= DETAILED_WORK {
            return Err(self.validator.iter_errors(value).take(MOST_VIOLATIONS).map(violation).collect());
        }
        let first = if self.cost.collects { None } else { self.validator.validate(value).err().map(violation) };
        let unsaid =
            || Violation { path: String::new(), message: "does not fit, and is too large to say where".to_owned() };
        Err(vec![first.unwrap_or_else(unsaid)])
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

#[cfg(test)]
mod tests;
