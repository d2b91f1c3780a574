//! Spans as the bytes of an OTLP `ExportTraceServiceRequest`. The few messages it takes are written by hand: the crates
//! that know all of them bring along a second HTTP client and a gRPC stack.

/// Longer texts are cut off.
const MOST_TEXT: usize = 256;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Number(i64),
    Truth(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(shortened(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(shortened(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Truth(truth)
    }
}

pub(super) fn shortened(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        text.truncate(text.floor_char_boundary(MOST_TEXT));
    }
    text
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Internal = 1,
    Server = 2,
}

pub(super) struct Span {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) failed: Option<String>,
}

/// The body of one request.
pub(super) fn request<'a>(service: &str, spans: impl Iterator<Item = &'a Span>) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let mut resource = Message::default();
    resource.attribute(1, "service.name", &Value::from(service));
    resource.attribute(1, "service.version", &Value::from(version));
    let mut scope = Message::default();
    scope.text(1, "bulkhead");
    scope.text(2, version);
    let mut scope_spans = Message::default();
    scope_spans.message(1, scope);
    for one in spans {
        scope_spans.message(2, span(one));
    }
    let mut resource_spans = Message::default();
    resource_spans.message(1, resource);
    resource_spans.message(2, scope_spans);
    let mut request = Message::default();
    request.message(1, resource_spans);
    request.0
}

fn span(span: &Span) -> Message {
    const ERROR: u64 = 2;
    let mut message = Message::default();
    message.bytes(1, &span.trace_id);
    message.bytes(2, &span.span_id);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(6, span.kind as u64);
    message.fixed(7, span.start);
    message.fixed(8, span.end);
    for (key, value) in &span.attributes {
        message.attribute(9, key, value);
    }
    if let Some(why) = &span.failed {
        let mut status = Message::default();
        status.text(2, why);
        status.number(3, ERROR);
        message.message(15, status);
    }
    message
}

/// A protobuf message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Field number and what follows: 0 a varint, 1 eight bytes, 2 a length and so many bytes.
    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u64, value: Message) {
        self.bytes(field, &value.0);
    }

    fn attribute(&mut self, field: u64, key: &str, value: &Value) {
        let mut any = Message::default();
        match value {
            Value::Text(text) => any.text(1, text),
            Value::Truth(truth) => any.number(2, u64::from(*truth)),
            // Negative ones take ten bytes, as the format has it.
            Value::Number(number) => any.number(3, *number as u64),
        }
        let mut pair = Message::default();
        pair.text(1, key);
        pair.message(2, any);
        self.message(field, pair);
    }
}
