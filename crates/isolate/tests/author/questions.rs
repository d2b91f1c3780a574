//! A client to ask and to tell, and log levels.

use crate::client::{Client, request, script, send};
use crate::support::{Kept, Server, pool, tool};
use policy::Boundary;
use sandbox::{Code, Operation};
use serde_json::json;

#[tokio::test]
async fn what_a_turn_asks_leaves_as_one_host_call() {
    let pool = pool().await;
    let client = Client::new("ada");
    let server = Server::new(
        "const later = async (turns, ask) => { for (let i = 0; i < turns; i++) await null; return ask(); };
         const schema = { type: 'object' };
         const all = await Promise.all([
           ctx.elicit({ key: 'name', message: 'Who?', requestedSchema: schema }),
           later(3, () => ctx.sample({ messages: [], maxTokens: 5 })),
           later(20, () => ctx.roots({ key: 'where' })),
           later(2, () => ctx.elicit({ mode: 'url', message: 'Go', url: 'https://x.example', elicitationId: 'e' })),
         ]);
         const next = await ctx.roots();
         return [all[0].content.to, all[1].content.text, all[2].roots[0].uri, all[3].content.to, next.roots.length];",
    )
    .deploy();
    let answer = send(&pool, &server, &tool("run", "{}"), &client).await;
    assert_eq!(answer.outcome.unwrap(), r#"["Who?","Paris","file:///r","Go",1]"#);
    assert_eq!(answer.receipt.host_calls, 2);
    // In the order of asking, and numbered where the author gave no key.
    assert_eq!(client.keys(), [vec!["name", "input-1", "input-2", "where"], vec!["input-3"]]);
    let (_, first) = &client.heard()[0];
    assert_eq!(
        *first,
        json!({ "asks": [
            { "key": "name", "method": "elicitation/create",
              "params": { "message": "Who?", "requestedSchema": { "type": "object" } } },
            { "key": "input-1", "method": "elicitation/create",
              "params": { "mode": "url", "message": "Go", "url": "https://x.example", "elicitationId": "e" } },
            { "key": "input-2", "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 5 } },
            { "key": "where", "method": "roots/list", "params": {} },
        ] })
    );
}

#[tokio::test]
async fn a_question_that_is_none_reaches_nobody() {
    let pool = pool().await;
    let (said, client) = script(
        &pool,
        "const said = [];
         const schema = {};
         const cyclic = {}; cyclic.self = cyclic;
         for (const ask of [
           () => ctx.elicit(), () => ctx.elicit({ message: 1 }), () => ctx.elicit({ message: 'm' }),
           () => ctx.elicit({ mode: 'url', message: 'm' }), () => ctx.sample({}), () => ctx.roots('x'),
           () => ctx.roots({ key: '' }), () => ctx.roots({ key: 'a b' }), () => ctx.roots({ key: 7 }),
           () => ctx.elicit({ message: 'm', requestedSchema: cyclic }), () => ctx.notify.resourceUpdated(1),
         ]) {
           try { await ask(); said.push('ok'); } catch (error) { said.push(error.name); }
         }
         return said;",
    )
    .await;
    assert_eq!(said, json!(["TypeError"; 11].to_vec()));
    assert!(client.heard().is_empty(), "{:?}", client.heard());
}

#[tokio::test]
async fn a_key_is_there_once_in_a_call() {
    let pool = pool().await;
    let (said, client) = script(
        &pool,
        "const said = [];
         for (const key of ['a', 'a', 'b', undefined, 'input-1']) {
           try { await ctx.roots({ key }); said.push('ok'); } catch (error) { said.push(error.message); }
         }
         return said;",
    )
    .await;
    let twice = |key: &str| format!("the key `{key}` is there twice in this call");
    assert_eq!(said, json!(["ok", twice("a"), "ok", "ok", twice("input-1")]));
    assert_eq!(client.keys(), [["a"], ["b"], ["input-1"]]);
}

#[tokio::test]
async fn a_refusal_is_an_error_with_a_code() {
    let pool = pool().await;
    let (said, client) = script(
        &pool,
        "const schema = {};
         const both = await Promise.allSettled([
           ctx.elicit({ message: 'refuse', requestedSchema: schema }), ctx.roots({ key: 'r' }),
         ]);
         const silent = await Promise.allSettled([
           ctx.elicit({ key: 's', message: 'stay silent', requestedSchema: schema }), ctx.roots({ key: 't' }),
         ]);
         ctx.log(both[0].reason);
         return [...both, ...silent].map(({ reason: e }) => e && [e instanceof Error, e.name, e.code, e.message]);",
    )
    .await;
    let refused = json!([true, "Error", "client_cannot", "this client cannot be asked"]);
    let silent = json!([true, "Error", "no_answer", "the client did not answer `s`"]);
    assert_eq!(said, json!([refused, refused, silent, null]));
    let (_, shown) = &client.logged.lock().unwrap()[0];
    assert!(shown.contains("this client cannot be asked") && shown.contains("server.js:3:16"), "{shown}");
}

/// All servers of a tenant may share a process; a refusal must not hand one of them another one's `Error`.
#[tokio::test]
async fn a_refusal_is_of_the_servers_own_realm() {
    let pool = pool().await;
    let source = "export default { tools: { run: { async run(input, ctx) {
        try { await ctx.elicit({ message: 'refuse', requestedSchema: {} }); }
        catch (error) { return [error instanceof Error, error.code]; } } } } }";
    for _ in 0..3 {
        let server = Server::new(source).boundary(Boundary::Tenant).tenant("realms").deploy();
        let answer = send(&pool, &server, &tool("run", "{}"), &Client::new("ada")).await;
        assert_eq!(answer.outcome.unwrap(), r#"[true,"client_cannot"]"#);
    }
}

#[tokio::test]
async fn without_a_client_the_reason_is_told() {
    let pool = pool().await;
    let server = Server::new(
        "const said = [];
         for (const ask of [() => ctx.roots(), () => ctx.client(), () => ctx.notify.toolsChanged()]) {
           try { await ask(); } catch (error) { said.push(`${error.code}: ${error.message}`); }
         }
         return said;",
    )
    .deploy();
    let answer = pool.call(&server, &tool("run", "{}"), Kept::default().host()).await;
    let said: Vec<String> = serde_json::from_slice(&answer.outcome.unwrap()).unwrap();
    assert_eq!(said.len(), 3);
    for line in said {
        assert!(line.starts_with("client_cannot: `bulkhead exec` has no client"), "{line}");
    }
}

#[tokio::test]
async fn a_call_knows_its_client_and_tells_it_of_changes() {
    let pool = pool().await;
    let (said, client) = script(
        &pool,
        "const { client, notify } = ctx;
         const known = await client();
         const told = [await notify.toolsChanged(), await notify.promptsChanged(), await notify.resourcesChanged(),
           await notify.resourceUpdated('cfg://x')];
         return [known.name, known.capabilities, told];",
    )
    .await;
    assert_eq!(said, json!(["ada", { "roots": {} }, [null, null, null, null]]));
    let heard: Vec<_> = client.heard().into_iter().map(|(operation, meta)| json!([operation, meta])).collect();
    let expected = json!([
        ["client", {}],
        ["notify", { "what": "tools" }],
        ["notify", { "what": "prompts" }],
        ["notify", { "what": "resources" }],
        ["notify", { "what": "resource", "uri": "cfg://x" }],
    ]);
    assert_eq!(json!(heard), expected);
}

#[tokio::test]
async fn the_log_has_the_levels_of_the_protocol() {
    let pool = pool().await;
    let (_, client) = script(
        &pool,
        "ctx.log('plain', { a: 1 });
         for (const level of ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']) {
           ctx.log[level](level, 1);
         }
         try { ctx.log.error = () => {}; } catch (error) { ctx.log.debug(error.name); }",
    )
    .await;
    let logged = client.logged.lock().unwrap().clone();
    let pair = |level: &str, text: &str| (level.to_owned(), text.to_owned());
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let mut expected = vec![pair("info", "plain { a: 1 }")];
    expected.extend(levels.iter().map(|level| pair(level, &format!("{level} 1"))));
    expected.push(pair("debug", "TypeError"));
    assert_eq!(logged, expected);
}

#[tokio::test]
async fn a_context_is_for_its_own_call() {
    let pool = pool().await;
    let server = Server::new(
        "let kept; let go;
         export default { tools: {
           keep: { run(input, ctx) { kept = ctx; } },
           wait: { async run(input, ctx) { kept = ctx; await new Promise((resolve) => { go = resolve; }); } },
           use: { async run() {
             try { return (await kept.elicit({ message: 'Who?', requestedSchema: {} })).content.by; }
             catch (error) { return error.code; } finally { go?.(); } } },
         } }",
    )
    .boundary(Boundary::Server)
    .deploy();
    let (ada, bob) = (Client::new("ada"), Client::new("bob"));
    send(&pool, &server, &tool("keep", "{}"), &ada).await.outcome.unwrap();
    let used = send(&pool, &server, &tool("use", "{}"), &bob).await;
    assert_eq!(used.outcome.unwrap(), r#""call_is_over""#);
    assert!(ada.heard().is_empty() && bob.heard().is_empty());

    let (wait, work) = (tool("wait", "{}"), tool("use", "{}"));
    let waiting = send(&pool, &server, &wait, &ada);
    let using = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        send(&pool, &server, &work, &bob).await
    };
    let (_, used) = tokio::join!(waiting, using);
    assert_eq!(used.outcome.unwrap(), r#""ada""#, "the client of the call that the context belongs to");
    assert!(bob.heard().is_empty());
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_asked() {
    let pool = pool().await;
    let (said, client) = script(&pool, "ctx.roots(); return 1;").await;
    assert_eq!(said, json!(1));
    assert!(client.heard().is_empty());
}

#[tokio::test]
async fn a_server_that_initialises_has_nobody_to_ask() {
    let pool = pool().await;
    let client = Client::new("ada");
    let server = Server::new(
        "const seen = [typeof ctx];
         try { await fetch('https://example.com'); } catch (error) { seen.push(error.message); }
         export default () => seen",
    )
    .deploy();
    let answer = send(&pool, &server, &tool("run", "{}"), &client).await;
    let seen = "fetch failed: there is no egress while a server initialises";
    assert_eq!(answer.outcome.unwrap(), json!(["undefined", seen]).to_string());
    assert!(client.heard().is_empty());
}

#[tokio::test]
async fn questions_count_as_host_calls() {
    let pool = pool().await;
    for ask in ["ctx.roots()", "ctx.client()", "ctx.notify.toolsChanged()"] {
        let server = Server::new(&format!("for (;;) await {ask};")).limit("host_calls", 3).deploy();
        let client = Client::new("ada");
        let answer = send(&pool, &server, &tool("run", "{}"), &client).await;
        assert_eq!(answer.outcome.unwrap_err().code, Code::HostCallLimit, "{ask}");
        assert_eq!(client.heard().len(), 3, "{ask}");
    }
}

#[tokio::test]
async fn a_question_is_bounded_as_any_host_call() {
    let pool = pool().await;
    let (said, client) = script(
        &pool,
        "const codes = async (...texts) => {
           const asks = texts.map((message) => ctx.elicit({ message, requestedSchema: {} }));
           return (await Promise.allSettled(asks)).map(({ reason }) => reason?.code ?? 'ok');
         };
         return [
           await codes('x'.repeat(2 ** 20)), await codes('x'.repeat(2 ** 20 - 1000)),
           // What is escaped twice on its way must not outgrow a frame.
           await codes('\"'.repeat(400_000)), await codes('\\\\'.repeat(200_000)),
           // Together they do not fit: what came first is asked.
           await codes('x'.repeat(600_000), 'y'.repeat(600_000), 'z'),
           await ctx.notify.resourceUpdated('x'.repeat(2 ** 20)).catch(({ code }) => code),
         ];",
    )
    .await;
    let large = "host_call_too_large";
    assert_eq!(said, json!([[large], ["ok"], [large], ["ok"], ["ok", large, "ok"], large]));
    assert_eq!(client.keys(), [vec!["input-2"], vec!["input-4"], vec!["input-5", "input-7"]]);
}

#[tokio::test]
async fn tampering_breaks_only_the_tamperer() {
    let pool = pool().await;
    let tricks = [
        "Promise.prototype.then = () => { throw 'then'; }; Promise.prototype.catch = null;",
        "Promise.resolve = Promise.reject = Promise.all = () => { throw 'promise'; };",
        "globalThis.Promise = class { constructor() { throw 'constructed'; } };",
        "for (const name of ['push', 'map', 'join', Symbol.iterator]) Array.prototype[name] = () => { throw 'array'; };",
        "for (const i of [0, 1, 2]) Object.defineProperty(Array.prototype, i, { set() { throw 'index'; } });",
        "globalThis.queueMicrotask = () => {}; globalThis.setTimeout = () => {};",
        "JSON.stringify = () => '{}'; JSON.parse = () => ({ answers: {} });",
        "Map.prototype.get = () => true; Map.prototype.set = () => {}; WeakMap.prototype.get = () => ({});",
        "RegExp.prototype.exec = () => null; RegExp.prototype.test = () => false;",
        "Object.hasOwn = () => false; Object.defineProperty(Object.prototype, 'meta', { set() {}, get: () => '{}' });",
        "for (const key of ['code', 'key', 'method', 'params', 'answers', 'what', 'values', 'total', 'blob']) \
           Object.defineProperty(Object.prototype, key, { set() { throw key; }, get() {}, configurable: true });",
        "Uint8Array.prototype.toBase64 = () => 'forged'; globalThis.Uint8Array = Array;",
        "String.prototype.toString = () => 'forged'; Number.prototype.toString = () => 'forged';",
    ];
    for trick in tricks {
        let server = Server::new(&format!(
            "const bytes = new Uint8Array([1, 2, 3]);
             {trick}
             export default {{
               tools: {{ run: {{ async run(input, ctx) {{
                 const name = await ctx.elicit({{ message: 'Who?', requestedSchema: {{}} }});
                 let code;
                 try {{ await ctx.elicit({{ key: 'k', message: 'refuse', requestedSchema: {{}} }}); }}
                 catch (error) {{ code = error.code; }}
                 return `${{name.content.by}} ${{(await ctx.client()).name}} ${{code}}`;
               }} }} }},
               resources: {{ 'b://x': {{ read: async () => bytes }} }},
               prompts: {{ p: {{ get() {{}}, arguments: [{{ name: 'a', complete: async (v) => [v + '1', v + '2'] }}] }} }},
             }}"
        ))
        .deploy();
        let client = Client::new("ada");
        let asked = send(&pool, &server, &tool("run", "{}"), &client).await;
        assert_eq!(asked.outcome.unwrap(), r#""ada ada client_cannot""#, "{trick}");
        assert_eq!(client.keys(), [["input-1"], ["k"]], "{trick}");
        let read = send(&pool, &server, &request(Operation::Resource, "b://x", &json!({})), &client).await;
        assert_eq!(read.outcome.unwrap(), r#"{"blob":"AQID"}"#, "{trick}");
        let input = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } });
        let complete = send(&pool, &server, &request(Operation::Complete, "", &input), &client).await;
        assert_eq!(complete.outcome.unwrap(), r#"{"values":["v1","v2"]}"#, "{trick}");
        pool.release(&server.id);
    }
}
