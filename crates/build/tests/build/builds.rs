//! What can be built, and that it runs.

use crate::support::{Project, target};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a module with the Node that carries V8, and gives what it prints of its default export.
fn run(code: &str, expression: &str) -> String {
    let mut node = Command::new(target("v8/node/bin/node"))
        .args(["--input-type=module", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the executable with V8: run scripts/v8.sh");
    let url = format!("data:text/javascript,${{encodeURIComponent({})}}", serde_json::Value::from(code));
    let program = format!("const server = (await import(`{url}`)).default; console.log({expression}); process.exit(0)");
    node.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn typescript_becomes_javascript() {
    let project = Project::new(&[(
        "server.ts",
        "interface Input { a: number }\nenum Level { Low = 1, High }\nexport default { add: (input: Input): number => input.a + Level.High };\n",
    )]);
    let built = project.built("server.ts");
    assert_eq!(run(&built.code, "server.add({ a: 40 })"), "42");
    assert_eq!(built.inputs, ["server.ts"]);
    assert_eq!(built.warnings, [""; 0]);
    let map: serde_json::Value = serde_json::from_str(&built.map).unwrap();
    assert_eq!(map["version"], 3);
    assert_eq!(map["sources"], serde_json::json!(["server.ts"]));
    assert!(map.get("sourcesContent").is_none(), "{map}");
    assert!(!built.code.contains("sourceMappingURL") && !built.code.contains("interface"));
}

#[test]
fn several_files_become_one() {
    let project = Project::new(&[
        (
            "src/server.ts",
            "import { name } from './lib/name.js';\nimport data from '../data.json';\nimport text from './hello.txt';\nimport page from './page.html';\nimport { short } from '@/short';\nexport default { all: () => [name(), data.n, text, page, short].join() };\n",
        ),
        ("src/lib/name.ts", "export * from './deep';\n"),
        ("src/lib/deep/index.tsx", "export const name = () => 'ä' as const;\n"),
        ("src/short.mts", "export const short: string = 's';\n"),
        ("src/hello.txt", "hello"),
        ("src/page.html", "<p>"),
        ("data.json", "{ \"n\": 7 }"),
        (
            "tsconfig.json",
            "{ /* comments are usual */ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*.mts\"] } } }",
        ),
    ]);
    let built = project.built("./src/server.ts");
    assert_eq!(run(&built.code, "server.all()"), "ä,7,hello,<p>,s");
    let inputs = ["data.json", "src/hello.txt", "src/lib/deep/index.tsx", "src/lib/name.ts", "src/page.html"];
    assert_eq!(built.inputs, [&inputs[..], &["src/server.ts", "src/short.mts"]].concat());
    assert!(!built.code.contains("/project") && !built.map.contains("/project"), "{}", built.map);
}

#[test]
fn javascript_that_imports_nothing_is_left_alone() {
    for source in [
        "export default { tools: {} };\n",
        "return input.a + 1;\n",
        "// do not import anything\nreturn 'require(1) from' + (await 1);\n",
        "// important: the word alone\nexport default { a: 'import x from \"./x.js\"' };\n",
        "this is not JavaScript",
        "",
    ] {
        for entry in ["server.js", "server.mjs"] {
            let project = Project::new(&[(entry, source)]);
            let built = project.built(entry);
            assert_eq!((built.code.as_str(), built.map.as_str()), (source, ""));
            assert_eq!(built.inputs, [entry]);
        }
    }
}

/// The wall tells where it is wrong, once it is loaded.
#[test]
fn javascript_with_imports_is_bundled() {
    let project = Project::new(&[
        ("server.js", "import { a } from './a.js';\nexport default { a: () => a };\n"),
        ("a.js", "export const a = require('./b.cjs').b;\n"),
        ("b.cjs", "exports.b = process.env.NODE_ENV;\n"),
    ]);
    let built = project.built("server.js");
    assert_eq!(run(&built.code, "server.a()"), "production");
    assert_eq!(built.inputs, ["a.js", "b.cjs", "server.js"]);
}

#[test]
fn packages_are_bundled() {
    let project = Project::with_packages(&[
        (
            "zod.ts",
            "import { z } from 'zod';\nconst shape = z.object({ a: z.number() });\nexport default { parse: (x: unknown) => shape.parse(x).a };\n",
        ),
        (
            "sdk.ts",
            "import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';\nimport { z } from 'zod';\nconst server = new McpServer({ name: 'a', version: '1' });\nserver.registerTool('t', { inputSchema: { a: z.number() } }, async ({ a }) => ({ content: [{ type: 'text', text: `${a}` }] }));\nexport default { kind: () => server.constructor.name };\n",
        ),
        (
            "server.ts",
            "import { McpServer } from '@modelcontextprotocol/server';\nconst server = new McpServer({ name: 'a', version: '1' });\nexport default { kind: () => server.constructor.name };\n",
        ),
    ]);
    let built = project.built("zod.ts");
    assert_eq!(run(&built.code, "server.parse({ a: 3 })"), "3");
    for entry in ["sdk.ts", "server.ts"] {
        let built = project.built(entry);
        assert!(run(&built.code, "server.kind()").contains("McpServer"), "{entry}");
        assert!(built.inputs.iter().any(|input| input.starts_with("node_modules/@modelcontextprotocol/")));
        assert!(built.inputs.iter().all(|input| !input.starts_with('/') && !input.contains("..")));
        assert!(built.code.len() < 4 << 20, "{}", built.code.len());
    }
}

#[test]
fn links_inside_of_the_project_are_followed() {
    let project = Project::new(&[
        ("server.ts", "import { a } from 'linked';\nimport { b } from './b';\nexport default { ab: () => a + b };\n"),
        ("node_modules/.store/linked/index.js", "export const a = 1;\n"),
        ("real/b.ts", "export const b = 2;\n"),
    ]);
    project.link("node_modules/linked", ".store/linked");
    project.link("b.ts", "real/b.ts");
    let built = project.built("server.ts");
    assert_eq!(run(&built.code, "server.ab()"), "3");
    assert_eq!(built.inputs, ["node_modules/.store/linked/index.js", "real/b.ts", "server.ts"]);
}

#[test]
fn the_same_project_gives_the_same_result() {
    let files = [("server.ts", "import { a } from './a';\nexport default { a };\n"), ("a.ts", "export const a = 1;\n")];
    let (one, other) = (Project::new(&files), Project::new(&files));
    assert_eq!(one.built("server.ts"), other.built("server.ts"));
}

#[test]
fn a_project_may_be_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&[
        ("a.ts", "import { b } from './b';\nexport default { b };"),
        ("b.ts", "export const b: number = 1;"),
    ]);
    for (path, mode) in [("", 0o700), ("a.ts", 0o600), ("b.ts", 0o600)] {
        std::fs::set_permissions(project.folder().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(project.built("a.ts").inputs, ["a.ts", "b.ts"]);
}
