//! Projects that want what is not theirs: the file `secret.json` beside the project's folder, and the host's.

use crate::support::{Project, options};
use std::fs;
use std::path::Path;
use std::process::Command;

const OUTSIDE: &str = "lies outside of the project";

#[track_caller]
fn refused(project: &Project, place: &str, path: &str) {
    let text = project.refusal("src/a.ts");
    assert!(text.starts_with(&format!("{place}: `{path}` {OUTSIDE}\n")), "{text}");
}

#[test]
fn files_beside_the_project_are_refused_by_name() {
    let project =
        Project::new(&[("src/a.ts", "\n\nimport data from '../../secret.json';\nexport default { data };\n")]);
    refused(&project, "src/a.ts:3:18", "../../secret.json");
}

#[test]
fn every_way_to_say_it_is_refused() {
    let host = Path::new("/etc/passwd");
    assert!(host.exists());
    for path in [
        "../../secret.json",
        "../../../../../../../../etc/passwd",
        "./../../secret",
        "/etc/passwd",
        "/etc/../etc/passwd",
        "file:///etc/passwd",
        "/proc/self/environ",
        "/proc/1/root/etc/passwd",
        "/dev/zero",
        "..//..//secret.json",
        "../../",
    ] {
        for (statement, column) in [
            (format!("import data from '{path}';"), 18),
            (format!("import data from '{path}' with {{ type: 'text' }};"), 18),
            (format!("import data from '{path}' with {{ type: 'json' }};"), 18),
            (format!("export * from '{path}'; const data = 1;"), 15),
            (format!("const data = require('{path}');"), 22),
            (format!("const data = await import('{path}');"), 27),
        ] {
            let project = Project::new(&[("src/a.ts", &format!("{statement}\nexport default {{ data }};\n"))]);
            refused(&project, &format!("src/a.ts:1:{column}"), path);
        }
    }
}

/// Where an import may fail, it is left in the code, and nothing is read.
#[test]
fn what_may_fail_reads_nothing() {
    let project = Project::new(&[(
        "src/a.ts",
        "let a, b;\ntry { a = require('../../secret.json'); } catch {}\nb = import('/etc/passwd').catch(() => 0);\nexport default { a, b };\n",
    )]);
    let built = project.built("src/a.ts");
    assert!(!built.code.contains("hunter2") && !built.code.contains("root:"), "{}", built.code);
    assert_eq!(built.inputs, ["src/a.ts"]);
    assert_eq!(built.warnings.len(), 2, "{:?}", built.warnings);
}

/// Esbuild itself is in the jail: the one thing that the project could reach, and what the list of inputs is checked for.
#[test]
fn the_jails_own_program_is_refused_too() {
    let project = Project::new(&[(
        "src/a.ts",
        "import elf from '../../esbuild' with { type: 'text' };\nexport default { elf };\n",
    )]);
    refused(&project, "src/a.ts:1:17", "../../esbuild");
    let project = Project::new(&[("src/a.ts", "import data from './data.json';\nexport default { data };\n")]);
    project.link("src/data.json", "/esbuild");
    assert_eq!(project.refusal("src/a.ts"), format!("`../esbuild` {OUTSIDE}"));
}

#[test]
fn links_that_lead_out_are_refused() {
    for (link, to) in [
        ("src/data.json", Path::new("../../secret.json")),
        ("src/data.json", Path::new("../../../../../../etc/passwd")),
        ("src/data.json", Path::new("/etc/passwd")),
        ("src/data.json", Path::new("/dev/zero")),
        ("src/data.json", Path::new("../hop")),
    ] {
        let project = Project::new(&[("src/a.ts", "import data from './data.json';\nexport default { data };\n")]);
        project.link(link, to);
        project.link("hop", "../secret.json");
        refused(&project, "src/a.ts:1:18", "./data.json");
    }
    let project = Project::new(&[("src/a.ts", "import data from './data.json';\nexport default { data };\n")]);
    project.link("src/data.json", "data.json");
    assert!(project.refusal("src/a.ts").contains("too many levels of symbolic links"));
    // A folder on the way, and an ending that esbuild adds.
    let project = Project::new(&[("src/a.ts", "import data from './up/secret';\nexport default { data };\n")]);
    project.link("src/up", "../..");
    refused(&project, "src/a.ts:1:18", "./up/secret");
    let project = Project::new(&[("src/a.ts", "import data from './data';\nexport default { data };\n")]);
    project.link("src/data.ts", "../../secret.ts");
    refused(&project, "src/a.ts:1:18", "./data");
}

#[test]
fn packages_that_are_links_out_are_refused() {
    let source = "import data from '@scope/pkg';\nexport default { data };\n";
    for link in ["node_modules/@scope/pkg", "node_modules/@scope", "node_modules", "src/node_modules"] {
        let project = Project::new(&[("src/a.ts", source)]);
        let outside = project.root.join("packages");
        for folder in ["", "pkg", "@scope/pkg"] {
            fs::create_dir_all(outside.join(folder)).unwrap();
            fs::write(outside.join(folder).join("index.js"), "export default 'hunter2'").unwrap();
        }
        project.link(link, "../".repeat(link.split('/').count()) + "packages");
        let text = project.refusal("src/a.ts");
        assert!(text.starts_with(&format!("src/a.ts:1:18: `@scope/pkg` {OUTSIDE}\n")), "{link}: {text}");
        assert!(text.contains("is a link to there"), "{text}");
    }
}

#[test]
fn an_entry_that_is_a_link_out_is_refused() {
    for to in ["../secret.ts", "/etc/passwd"] {
        for entry in ["a.ts", "a.js"] {
            let project = Project::new(&[]);
            project.link(entry, to);
            let text = project.refusal(entry);
            assert!(text.contains("is a link that leads outside of the project"), "{text}");
        }
    }
}

#[test]
fn configurations_reach_no_further() {
    let source = "import data from '@/secret';\nexport default { data };\n";
    for configuration in [
        r#"{ "compilerOptions": { "paths": { "@/*": ["../*.json", "../../*.json"] } } }"#,
        r#"{ "compilerOptions": { "baseUrl": "..", "paths": { "@/*": ["./*.json"] } } }"#,
        r#"{ "compilerOptions": { "baseUrl": "/", "paths": { "@/*": ["etc/passwd"] } } }"#,
        r#"{ "compilerOptions": { "paths": { "@/*": ["/etc/passwd"] } } }"#,
    ] {
        let project = Project::new(&[("src/a.ts", source), ("tsconfig.json", configuration)]);
        let text = project.refusal("src/a.ts");
        assert!(text.contains("src/a.ts:1:18: ") && text.contains("@/secret"), "{text}");
    }
    // Not even its own text.
    for outside in ["../outside.json", "/etc/passwd"] {
        let project = Project::new(&[
            ("src/a.ts", "export default { a: 1 };\n"),
            ("tsconfig.json", &format!("{{ \"extends\": \"{outside}\" }}")),
        ]);
        fs::write(project.root.join("outside.json"), "hunter2").unwrap();
        let text = project.refusal("src/a.ts");
        assert!(text.contains(&format!("tsconfig.json:1:14: `{outside}` {OUTSIDE}")), "{text}");
    }
    let project = Project::new(&[("src/a.ts", "export default { a: 1 };\n")]);
    project.link("tsconfig.json", "../secret.json");
    assert!(!project.built("src/a.ts").code.contains("hunter2"));
}

#[test]
fn packages_describe_their_way_out_in_vain() {
    for description in [
        r#"{ "main": "../../../secret.json" }"#,
        r#"{ "module": "/etc/passwd" }"#,
        r#"{ "exports": "./../../../secret.json" }"#,
        r#"{ "exports": { ".": "../../../secret.json" } }"#,
        r#"{ "exports": { "worker": "/etc/passwd" } }"#,
        r#"{ "browser": "../../../secret.json" }"#,
        r#"{ "main": "index.js", "browser": { "./index.js": "../../../secret.json" } }"#,
        r#"{ "main": "index.js", "browser": { "./other.js": "/etc/passwd" } }"#,
        r##"{ "main": "index.js", "imports": { "#other": "../../../secret.json" } }"##,
    ] {
        let project = Project::new(&[
            ("src/a.ts", "import data from 'pkg';\nexport default { data };\n"),
            ("node_modules/pkg/package.json", description),
        ]);
        if description.contains("index.js") {
            project.write("node_modules/pkg/index.js", "export { default } from './other.js';\n");
            project.write("node_modules/pkg/other.js", "export default 1;\n");
        }
        match project.build("src/a.ts") {
            Ok(built) => {
                assert!(description.contains("index.js"), "{description}");
                assert!(!built.code.contains("hunter2") && !built.code.contains("root:"), "{}", built.code);
                assert!(
                    built.inputs.iter().all(|input| input.starts_with("src/") || input.starts_with("node_modules/"))
                );
            }
            Err(_) => drop(project.refusal("src/a.ts")),
        }
    }
    let project = Project::new(&[
        ("src/a.ts", "import data from '#x';\nexport default { data };\n"),
        ("package.json", r##"{ "imports": { "#x": "../secret.json" } }"##),
    ]);
    project.refusal("src/a.ts");
}

/// Esbuild reads the maps of its inputs.
#[test]
fn maps_of_inputs_lead_nowhere() {
    for url in ["../../secret.json", "/etc/passwd", "file:///etc/passwd"] {
        let project =
            Project::new(&[("src/a.ts", &format!("export default {{ a: 1 }};\n//# sourceMappingURL={url}\n"))]);
        let built = project.built("src/a.ts");
        let all = format!("{built:?}");
        assert!(!all.contains("hunter2") && !all.contains("root:"), "{all}");
    }
}

/// As a user who may make no namespaces: the build says so, and does not happen.
#[test]
fn there_is_no_build_without_a_jail() {
    const INSIDE: &str = "BULKHEAD_TEST_WITHOUT_JAIL";
    if std::env::var_os(INSIDE).is_none() {
        // A user namespace without a map, in which nobody may make another.
        let itself = std::env::current_exe().unwrap();
        let test = ["attacks::there_is_no_build_without_a_jail", "--exact", "--nocapture"];
        let output =
            Command::new("unshare").arg("--user").arg(itself).args(test).env(INSIDE, "1").output().expect("unshare");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("nothing is built"), "{said}");
        return;
    }
    let project = Project::new(&[("a.ts", "export default { a: 1 };\n")]);
    let error = build::build(&project.folder(), "a.ts", &options()).unwrap_err();
    assert!(matches!(error, build::BuildError::Jail(_)), "{error:?}");
    assert!(error.to_string().contains("`bulkhead doctor`"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("user namespace"), "{cause}");
    eprintln!("{error}: {cause}");
}
