//! What authors read.

use crate::support::Project;

#[test]
fn an_error_names_file_line_and_column() {
    let project = Project::new(&[
        ("src/server.ts", "import './a';\nexport default {};\n"),
        ("src/a.ts", "export const ä = 1;\nconst 'ö' = ;\n"),
        ("src/b.ts", "/* ä😀 */ import './missing';\n"),
    ]);
    let text = project.refusal("src/server.ts");
    assert_eq!(text, "src/a.ts:2:7: Expected identifier but found \"'ö'\"\n    const 'ö' = ;");
    let text = project.refusal("src/b.ts");
    assert!(text.starts_with("src/b.ts:1:17: Could not resolve"), "{text}");
}

#[test]
fn all_errors_are_told() {
    let project = Project::new(&[(
        "a.ts",
        "import './missing';\nimport 'not-installed/sub';\nimport '@scope/name';\nimport x from 'node:fs';\nexport default { x };\n",
    )]);
    let text = project.refusal("a.ts");
    assert!(text.contains("a.ts:1:8: Could not resolve \"./missing\"\n    import './missing';"), "{text}");
    assert!(text.contains("a.ts:2:8: `not-installed/sub` is not installed: `npm install not-installed`\n"), "{text}");
    assert!(text.contains("a.ts:3:8: `@scope/name` is not installed: `npm install @scope/name`\n"), "{text}");
    assert!(
        text.contains("a.ts:4:15: `node:fs` is a module of Node, which is not here: there is no file system; import"),
        "{text}"
    );
    assert!(text.ends_with("    import x from 'node:fs';"), "{text}");
}

#[test]
fn modules_of_node_are_refused_wherever_they_are_imported() {
    let project = Project::new(&[
        ("server.ts", "import { a } from 'outer';\nexport default { a };\n"),
        ("node_modules/outer/index.js", "export { a } from 'inner/lib/a.js';\n"),
        ("node_modules/inner/lib/a.js", "const path = require('path');\nexports.a = path.join('a');\n"),
    ]);
    let text = project.refusal("server.ts");
    assert!(
        text.starts_with("node_modules/inner/lib/a.js:1:22: `path` is a module of Node, which is not here: "),
        "{text}"
    );
    let way = "imported by way of `server.ts` → `node_modules/outer/index.js` → `node_modules/inner/lib/a.js`";
    assert!(text.ends_with(way), "{text}");
}

#[test]
fn a_package_in_place_of_a_module_of_node_is_used() {
    let project = Project::new(&[
        ("server.ts", "import { join } from 'path';\nexport default { join };\n"),
        ("node_modules/path/index.js", "export const join = 1;\n"),
    ]);
    assert_eq!(project.built("server.ts").inputs, ["node_modules/path/index.js", "server.ts"]);
}

#[test]
fn what_would_fail_later_is_a_warning() {
    let project = Project::new(&[(
        "server.ts",
        "let fs;\ntry { fs = require('fs'); } catch {}\nexport default { a: () => typeof fs };\n",
    )]);
    let built = project.built("server.ts");
    let [warning] = &built.warnings[..] else { panic!("{:?}", built.warnings) };
    assert!(warning.starts_with("server.ts:2:20: `fs` is not there"), "{warning}");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let project = Project::new(&[("server.ts", "\nimport a from 'https://127.0.0.1/a.js';\nexport default { a };\n")]);
    let text = project.refusal("server.ts");
    assert!(text.starts_with("server.ts:2:15: `https://127.0.0.1/a.js` is not in the project: "), "{text}");
}

#[test]
fn what_cannot_be_imported_says_what_can() {
    let project = Project::new(&[("server.ts", "import a from './a.bin';\nexport default { a };\n"), ("a.bin", "")]);
    let text = project.refusal("server.ts");
    assert!(text.contains("No loader is configured") && text.contains("JSON and text"), "{text}");
}

#[test]
fn a_script_that_imports_is_told_to_become_a_module() {
    let project = Project::new(&[
        ("server.js", "const { a } = await import('./a.js');\nreturn a;\n"),
        ("a.js", "export const a = 1;\n"),
    ]);
    let text = project.refusal("server.js");
    assert!(text.contains("server.js:2:1: ") && text.contains("make it a module"), "{text}");
}

#[test]
fn hidden_characters_are_written_out() {
    let project = Project::new(&[
        (
            "server.ts",
            "import './\\x1b[2J\\n\\u202ea';\nimport './b\\nc.ts';\nimport \"./\u{202e}\";\nexport default {};\n",
        ),
        ("b\nc.ts", "\u{1b}[31m const = 1\n"),
    ]);
    // `refusal` looks for them.
    let text = project.refusal("server.ts");
    assert!(text.contains("b\\u{a}c.ts:1:"), "{text}");
    assert!(text.contains("\\u{1b}[31m const = 1"), "{text}");
    assert!(text.contains("\\u{202e}"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 1000), "{text}");
}

#[test]
fn many_errors_and_long_lines_stay_readable() {
    let mut source = "import 'x';".repeat(10_000);
    for n in 0..500 {
        source += &format!("\nimport 'missing-{n}';");
    }
    let project = Project::new(&[("server.ts", &source)]);
    let text = project.refusal("server.ts");
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.contains("more"), "{text}");
}

#[test]
fn a_wrong_project_or_entry_says_so() {
    let project = Project::new(&[("a.ts", "export default {}")]);
    for (entry, why) in [
        ("b.ts", "cannot be read"),
        ("../secret.ts", "lies outside of the project"),
        ("/etc/passwd", "lies outside of the project"),
        (".", "lies outside of the project"),
        ("", "lies outside of the project"),
        ("a.ts/..", "lies outside of the project"),
        ("--help", "cannot be read"),
    ] {
        let text = project.refusal(entry);
        assert!(text.contains(why), "{entry}: {text}");
    }
    let elsewhere = build::build(&project.root.join("none"), "a.ts", &crate::support::options()).unwrap_err();
    assert!(elsewhere.to_string().contains("cannot be opened"), "{elsewhere}");
    let options = build::Options { esbuild: Some("/none".into()), ..crate::support::options() };
    let missing = build::build(&project.folder(), "a.ts", &options).unwrap_err();
    assert!(missing.to_string().contains("`make build` puts it there, `BULKHEAD_ESBUILD`"), "{missing}");
}
