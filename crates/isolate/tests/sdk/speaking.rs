//! What else speaks the protocol, and how calls are told apart.

use crate::bundled::with_packages_of;
use crate::client::{Client, ask, call, server, surface};
use crate::support::{Server, pool};
use policy::Boundary;
use sandbox::{Code, Operation};
use serde_json::{Value, json};
use std::sync::Arc;

/// A server with nothing but request handlers: each version of the SDK registers them in its own way.
fn low_level(version: u32) -> String {
    let (package, imports, on) = match version {
        1 => (
            "sdk-v1",
            r#"import { Server } from "@modelcontextprotocol/sdk/server/index.js";
               import * as types from "@modelcontextprotocol/sdk/types.js";
               const fault = (code, text) => new types.McpError(code, text);"#,
            "(name, run) => server.setRequestHandler(types[name + 'RequestSchema'], run)",
        ),
        _ => (
            "sdk-v2",
            r#"import { Server, ProtocolError } from "@modelcontextprotocol/server";
               const fault = (code, text) => new ProtocolError(code, text);
               const METHODS = { ListTools: "tools/list", CallTool: "tools/call", ListPrompts: "prompts/list" };"#,
            "(name, run) => server.setRequestHandler(METHODS[name], run)",
        ),
    };
    let source = format!(
        r#"{imports}
        const server = new Server({{ name: "low", version: "1" }}, {{ capabilities: {{ tools: {{}}, prompts: {{}}, resources: {{}}, logging: {{}} }} }});
        const on = {on};
        on("ListTools", ({{ params }}) => {{
          const page = Number(params?.cursor ?? 0);
          const tools = [{{ name: `tool-${{page}}`, inputSchema: {{ type: "object" }}, _meta: {{ "x/page": page }} }}];
          return page < 4 ? {{ tools, nextCursor: String(page + 1) }} : {{ tools }};
        }});
        on("ListPrompts", () => ({{ prompts: [] }}));
        on("CallTool", async ({{ params }}, extra) => {{
          const {{ ask, code, change }} = params.arguments;
          if (code !== undefined) throw fault(code, "as told");
          if (change) {{
            for (let i = 0; i < 200; i++) await server.sendToolListChanged();
            await server.sendResourceUpdated({{ uri: "a://b" }});
          }}
          const message = {{ role: "user", content: {{ type: "text", text: "?" }} }};
          const sampled = ask ? await server.createMessage({{ messages: [message], maxTokens: 9 }}) : undefined;
          const roots = ask ? await server.listRoots() : undefined;
          return {{ content: [], structuredContent: {{ sampled, roots }}, _meta: {{ "x/own": 1 }} }};
        }});
        export default server;"#
    );
    with_packages_of(package, &source)
}

#[tokio::test]
async fn low_level_servers_are_read_page_by_page() {
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&low_level(version)).deploy();
        let shown = surface(&pool, &server).await.unwrap_or_else(|failure| panic!("{failure}"));
        let tool = |page: u32| json!({ "name": format!("tool-{page}"), "inputSchema": { "type": "object" }, "_meta": { "x/page": page } });
        let expected = json!({ "name": "low", "version": "1", "tools": (0..5).map(tool).collect::<Vec<_>>(),
            "resources": [], "resourceTemplates": [], "prompts": [] });
        assert_eq!(shown, expected, "version {version}");
    }
}

#[tokio::test]
async fn codes_of_errors_are_carried() {
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&low_level(version)).deploy();
        for (code, expected) in [(-32602, Code::BadArguments), (-32603, Code::ToolError), (-32099, Code::ToolError)] {
            let (got, message) = call(&pool, &server, "tool-0", json!({ "code": code })).await.unwrap_err();
            assert_eq!(got, expected, "{message}");
            assert_eq!(message, format!("MCP error {code}: as told"), "version {version}");
        }
    }
}

#[tokio::test]
async fn sampling_and_roots_are_asked_of_the_client() {
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&low_level(version)).deploy();
        let client = Client::new(json!({}));
        let told = ask(&pool, &server, &client, Operation::Tool, "tool-1", json!({ "ask": true })).await.unwrap();
        let expected = json!({
            "sampled": { "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" } },
            "roots": { "roots": [{ "uri": "file:///r" }] },
        });
        assert_eq!(told, json!({ "content": [], "structuredContent": expected, "_meta": { "x/own": 1 } }), "{version}");
    }
}

/// A server that says two hundred times that its tools have changed is heard once.
#[tokio::test]
async fn changes_are_told_once_in_a_call() {
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&low_level(version)).deploy();
        let client = Client::silent();
        ask(&pool, &server, &client, Operation::Tool, "tool-0", json!({ "change": true })).await.unwrap();
        let told = |what: Value| ("notify".to_owned(), what);
        let expected = [told(json!({ "what": "tools" })), told(json!({ "what": "resource", "uri": "a://b" }))];
        assert_eq!(client.heard(), expected, "version {version}");
    }
}

const MEETING: &str = r#"
    const waiting = [];
    const all = (n) => new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === n) for (const go of waiting.splice(0).reverse()) go();
    });
    let aborted = 0;
    const meet = async ({ who, of }, { log, progress, signal, elicit }) => {
      signal.addEventListener("abort", () => aborted++);
      await log(`${who} is here`);
      await all(of);
      await progress(who);
      const { content } = await elicit(who);
      await new Promise((resolve) => setTimeout(resolve, (who * 7) % 5));
      await log(`${who} goes`);
      return { content: [{ type: "text", text: `${who} met ${content.name}` }] };
    };
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
"#;

fn meeting(version: u32) -> String {
    match version {
        1 => with_packages_of(
            "sdk-v1",
            &format!(
                r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js"; import {{ z }} from "zod"; {MEETING}
                const server = new McpServer({{ name: "m", version: "1" }}, {{ capabilities: {{ logging: {{}} }} }});
                server.registerTool("meet", {{ inputSchema: {{ who: z.number(), of: z.number() }} }}, (input, extra) => meet(input, {{
                  signal: extra.signal,
                  // Without a word of which request it belongs to.
                  log: (data) => server.server.sendLoggingMessage({{ level: "info", data }}),
                  progress: (progress) => extra.sendNotification({{ method: "notifications/progress", params: {{ progressToken: extra._meta.progressToken, progress }} }}),
                  elicit: (who) => server.server.elicitInput({{ message: `who is ${{who}}?`, requestedSchema }}),
                }}));
                server.registerTool("aborted", {{}}, () => ({{ content: [{{ type: "text", text: `${{aborted}}` }}] }}));
                export default server;"#
            ),
        ),
        _ => with_packages_of(
            "sdk-v2",
            &format!(
                r#"import {{ McpServer }} from "@modelcontextprotocol/server"; import {{ z }} from "zod"; {MEETING}
                export default function createServer({{ era }}) {{
                  if (era !== "legacy") throw new Error("told nothing");
                  const server = new McpServer({{ name: "m", version: "1" }}, {{ capabilities: {{ logging: {{}} }} }});
                  server.registerTool("meet", {{ inputSchema: z.object({{ who: z.number(), of: z.number() }}) }}, (input, ctx) => meet(input, {{
                    signal: ctx.mcpReq.signal,
                    log: (data) => ctx.mcpReq.log("info", data),
                    progress: (progress) => ctx.mcpReq.notify({{ method: "notifications/progress", params: {{ progressToken: ctx.mcpReq._meta.progressToken, progress }} }}),
                    elicit: (who) => ctx.mcpReq.elicitInput({{ message: `who is ${{who}}?`, requestedSchema }}),
                  }}));
                  server.registerTool("aborted", {{}}, () => ({{ content: [{{ type: "text", text: `${{aborted}}` }}] }}));
                  return server;
                }}"#
            ),
        ),
    }
}

#[tokio::test]
async fn parallel_calls_do_not_mix() {
    const GUESTS: u32 = 12;
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&meeting(version)).boundary(Boundary::Server).deploy();
        let guests = (1..=GUESTS).map(|who| {
            let (pool, server) = (pool.clone(), server.clone());
            tokio::spawn(async move {
                let client = Client::new(json!({ "name": format!("guest {who}") }));
                let input = json!({ "who": who, "of": GUESTS });
                (who, ask(&pool, &server, &client, Operation::Tool, "meet", input).await, client)
            })
        });
        for guest in guests.collect::<Vec<_>>() {
            let (who, met, client) = guest.await.unwrap();
            assert_eq!(met.unwrap()["content"][0]["text"], format!("{who} met guest {who}"), "version {version}");
            let progress = format!(r#"{{"progress":{who}}}"#);
            assert_eq!(client.said(), [format!("info: {who} is here"), progress, format!("info: {who} goes")]);
            assert_eq!(client.heard()[0].1["asks"][0]["params"]["message"], format!("who is {who}?"));
        }
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_request_alone() {
    let pool = pool().await;
    for version in [1, 2] {
        let server = server(&meeting(version)).boundary(Boundary::Server).deploy();
        let meet = |who: u32| {
            let (pool, server, client) = (pool.clone(), server.clone(), Client::new(json!({ "name": "somebody" })));
            let seen = client.clone();
            let task = tokio::spawn(async move {
                ask(&pool, &server, &client, Operation::Tool, "meet", json!({ "who": who, "of": 3 })).await
            });
            (task, seen)
        };
        let here = async |client: &Arc<Client>| {
            while client.said().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let (first, seen) = meet(1);
        here(&seen).await;
        let (gone, seen) = meet(2);
        here(&seen).await;
        gone.abort();
        let told = async || {
            let told = call(&pool, &server, "aborted", json!({})).await.unwrap();
            told["content"][0]["text"].as_str().unwrap().to_owned()
        };
        // The abort follows its caller, and calls keep coming until it is there.
        for _ in 0..1000 {
            if told().await == "1" {
                break;
            }
        }
        assert_eq!(told().await, "1", "version {version}");
        let (third, _) = meet(3);
        for (who, met) in [(1, first), (3, third)] {
            let met = met.await.unwrap().unwrap();
            assert_eq!(met["content"][0]["text"], format!("{who} met somebody"), "version {version}");
        }
        assert_eq!(told().await, "1", "version {version}");
    }
}

const ECHO: &str = r#"server.registerTool("echo", { inputSchema: { text: z.string() } }, async ({ text }, extra) => {
    await extra.sendNotification({ method: "notifications/message", params: { level: "info", data: text } });
    return { content: [{ type: "text", text }] };
  });"#;

/// Version 1 has a transport for fetch handlers: with a server for each request, or one for a session.
#[tokio::test]
async fn handlers_of_version_one_answer_in_json_and_in_streams() {
    let pool = pool().await;
    let head = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; import { z } from "zod";
        import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
        async function connected(options) {
          const server = new McpServer({ name: "f", version: "1" }, { capabilities: { logging: {} } });"#;
    let tail = r#"const transport = new WebStandardStreamableHTTPServerTransport(options);
          await server.connect(transport);
          return transport;
        }"#;
    let session = "const one = await connected({ sessionIdGenerator: () => 'abc' });
        export default { fetch: (request) => one.handleRequest(request) }";
    let each = |json: bool| {
        format!(
            "export default {{ async fetch(request) {{ return (await connected({{ enableJsonResponse: {json} }})).handleRequest(request); }} }}"
        )
    };
    for (kind, export, logs) in
        [("session", session, true), ("stream", &each(false), true), ("json", &each(true), false)]
    {
        let source = with_packages_of("sdk-v1", &format!("{head}\n{ECHO}\n{tail}\n{export}"));
        let server = server(&source).deploy();
        let client = Client::silent();
        let said = ask(&pool, &server, &client, Operation::Tool, "echo", json!({ "text": "é\n→" })).await;
        let said = said.unwrap_or_else(|failure| panic!("{kind}: {failure:?}"));
        assert_eq!(said, json!({ "content": [{ "type": "text", "text": "é\n→" }] }), "{kind}");
        assert_eq!(client.said(), if logs { vec!["info: é\n→"] } else { vec![] }, "{kind}");
    }
}

#[tokio::test]
async fn a_handler_of_the_newest_revision_alone_is_spoken_to_in_it() {
    let pool = pool().await;
    let source = with_packages_of(
        "sdk-v2",
        r#"import { McpServer, createMcpHandler } from "@modelcontextprotocol/server"; import { z } from "zod";
        const input = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }), deep: z.object({ n: z.number().int().meta({ "x-mcp-header": "N" }) }) });
        export default createMcpHandler(() => {
          const server = new McpServer({ name: "modern", version: "3" });
          server.registerTool("where", { inputSchema: input }, async ({ region, deep }, ctx) =>
            ({ content: [{ type: "text", text: `${region} ${deep.n} ${ctx.http.req.headers.get("mcp-protocol-version")}` }] }));
          server.registerResource("é", "r://x/1", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "1" }] }));
          return server;
        }, { legacy: "reject" });"#,
    );
    let server = server(&source).deploy();
    let shown = surface(&pool, &server).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((&shown["name"], &shown["version"]), (&json!("modern"), &json!("3")));
    for region in ["eu", "Österreich", " x ", "=?base64?eA==?="] {
        let said = call(&pool, &server, "where", json!({ "region": region, "deep": { "n": 7 } })).await.unwrap();
        assert_eq!(said["content"][0]["text"], format!("{region} 7 2026-07-28"));
    }
    let uri = shown["resources"][0]["uri"].as_str().unwrap();
    let read = ask(&pool, &server, &Client::silent(), Operation::Resource, uri, json!({})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "1");
}

/// What a server is described by wins, whatever else it has; and a function is called when its tool is.
#[tokio::test]
async fn other_servers_stay_what_they_are() {
    let pool = pool().await;
    let sources = [
        "let n = 0; export default { connect() { n++ }, close() {}, fetch() { n++ }, tools: { run: { run: () => ++n } } }",
        "let n = 0; export default () => ++n",
        "let n = 0; export default function makeServer() { return ++n }",
    ];
    for source in sources {
        assert_eq!(call(&pool, &Server::new(source).deploy(), "run", json!({})).await.unwrap(), json!(1), "{source}");
    }
}
