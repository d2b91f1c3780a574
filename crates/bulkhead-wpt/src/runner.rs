//! Runs all test files and sums up.

use crate::checkout::{self, Test};
use crate::child::{self, Child};
use crate::cli::{DEFAULT_PATHS, Options};
use crate::realm;
use crate::report::{FileResult, Report};
use crate::terminal::Terminal;
use clap::Parser;
use isolate_engine::Compiler;
use std::collections::VecDeque;
use std::time::Duration;

const OK: i32 = 0;
const REFUSED: i32 = 1;
const OUR_FAULT: i32 = 2;

/// Takes the place of the carrier's `main`.
pub fn main() -> i32 {
    let Some(mut terminal) = Terminal::open() else {
        return OUR_FAULT;
    };
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if error.use_stderr() => {
            terminal.complain(&error.render().to_string());
            return OUR_FAULT;
        }
        Err(help) => {
            terminal.say(&help.render().to_string());
            return OK;
        }
    };
    match run(&options) {
        Ok(report) => {
            terminal.say(&report.show(&options));
            let failed = options.strict && report.passed() < report.total();
            if report.passed() < options.min || failed { REFUSED } else { OK }
        }
        Err(error) => {
            terminal.complain(&format!("error: {error}\n"));
            OUR_FAULT
        }
    }
}

fn run(options: &Options) -> Result<Report, String> {
    let paths = if options.paths.is_empty() {
        DEFAULT_PATHS.iter().map(|path| (*path).to_owned()).collect()
    } else {
        options.paths.clone()
    };
    let tests = checkout::find(&options.checkout, &paths)?;
    isolate_engine::start(if options.jit { Compiler::Jit } else { Compiler::Jitless })?;
    let mut report = Report::new(&paths);
    let mut waiting: VecDeque<Test> = VecDeque::new();
    for test in tests {
        match test.skip {
            Some(reason) if !options.all => report.skip(&test, reason),
            _ => waiting.push_back(test),
        }
    }
    realm::with(&options.checkout, |realm| {
        report.install_ms = realm.install_ms();
        let mut running: Vec<(Test, Child)> = Vec::new();
        while !running.is_empty() || !waiting.is_empty() {
            while running.len() < options.jobs.max(1)
                && let Some(test) = waiting.pop_front()
            {
                let limit = Duration::from_secs(if test.long { options.limit * 4 } else { options.limit });
                let child = child::start(limit, || realm.run(&test))?;
                running.push((test, child));
            }
            let mut children: Vec<&mut Child> = running.iter_mut().map(|(_, child)| child).collect();
            let (index, output) = child::wait(&mut children);
            let (test, _) = running.remove(index);
            report.add(&test, FileResult::read(output));
        }
        Ok(())
    })?;
    Ok(report)
}
