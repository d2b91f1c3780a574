use super::*;
use axum::Router;
use axum::extract::State;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::collections::BTreeMap;
use std::sync::Mutex;
use wire::Field;

/// Reads protobuf without knowing any message: what the encoder meant must be found again by field numbers alone.
mod wire {
    #[derive(Clone, Debug, PartialEq)]
    pub enum Field {
        Number(u64),
        Fixed(u64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a varint has an end");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return value;
            }
        }
        panic!("a varint of more than ten bytes");
    }

    fn take(bytes: &mut &[u8], count: usize) -> Vec<u8> {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken.to_vec()
    }

    pub fn read(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Fixed(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(take(&mut bytes, length))
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        fields
    }
}

fn all(fields: &[(u64, Field)], number: u64) -> Vec<Vec<(u64, Field)>> {
    bytes(fields, number).iter().map(|bytes| wire::read(bytes)).collect()
}

fn bytes(fields: &[(u64, Field)], number: u64) -> Vec<Vec<u8>> {
    let of = |(n, field): &(u64, Field)| match field {
        Field::Bytes(bytes) if *n == number => Some(bytes.clone()),
        _ => None,
    };
    fields.iter().filter_map(of).collect()
}

fn text(fields: &[(u64, Field)], number: u64) -> String {
    String::from_utf8(bytes(fields, number).concat()).unwrap()
}

fn fixed(fields: &[(u64, Field)], number: u64) -> u64 {
    let found = fields.iter().find_map(|(n, field)| match field {
        Field::Fixed(value) if *n == number => Some(*value),
        _ => None,
    });
    found.unwrap()
}

fn attributes(fields: &[(u64, Field)], number: u64) -> BTreeMap<String, Field> {
    all(fields, number)
        .iter()
        .map(|pair| {
            let value = all(pair, 2).concat();
            assert_eq!(value.len(), 1, "one value each");
            (text(pair, 1), value[0].1.clone())
        })
        .collect()
}

#[derive(Debug)]
struct Seen {
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    name: String,
    kind: u64,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, Field>,
    status: Option<(String, u64)>,
}

fn number(fields: &[(u64, Field)], wanted: u64) -> u64 {
    let found = fields.iter().find_map(|(n, field)| match field {
        Field::Number(value) if *n == wanted => Some(*value),
        _ => None,
    });
    found.unwrap()
}

fn decode(body: &[u8]) -> (BTreeMap<String, Field>, Vec<Seen>) {
    let request = wire::read(body);
    let resource_spans = all(&request, 1);
    assert_eq!(resource_spans.len(), 1);
    let resource = attributes(&all(&resource_spans[0], 1).concat(), 1);
    let scope_spans = all(&resource_spans[0], 2);
    assert_eq!(scope_spans.len(), 1);
    assert_eq!(text(&all(&scope_spans[0], 1).concat(), 1), "bulkhead");
    let spans = all(&scope_spans[0], 2).into_iter().map(|span| Seen {
        trace: bytes(&span, 1).concat(),
        id: bytes(&span, 2).concat(),
        parent: bytes(&span, 4).concat(),
        name: text(&span, 5),
        kind: number(&span, 6),
        start: fixed(&span, 7),
        end: fixed(&span, 8),
        attributes: attributes(&span, 9),
        status: all(&span, 15).first().map(|status| (text(status, 2), number(status, 3))),
    });
    (resource, spans.collect())
}

/// A collector on loopback that keeps what it is sent.
#[derive(Clone, Default)]
struct Collector {
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    /// Answers to give before it is content.
    moods: Arc<Mutex<Vec<StatusCode>>>,
}

impl Collector {
    async fn start(&self) -> String {
        async fn take(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
            if let Some(mood) = collector.moods.lock().unwrap().pop() {
                return mood;
            }
            collector.requests.lock().unwrap().push((headers, body));
            StatusCode::OK
        }
        let app = Router::new().route("/v1/traces", axum::routing::post(take)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    fn spans(&self) -> Vec<Seen> {
        self.requests.lock().unwrap().iter().flat_map(|(_, body)| decode(body).1).collect()
    }
}

fn settings(endpoint: &str) -> TraceSettings {
    TraceSettings {
        endpoint: endpoint.to_owned(),
        headers: vec![("x-api-key".to_owned(), "secret".to_owned())],
        sample_ratio: 1.0,
        service: "bulkhead-test".to_owned(),
    }
}

const LONG: Duration = Duration::from_secs(60);

fn parent() -> TraceParent {
    TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap()
}

#[tokio::test]
async fn a_call_is_one_trace_below_its_callers_span() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start().await)).unwrap();
    let mut trace = traces.begin(Some(parent()), Instant::now());
    assert_eq!(trace.id().as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    let (a, b) = (Instant::now(), Instant::now() + Duration::from_millis(2));
    for name in ["authenticate", "validate", "queue", "run"] {
        trace.step(name, a, b);
    }
    let attributes = vec![("mcp.tool.name", Value::from("double")), ("bulkhead.cpu_us", Value::from(77u64))];
    trace.end("tools/call double".to_owned(), attributes, Some("cpu_limit"));
    traces.flush(LONG).await;

    let requests = collector.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 1);
    let (headers, body) = &requests[0];
    assert_eq!(headers.get("content-type"), Some(&HeaderValue::from_static("application/x-protobuf")));
    assert_eq!(headers.get("x-api-key"), Some(&HeaderValue::from_static("secret")));
    let (resource, spans) = decode(body);
    assert_eq!(resource["service.name"], Field::Bytes(b"bulkhead-test".to_vec()));
    let root = &spans[0];
    assert_eq!((root.name.as_str(), root.kind), ("tools/call double", 2));
    assert_eq!(root.parent, parent().span_id);
    assert_ne!(root.id, parent().span_id);
    assert_eq!(root.status, Some(("cpu_limit".to_owned(), 2)));
    assert_eq!(root.attributes["mcp.tool.name"], Field::Bytes(b"double".to_vec()));
    assert_eq!(root.attributes["bulkhead.cpu_us"], Field::Number(77));
    assert!(spans.iter().all(|span| span.trace == parent().trace_id && span.start <= span.end && span.id.len() == 8));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(root.start <= now && now - root.start < 600_000_000_000, "nanoseconds since 1970");
    let children: Vec<_> = spans[1..].iter().map(|span| (span.name.as_str(), span.kind)).collect();
    assert_eq!(children, [("authenticate", 1), ("validate", 1), ("queue", 1), ("run", 1)]);
    assert!(spans[1..].iter().all(|span| span.parent == root.id && span.end - span.start == 2_000_000 + skew(a, b)));
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len());
}

/// What passed between the two moments beyond the two milliseconds.
fn skew(a: Instant, b: Instant) -> u64 {
    (b - a).as_nanos() as u64 - 2_000_000
}

#[tokio::test]
async fn without_a_caller_each_call_has_a_trace_of_its_own() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start().await)).unwrap();
    for _ in 0..600 {
        traces.begin(None, Instant::now()).end("tools/call x".to_owned(), Vec::new(), None);
    }
    traces.flush(LONG).await;
    let spans = collector.spans();
    assert_eq!((spans.len(), traces.dropped()), (600, 0));
    assert!(spans.iter().all(|span| span.parent.is_empty() && span.status.is_none()));
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| span.trace.clone()).collect();
    assert_eq!(ids.len(), 600);
    assert!(collector.requests.lock().unwrap().len() < 10, "they go together");
}

#[tokio::test]
async fn the_share_holds_unless_the_client_says() {
    let quarter = TraceSettings { sample_ratio: 0.25, ..settings("http://127.0.0.1:9") };
    let traces = Traces::start(quarter).unwrap();
    let sampled = (0..20_000).filter(|_| traces.begin(None, Instant::now()).is_on()).count();
    assert!((4_500..5_500).contains(&sampled), "{sampled} of 20000");
    assert!((0..100).all(|_| traces.begin(Some(parent()), Instant::now()).is_on()));
    assert!((0..100).all(|_| !traces.begin(Some(TraceParent { sampled: false, ..parent() }), Instant::now()).is_on()));
    for (ratio, on) in [(0.0, false), (1.0, true)] {
        let traces = Traces::start(TraceSettings { sample_ratio: ratio, ..settings("http://127.0.0.1:9") }).unwrap();
        assert!((0..1000).all(|_| traces.begin(None, Instant::now()).is_on() == on));
    }
    assert!(!Traces::off().begin(Some(parent()), Instant::now()).is_on());
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again() {
    let collector = Collector::default();
    *collector.moods.lock().unwrap() = vec![StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
    let traces = Traces::start(settings(&collector.start().await)).unwrap();
    traces.begin(None, Instant::now()).end("tools/call x".to_owned(), Vec::new(), None);
    traces.flush(LONG).await;
    assert_eq!((collector.spans().len(), traces.dropped()), (1, 0));
    // What it will never take is not sent again.
    *collector.moods.lock().unwrap() = vec![StatusCode::BAD_REQUEST];
    traces.begin(None, Instant::now()).end("tools/call y".to_owned(), Vec::new(), None);
    traces.flush(LONG).await;
    assert_eq!((collector.spans().len(), traces.dropped()), (1, 1));
    traces.begin(None, Instant::now()).end("tools/call z".to_owned(), Vec::new(), None);
    traces.flush(LONG).await;
    assert_eq!(collector.spans().len(), 2);
}

/// A collector that takes the connection and says nothing costs neither calls nor the end of the host their time.
#[tokio::test]
async fn a_silent_collector_holds_nobody_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let traces = Traces::start(settings(&format!("http://{}", silent.local_addr().unwrap()))).unwrap();
    for _ in 0..10_000 {
        traces.begin(None, Instant::now()).end("tools/call x".to_owned(), Vec::new(), None);
    }
    assert!(traces.dropped() > 5_000, "what waits is bounded: {}", traces.dropped());
    let flush = tokio::time::timeout(LONG, traces.flush(Duration::from_millis(50)));
    flush.await.expect("it gives up by itself");
}

#[test]
fn a_traceparent_has_one_form() {
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let parsed = TraceParent::parse(good).unwrap();
    assert_eq!((parsed.to_string().as_str(), parsed.sampled), (good, true));
    assert!(!TraceParent::parse(&good.replace("-01", "-00")).unwrap().sampled);
    assert!(TraceParent::parse(&good.replacen("00", "cc", 1)).is_some(), "a version to come");
    assert!(TraceParent::parse(&format!("{}-what-comes", good.replacen("00", "cc", 1))).is_some());
    for bad in [
        "",
        "00",
        &good[..54],
        &format!("{good}-more"),
        &format!("{good}0"),
        &good.to_uppercase(),
        &good.replacen("00", "ff", 1),
        &good.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
        &good.replace("00f067aa0ba902b7", "0000000000000000"),
        &good.replace('-', "_"),
        &good.replace('4', "g"),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0é",
    ] {
        assert_eq!(TraceParent::parse(bad), None, "{bad}");
    }
    let mut headers = HeaderMap::new();
    assert_eq!(TraceParent::of(&headers), None);
    headers.append("traceparent", HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
    assert_eq!(TraceParent::of(&headers), Some(parsed));
    headers.append("traceparent", HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"));
    assert_eq!(TraceParent::of(&headers), None, "two are none");
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    for endpoint in ["", "collector", "ftp://127.0.0.1", "http://"] {
        assert!(matches!(Traces::start(settings(endpoint)), Err(TraceError::Endpoint(_))), "{endpoint}");
    }
    let headers = vec![("no header".to_owned(), "x".to_owned())];
    let wrong = TraceSettings { headers, ..settings("http://127.0.0.1:9") };
    assert!(matches!(Traces::start(wrong), Err(TraceError::Header(_))));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let Value::Text(text) = Value::from("ü".repeat(400)) else { panic!("a text") };
    assert!(text.len() <= 256 && text.chars().all(|c| c == 'ü'));
    assert_eq!(Value::from(u64::MAX), Value::Number(i64::MAX));
}
