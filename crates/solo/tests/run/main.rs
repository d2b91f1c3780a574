//! Servers behind the runner, as a desktop client would start them: real programs, real jails.

mod client;
mod cases {
    pub mod ending;
    pub mod hostile;
    pub mod named;
    pub mod outside;
    pub mod packages;
    pub mod session;
}

use libtest_mimic::{Arguments, Trial};
use solo::{Error, Limits, Options, Plan, Surroundings, explain};

/// With this as its first argument the program is the runner.
const RUNNER: &str = "--as-runner";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == RUNNER) {
        std::process::exit(runner(&arguments[1..]));
    }
    let all = [
        cases::session::CASES,
        cases::hostile::CASES,
        cases::named::CASES,
        cases::outside::CASES,
        cases::ending::CASES,
        cases::packages::CASES,
    ]
    .concat();
    let trial = |(name, case): (&'static str, fn())| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), all.into_iter().map(trial).collect()).exit();
}

pub type Case = (&'static str, fn());

fn runner(words: &[String]) -> i32 {
    let mut options = Options::default();
    let mut dry_run = false;
    let mut words = words.iter().cloned();
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value");
        match word.as_str() {
            "--ro" => options.ro.push(value().into()),
            "--rw" => options.rw.push(value().into()),
            "--allow" => options.allow.push(value()),
            "--tcp" => options.tcp.push(value()),
            "--env" => options.env.push(value()),
            "--memory" => options.limits = Limits { memory_mb: value().parse().expect("a number"), ..options.limits },
            "--processes" => {
                options.limits = Limits { processes: value().parse().expect("a number"), ..options.limits }
            }
            "--commits" => options.commits = true,
            "--repo-settings" => options.repo_settings = true,
            "--unix-sockets" => options.unix_sockets = true,
            "--offline" => options.offline = true,
            "--explain" => options.explain = true,
            "--dry-run" => dry_run = true,
            "--" => break,
            other => panic!("{other}?"),
        }
    }
    options.command = words.collect();
    if dry_run {
        let plan = Surroundings::here().map_err(Error::from).and_then(|around| Plan::new(&options, &around));
        return plan.map_or(1, |plan| {
            println!("{}", explain(&plan));
            0
        });
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    match runtime.block_on(solo::run(options)) {
        Ok(ended) => ended.status,
        Err(error) => {
            eprintln!("bulkhead: {error}");
            1
        }
    }
}
