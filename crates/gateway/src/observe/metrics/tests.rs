use super::super::series::{METHODS, OUTCOMES};
use super::*;
use std::collections::{BTreeMap, BTreeSet};

fn seen<'a>(wall: &'a str, method: &'a str, outcome: &'a str) -> CallSeen<'a> {
    let (time, wait) = (Duration::from_millis(3), Duration::from_micros(10));
    CallSeen { wall, method, outcome, time, wait, cpu_us: 250_000 }
}

fn nothing() -> Gauges<'static> {
    Gauges {
        pools: Vec::new(),
        sessions: 0,
        streams: 0,
        held_bytes: 0,
        audit_waiting: 0,
        audit_refused: 0,
        tool_lines_dropped: 0,
        traces_dropped: 0,
    }
}

/// The samples of a text by name and labels. Panics at whatever a strict reader would refuse.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let body = text.strip_suffix("# EOF\n").expect("it ends with its end");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (kind, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
            match kind {
                "TYPE" => assert!(types.insert(name, rest).is_none(), "two types: {line}"),
                "HELP" => assert!(rest.ends_with('.') && !rest.is_empty(), "{line}"),
                "UNIT" => assert!(name.ends_with(rest), "the name must end with its unit: {line}"),
                other => panic!("`{other}` in {line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.starts_with("bulkhead_") && name.chars().all(valid), "{line}");
        let labels = labels.strip_suffix('}').expect("closed labels");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (key, value) = label.split_once('=').expect("key and value");
            assert!(key.chars().all(valid), "{line}");
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("in quotes");
            assert!(!value.contains(['"', '\\', '\n']), "{line}");
        }
        let ends = |end: &str| name.strip_suffix(end).and_then(|name| types.get(name)).copied();
        let known = match types.get(name).copied() {
            Some("gauge") => true,
            _ => {
                ends("_total") == Some("counter")
                    || ends("_info") == Some("info")
                    || ["_bucket", "_sum", "_count"].iter().any(|end| ends(end) == Some("histogram"))
            }
        };
        assert!(known, "a sample without its type: {line}");
        let number: f64 = value.parse().expect("a number");
        assert!(samples.insert(series.to_owned(), number).is_none(), "twice: {line}");
    }
    samples
}

/// Buckets rise, and the last one holds all.
fn check_histograms(samples: &BTreeMap<String, f64>) {
    for (series, count) in samples.iter().filter(|(series, _)| series.contains("_count{")) {
        let (name, labels) = series.split_once("_count{").unwrap();
        let labels = labels.trim_end_matches('}');
        let prefix = format!("{name}_bucket{{le=\"");
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|(bucket, value)| {
                let (bound, rest) = bucket.strip_prefix(&prefix)?.split_once('"')?;
                let same = rest.trim_start_matches(',').trim_end_matches('}') == labels;
                same.then(|| (bound.parse().unwrap_or(f64::INFINITY), *value))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() > 5, "{series}");
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{series}: {buckets:?}");
        assert_eq!(buckets.last().map(|last| last.1), Some(*count), "{series}");
    }
}

#[test]
fn what_was_seen_is_told() {
    let metrics = Metrics::new();
    for _ in 0..3 {
        metrics.call(&seen("isolate", "tools/call", "cpu_limit"));
    }
    metrics.call(&seen("isolate", "resources/read", "ok"));
    metrics.rejected("quota");
    metrics.connections(2);
    metrics.connections(-1);
    let totals = PoolTotals { grown: 9, kills: vec![(sandbox::Code::CpuLimit, 2)], ..PoolTotals::default() };
    let state = PoolState { waiting: 7, longest_line: 4, ..PoolState::default() };
    let text = metrics.encode(&Gauges { pools: vec![("isolate", state, totals)], audit_refused: 5, ..nothing() });
    let samples = parse(&text);
    check_histograms(&samples);
    for (series, value) in [
        (r#"bulkhead_calls_total{wall="isolate",method="tools/call",outcome="cpu_limit"}"#, 3.0),
        (r#"bulkhead_calls_total{wall="isolate",method="resources/read",outcome="ok"}"#, 1.0),
        (r#"bulkhead_call_seconds_count{wall="isolate",outcome="cpu_limit"}"#, 3.0),
        (r#"bulkhead_call_wait_seconds_count{wall="isolate"}"#, 4.0),
        (r#"bulkhead_call_cpu_seconds_total{wall="isolate"}"#, 1.0),
        (r#"bulkhead_rejected_total{reason="quota"}"#, 1.0),
        (r#"bulkhead_connections"#, 1.0),
        (r#"bulkhead_pool_waiting{wall="isolate"}"#, 7.0),
        (r#"bulkhead_pool_longest_line{wall="isolate"}"#, 4.0),
        (r#"bulkhead_pool_forks_total{wall="isolate"}"#, 9.0),
        (r#"bulkhead_kills_total{wall="isolate",reason="cpu_limit"}"#, 2.0),
        (r#"bulkhead_audit_refused_total"#, 5.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series} in\n{text}");
    }
    assert!(samples["bulkhead_process_resident_memory_bytes"] > 1e6);
    assert!(samples.keys().any(|series| series.starts_with("bulkhead_build_info{version=")));
}

/// Totals come from elsewhere each time; asking twice does not add them up.
#[test]
fn totals_are_taken_as_they_are() {
    let metrics = Metrics::new();
    for plants in [3, 5] {
        let totals = PoolTotals { plants, ..PoolTotals::default() };
        let text = metrics.encode(&Gauges { pools: vec![("isolate", PoolState::default(), totals)], ..nothing() });
        assert_eq!(parse(&text)[r#"bulkhead_pool_plants_total{wall="isolate"}"#], plants as f64);
    }
}

/// Whatever strangers manage to get into a label, the series are a bounded set.
#[test]
fn strangers_make_no_new_series() {
    let metrics = Metrics::new();
    for n in 0..500 {
        let name = format!("made-up-{n}");
        metrics.call(&seen(&name, "tools/call", "ok"));
        metrics.call(&seen("isolate", &name, "ok"));
        metrics.call(&seen("isolate", "tools/call", &name));
    }
    for method in METHODS {
        for outcome in OUTCOMES {
            metrics.call(&seen("isolate", method, outcome));
        }
    }
    let samples = parse(&metrics.encode(&nothing()));
    let values = |label: &str| -> BTreeSet<&str> {
        samples
            .keys()
            .filter_map(|series| series.split_once(&format!("{label}=\"")).and_then(|(_, rest)| rest.split_once('"')))
            .map(|(value, _)| value)
            .collect()
    };
    assert!(values("wall").len() <= MOST_WALLS + 1, "{:?}", values("wall"));
    assert_eq!(values("outcome").len(), OUTCOMES.len());
    assert_eq!(values("method").len(), METHODS.len());
    let all: f64 = samples.iter().filter(|(series, _)| series.starts_with("bulkhead_calls_total")).map(|s| s.1).sum();
    assert_eq!(all as usize, 1500 + METHODS.len() * OUTCOMES.len(), "none is lost");
}

#[test]
fn the_tables_have_no_doubles() {
    assert_eq!(OUTCOMES.iter().collect::<BTreeSet<_>>().len(), OUTCOMES.len());
    assert_eq!(METHODS.iter().collect::<BTreeSet<_>>().len(), METHODS.len());
}

/// Many at once, each through its own way in.
#[test]
fn calls_at_once_are_all_counted() {
    let metrics = Arc::new(Metrics::new());
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let metrics = metrics.clone();
            std::thread::spawn(move || (0..1000).for_each(|_| metrics.call(&seen("isolate", "tools/call", "ok"))))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let samples = parse(&metrics.encode(&nothing()));
    assert_eq!(samples[r#"bulkhead_calls_total{wall="isolate",method="tools/call",outcome="ok"}"#], 8000.0);
    assert_eq!(samples[r#"bulkhead_call_seconds_count{wall="isolate",outcome="ok"}"#], 8000.0);
}
