//! The way from the jail to the hosts that are allowed: a proxy on the jail's own loopback, served from here.

use crate::error::Error;
use crate::plan::Plan;
use crate::voice::Voice;
use egress::proxy::{self, Authority, Notice};
use egress::{Door, Pass, Settings, UNNAMED, classify};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at once; more wait.
const CONNECTIONS: usize = 64;
/// Refused hosts that are told of.
const MOST_TOLD: usize = 100;

/// Serves the listener until it is dropped.
pub(crate) fn open(
    plan: &Plan,
    listener: std::net::TcpListener,
    authority: Option<Arc<Authority>>,
    voice: &Voice,
) -> Result<JoinSet<()>, Error> {
    let door = Door::dev(plan.own_ports(), Settings::default()).map_err(Error::Door)?;
    let visit = Arc::new(door.visit(Pass::new("person", "run", Arc::new(plan.rules()?))));
    let options = proxy::Options { notice: Some(notice(voice.clone())), authority };
    listener.set_nonblocking(true).map_err(Error::Relay)?;
    let listener = TcpListener::from_std(listener).map_err(Error::Relay)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut served = JoinSet::new();
        while let Ok(place) = places.clone().acquire_owned().await {
            while served.try_join_next().is_some() {}
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (visit, options) = (visit.clone(), options.clone());
            served.spawn(async move {
                proxy::serve_connection(stream, visit, options).await;
                drop(place);
            });
        }
    });
    Ok(tasks)
}

/// One line for each host; the server is told the same, each time.
fn notice(voice: Voice) -> Notice {
    let told = Mutex::new(BTreeSet::new());
    Arc::new(move |host, port, reason| {
        let line = line(host, port, reason);
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST_TOLD && told.insert((host.to_owned(), port)) {
            voice.say(&line);
        }
        Some(line)
    })
}

fn line(host: &str, port: u16, reason: &str) -> String {
    // A rule helps only where one is missing.
    let origin = reason.strip_prefix(UNNAMED).and_then(|rest| rest.split(';').next());
    let Some(origin) = origin.map(str::trim) else {
        return format!("refused: {host}:{port}: {reason}");
    };
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok().filter(|address| !address.is_loopback());
    if let Some(Err(forbidden)) = address.map(classify) {
        return format!("refused: {host}:{port}: {forbidden}, which no flag allows");
    }
    // Without a scheme a rule means https.
    let rule = origin.strip_prefix("https://").unwrap_or(origin);
    format!("refused: {host}:{port}; allow it with `--allow {rule}` before `--`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_helps_is_named() {
        let missing = |origin: &str| format!("no rule allows {origin}; …");
        assert_eq!(
            line("a.example", 443, &missing("https://a.example")),
            "refused: a.example:443; allow it with `--allow a.example` before `--`"
        );
        for (port, origin, rule) in [
            (80, "http://a.example", "http://a.example"),
            (8443, "https://a.example:8443", "a.example:8443"),
            (8080, "http://a.example:8080", "http://a.example:8080"),
        ] {
            assert!(line("a.example", port, &missing(origin)).contains(&format!("`--allow {rule}`")), "{origin}");
        }
        let private = line("a.example", 443, "a.example has the address 10.0.0.1");
        assert!(!private.contains("--allow"), "{private}");
        let metadata = line("169.254.169.254", 80, &missing("http://169.254.169.254"));
        assert!(metadata.contains("cloud metadata") && !metadata.contains("--allow"), "{metadata}");
        let own = line("127.0.0.1", 80, &missing("http://127.0.0.1"));
        assert!(own.contains("--allow http://127.0.0.1"), "{own}");
    }
}
