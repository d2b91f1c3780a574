//! Servers that do with the protocol what they like.

use crate::bundled::example;
use crate::client::{Client, ask, call, server, surface};
use crate::support::{Server, pool, run};
use policy::Boundary;
use sandbox::{Code, Operation};
use serde_json::json;

/// A server without an SDK: `answer(message, transport)` gives a result, and `undefined` for none.
fn handmade(body: &str) -> String {
    format!(
        "const tools = [{{ name: 'run', inputSchema: {{ type: 'object' }} }}];
         const hello = {{ protocolVersion: '2025-11-25', serverInfo: {{ name: 'h', version: '1' }}, capabilities: {{ tools: {{}} }} }};
         const listed = (m) => m.method === 'initialize' ? hello : m.method === 'tools/list' ? {{ tools }} : undefined;
         const text = (value) => ({{ content: [{{ type: 'text', text: String(value) }}] }});
         {body}
         export default {{
           close() {{}},
           async connect(transport) {{
             transport.onmessage = async (message) => {{
               const result = await answer(message, transport);
               if (result !== undefined) await transport.send({{ jsonrpc: '2.0', id: message.id, result }});
             }};
             await transport.start();
           }},
         }};"
    )
}

#[tokio::test]
async fn a_handmade_server_is_served() {
    let pool = pool().await;
    let server =
        Server::new(&handmade("const answer = (m) => listed(m) ?? (m.method === 'tools/call' ? text(1) : undefined);"));
    assert_eq!(run(&pool, &server.deploy(), "{}").await.unwrap(), r#"{"content":[{"type":"text","text":"1"}]}"#);
}

#[tokio::test]
async fn a_server_that_cannot_be_read_does_not_initialise() {
    let pool = pool().await;
    let cases = [
        ("export default { close() {}, connect() { throw new Error('not today') } }".to_owned(), "not today"),
        ("export default { close() {}, async connect() { throw 7 } }".to_owned(), "7"),
        ("export default { close() {}, connect: () => new Promise(() => {}) }".to_owned(), "unanswered"),
        ("export default { close() {}, connect() {} }".to_owned(), "set no `onmessage`"),
        (handmade("const answer = () => undefined;"), "unanswered"),
        (handmade("const answer = (m, t) => { t.send({ jsonrpc: '2.0', id: 77, result: hello }); };"), "unanswered"),
        (handmade("const answer = (m, t) => { t.send(undefined); t.send([]); t.send({}); t.send('x'); };"), "unanswered"),
        (handmade("const answer = () => ({ protocolVersion: '1999-01-01' });"), "not known here"),
        (handmade("const answer = () => 7;"), "not known here"),
        (handmade("const answer = (m, t) => { t.close(); };"), "closed its connection"),
        (handmade("const answer = (m, t) => { t.send({ jsonrpc: '2.0', id: m.id, error: { code: -1, message: 'no' } }); };"), "MCP error -1: no"),
        (handmade("const answer = (m, t) => { t.send({ jsonrpc: '2.0', id: m.id, error: null }); };"), "gave no reason"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools, nextCursor: 'more' } : listed(m);"), "more than 1000 pages"),
        (handmade("const endless = new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 40 : tools[0] }); const answer = (m) => m.method === 'tools/list' ? { tools: endless } : listed(m);"), "more than 10000 entries"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools: 'all' } : listed(m);"), "no array `tools`"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools: [...tools, ...tools] } : listed(m);"), "is there twice"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools: [{ name: 'a b' }] } : listed(m);"), "letters, digits"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools: [null] } : listed(m);"), "null"),
        (handmade("const answer = (m) => m.method === 'tools/list' ? { tools: [] } : listed(m);"), "offers no tool"),
        ("export default { fetch() { throw new Error('no fetch today') } }".to_owned(), "no fetch today"),
        ("export default { fetch: () => ({ status: 200 }) }".to_owned(), "Response"),
        ("export default { fetch: () => new Promise(() => {}) }".to_owned(), "unanswered"),
        ("export default { fetch: () => new Response('hello', { status: 404 }) }".to_owned(), "status 404"),
        ("export default { fetch: () => new Response(new ReadableStream({ pull(c) { c.enqueue('no bytes') } })) }".to_owned(), "TypeError"),
        ("export default { fetch: () => new Response('data: {}\\n\\n', { headers: { 'content-type': 'text/event-stream' } }) }".to_owned(), "no response to it"),
        ("export default function createServer() { throw new Error('none made') }".to_owned(), "none made"),
        ("export default function createServer() { return 7 }".to_owned(), "no default export that is a server"),
    ];
    for (source, message) in cases {
        let failure = surface(&pool, &Server::new(&source).deploy()).await.map(|_| ()).expect_err(&source);
        assert_eq!(failure.code, Code::InitFailed, "{source}\n{failure}");
        assert!(failure.message.contains(message), "`{failure}` does not say `{message}`\n{source}");
    }
}

#[tokio::test]
async fn a_server_that_never_ends_to_initialise_reaches_its_limits() {
    let pool = pool().await;
    let sources = [
        handmade("const answer = (m) => { for (;;); };"),
        handmade("const answer = (m, t) => { for (;;) t.send({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }); };"),
        handmade("const answer = async (m, t) => { for (;;) await t.send({ jsonrpc: '2.0', id: 1, method: 'ping' }); };"),
        handmade("const many = Array.from({ length: 100 }, (_, i) => i); let n = 0; const big = 'x'.repeat(1 << 20);
           const answer = (m) => m.method === 'tools/list' ? { tools: many.map(() => ({ ...tools[0], name: `t${n++}`, description: JSON.parse(JSON.stringify(big + n)) })), nextCursor: 'x' } : listed(m);"),
        "export default { fetch: () => new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 16)) } }), { headers: { 'content-type': 'text/event-stream' } }) }".to_owned(),
    ];
    for source in sources {
        let server =
            Server::new(&source).limit("init_cpu_ms", 200).limit("init_time_ms", 20_000).limit("memory_mb", 64);
        let failure = surface(&pool, &server.deploy()).await.map(|_| ()).expect_err(&source);
        let ended = matches!(failure.code, Code::InitLimit) || failure.message.contains("too long");
        assert!(ended, "{source}\n{failure}");
    }
}

#[tokio::test]
async fn what_a_call_sends_hurts_that_call_alone() {
    let pool = pool().await;
    let note = "{ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(100) } }";
    let cases = [
        // A million lines end at the log's limit, a million of nonsense at the CPU's.
        (format!("for (let i = 0; i < 1e6; i++) t.send({note});"), Err(Code::LogLimit)),
        ("for (let i = 0; i < 1e9; i++) t.send({ jsonrpc: '2.0', method: 'notifications/nothing' });".to_owned(), Err(Code::CpuLimit)),
        ("await t.send({ jsonrpc: '2.0', id: m.id + 1, result: text('of another') });".to_owned(), Err(Code::TimeLimit)),
        ("await t.close();".to_owned(), Err(Code::ToolError)),
        ("t.onmessage = 7; await t.send({ jsonrpc: '2.0', id: 'q', method: 'ping' }).catch(() => {}); return text('still');".to_owned(), Ok("still")),
        ("for (const sent of [null, 7, [], {}, { id: m.id + 5 }, { method: 7 }, { method: 'notifications/progress' }, { id: {}, method: 'x' }, { method: 'notifications/message', params: null }, { method: 'notifications/progress', params: { progressToken: m.id, progress: 'much' } }]) await t.send(sent).catch(() => {}); return text('fine');".to_owned(), Ok("fine")),
        ("await t.send({ jsonrpc: '2.0', id: m.id, result: text('first') }); await t.send({ jsonrpc: '2.0', id: m.id, result: text('second') });".to_owned(), Ok("first")),
        ("const level = 'constructor'; await t.send({ method: 'notifications/message', params: { level, data: { a: 1 } } }); return text('logged');".to_owned(), Ok("logged")),
        ("await t.send({ jsonrpc: '2.0', id: m.id, result: new Proxy({}, { get() { throw new Error('a trap') } }) });".to_owned(), Err(Code::ToolError)),
        ("return { get content() { for (;;); } };".to_owned(), Err(Code::CpuLimit)),
        ("return { content: 1n };".to_owned(), Err(Code::ToolError)),
    ];
    for (body, expected) in cases {
        let source = handmade(&format!(
            "const answer = async (m, t) => {{ if (m.method !== 'tools/call') return listed(m); {body} }};"
        ));
        let server = Server::new(&source).limit("time_ms", 1_500).deploy();
        let got = call(&pool, &server, "run", json!({})).await;
        let got = got.map(|said| said["content"][0]["text"].as_str().unwrap().to_owned()).map_err(|(code, _)| code);
        assert_eq!(got, expected.map(str::to_owned), "{body}");
        // Another server of the same host is none the worse for it.
        assert_eq!(run(&pool, &Server::new("return 1").deploy(), "{}").await.unwrap(), "1");
    }
}

/// A server may confuse its own calls, as it may hand its own variables about; but it has to mean to.
#[tokio::test]
async fn a_closed_connection_fails_those_that_wait_and_those_that_come() {
    let pool = pool().await;
    let source = handmade(
        "const answer = (m, t) => {
           if (m.method !== 'tools/call') return listed(m);
           if (m.params.arguments.close) t.close();
           return undefined;
         };",
    );
    let server = Server::new(&source).boundary(Boundary::Server).deploy();
    let waits = {
        let (pool, server) = (pool.clone(), server.clone());
        tokio::spawn(async move { call(&pool, &server, "run", json!({})).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    for input in [json!({ "close": true }), json!({})] {
        let (code, message) = call(&pool, &server, "run", input).await.unwrap_err();
        assert!(code == Code::ToolError && message.contains("closed its connection"), "{code:?} {message}");
    }
    assert_eq!(waits.await.unwrap().unwrap_err().0, Code::ToolError);
}

/// What was shown when it was deployed is what there is.
#[tokio::test]
async fn tools_that_come_later_are_not_there() {
    let pool = pool().await;
    let source = handmade(
        "const answer = (m, t) => {
           if (m.method !== 'tools/call') return listed(m);
           tools.push({ name: 'late', inputSchema: { type: 'object' } });
           t.send({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
           return text(m.params.name);
         };",
    );
    let server = Server::new(&source).boundary(Boundary::Server).deploy();
    let client = Client::silent();
    ask(&pool, &server, &client, Operation::Tool, "run", json!({})).await.unwrap();
    // The host hears what it shows by now.
    let heard = client.heard();
    assert_eq!((heard.len(), heard[0].0.as_str(), &heard[0].1["what"]), (1, "notify", &json!("tools")));
    assert!(heard[0].1["shows"].as_str().unwrap().contains(r#"{"name":"late""#), "{heard:?}");
    assert_eq!(call(&pool, &server, "late", json!({})).await.unwrap_err().0, Code::UnknownTool);
}

/// Whoever bends what everything is made of bends it for himself; what is around him still stands.
#[tokio::test]
async fn builtins_that_were_replaced_break_their_server_at_most() {
    let pool = pool().await;
    let bends = [
        "Promise.prototype.then = function () { return this };",
        "Promise.prototype.then = () => { throw new Error('bent') };",
        "Object.defineProperty(Object.prototype, 'then', { get() { throw new Error('bent') }, configurable: true });",
        "for (const name of ['push', 'map', 'filter', 'forEach', Symbol.iterator]) Array.prototype[name] = () => { throw new Error('bent') };",
        "JSON.stringify = () => '{\"bent\":true}'; JSON.parse = () => ({ bent: true });",
        "Map.prototype.get = () => 7; Map.prototype.set = () => 7; WeakMap.prototype.get = () => 7;",
        "Object.defineProperty(Object.prototype, 'method', { get: () => 'ping', configurable: true });",
        "Object.freeze = Object.entries = Reflect.apply = () => { throw new Error('bent') };",
        "globalThis.Promise = class { constructor() { throw new Error('bent') } };",
    ];
    let plain = handmade("const answer = (m) => m.method === 'tools/call' ? text('whole') : listed(m);");
    let weather = example("sdk-v1");
    for bend in bends {
        for (source, tool) in [(&plain, "run"), (&weather, "temperature")] {
            // After the server is made, before it is connected: a module's own code runs first.
            let server =
                server(&format!("{source}\n{bend}")).limit("init_time_ms", 5_000).limit("time_ms", 2_000).deploy();
            match call(&pool, &server, tool, json!({ "city": "Oslo" })).await {
                Ok(said) => assert!(
                    said["content"][0]["text"] == "whole" || said["content"][0]["text"] == "4 °C",
                    "{bend}: {said}"
                ),
                Err((code, message)) => {
                    let own = [Code::InitFailed, Code::InitLimit, Code::ToolError, Code::TimeLimit, Code::CpuLimit];
                    assert!(own.contains(&code), "{bend}: {code:?} {message}");
                }
            }
        }
        assert_eq!(run(&pool, &Server::new("return 1").deploy(), "{}").await.unwrap(), "1", "{bend}");
    }
}
