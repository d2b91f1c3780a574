//! Results, and how they are shown.

use crate::checkout::Test;
use crate::cli::Options;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What a child says of one file.
#[derive(Deserialize, Serialize)]
pub struct FileResult {
    pub checks: Vec<Check>,
    /// Why the file did not come to its end.
    pub error: Option<String>,
}

#[derive(Deserialize, Serialize)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    pub message: Option<String>,
    /// Passed by what the standard says now, not by what the checkout expects (js/setup.js says which).
    #[serde(default)]
    pub reversed: bool,
}

impl FileResult {
    pub fn read(output: Option<Vec<u8>>) -> Self {
        let Some(output) = output else {
            return Self { checks: Vec::new(), error: Some("ran out of time".into()) };
        };
        serde_json::from_slice(&output)
            .unwrap_or_else(|error| Self { checks: Vec::new(), error: Some(format!("the process died ({error})")) })
    }
}

#[derive(Default, Serialize)]
struct Row {
    path: String,
    files: usize,
    skipped: usize,
    passed: usize,
    total: usize,
}

/// The sum of all.
#[derive(Serialize)]
pub struct Report {
    rows: Vec<Row>,
    failures: Vec<Failure>,
    skipped: Vec<(String, &'static str)>,
    reversed: usize,
    /// Milliseconds of processor time that installing the APIs took.
    pub install_ms: f64,
}

#[derive(Serialize)]
struct Failure {
    file: String,
    check: String,
    message: String,
}

impl Report {
    pub fn new(paths: &[String]) -> Self {
        let rows = paths.iter().map(|path| Row { path: path.clone(), ..Row::default() }).collect();
        Self { rows, failures: Vec::new(), skipped: Vec::new(), reversed: 0, install_ms: 0.0 }
    }

    fn row(&mut self, file: &str) -> Option<&mut Row> {
        self.rows
            .iter_mut()
            .filter(|row| row.path == "." || file.starts_with(row.path.as_str()))
            .max_by_key(|row| row.path.len())
    }

    pub fn skip(&mut self, test: &Test, reason: &'static str) {
        if let Some(row) = self.row(&test.path) {
            row.skipped += 1;
        }
        self.skipped.push((test.path.clone(), reason));
    }

    /// A file that did not come to its end counts as one failed check more.
    pub fn add(&mut self, test: &Test, result: FileResult) {
        let file = format!("{}{}", test.path, test.variant);
        if let Some(row) = self.row(&test.path) {
            row.files += 1;
            row.total += result.checks.len() + usize::from(result.error.is_some());
            row.passed += result.checks.iter().filter(|check| check.passed).count();
        }
        self.reversed += result.checks.iter().filter(|check| check.reversed).count();
        if let Some(error) = result.error {
            self.failures.push(Failure { file: file.clone(), check: "(the file)".into(), message: error });
        }
        for check in result.checks.into_iter().filter(|check| !check.passed) {
            let message = check.message.unwrap_or_default();
            self.failures.push(Failure { file: file.clone(), check: check.name, message });
        }
    }

    pub fn passed(&self) -> usize {
        self.rows.iter().map(|row| row.passed).sum()
    }

    pub fn total(&self) -> usize {
        self.rows.iter().map(|row| row.total).sum()
    }

    /// The report as text, or as JSON.
    pub fn show(&self, options: &Options) -> String {
        if options.json {
            return serde_json::to_string(self).unwrap_or_default() + "\n";
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(options, &mut text);
        text
    }

    fn write(&self, options: &Options, text: &mut String) -> std::fmt::Result {
        if options.verbose {
            self.write_failures(text)?;
        }
        let width = self.rows.iter().map(|row| row.path.len()).max().unwrap_or(0);
        for row in &self.rows {
            let skipped = if row.skipped > 0 { format!(", {} skipped", row.skipped) } else { String::new() };
            let (passed, total, files) = (row.passed, row.total, row.files);
            writeln!(text, "{:width$}  {passed} of {total} passed ({files} files{skipped})", row.path)?;
        }
        let share = 100.0 * self.passed() as f64 / self.total().max(1) as f64;
        writeln!(text, "{:width$}  {} of {} passed ({share:.2} %)", "total", self.passed(), self.total())?;
        if self.reversed > 0 {
            writeln!(text, "{} of them by a rule that the standard has changed since the checkout", self.reversed)?;
        }
        writeln!(text, "installing the APIs took {:.1} ms of processor time", self.install_ms)
    }

    fn write_failures(&self, text: &mut String) -> std::fmt::Result {
        for failure in &self.failures {
            writeln!(text, "FAIL {}: {}", failure.file, failure.check)?;
            for line in failure.message.lines().take(6) {
                writeln!(text, "     {line}")?;
            }
        }
        for (file, reason) in &self.skipped {
            writeln!(text, "SKIP {file}: {reason}")?;
        }
        Ok(())
    }
}
