//! Traces of a built module that throws.

use crate::support::{Project, target};
use build::map_stack;
use std::process::Command;

#[test]
fn a_trace_leads_to_the_projects_own_lines() {
    let project = Project::new(&[
        (
            "src/server.ts",
            "import { fail } from './lib/fail';\n\ninterface A { b: number }\nexport default {\n  run(a: A) { return fail(a.b); },\n};\n",
        ),
        (
            "src/lib/fail.ts",
            "type N = number;\n\nexport function fail(n: N): never {\n  const wide = '😀'; throw new Error(`no ${n}${wide}`);\n}\n",
        ),
    ]);
    let built = project.built("src/server.ts");
    std::fs::write(project.root.join("bundle.mjs"), &built.code).unwrap();
    let program = "import s from './bundle.mjs'; try { s.run({ b: 1 }) } catch (e) { console.log(e.stack) }";
    std::fs::write(project.root.join("run.mjs"), program).unwrap();
    let node = target("v8/node/bin/node");
    let output = Command::new(node).arg("run.mjs").current_dir(&project.root).env_clear().output().unwrap();
    let name = format!("file://{}", project.root.canonicalize().unwrap().join("bundle.mjs").display());
    let stack = String::from_utf8(output.stdout).unwrap();
    let mapped = map_stack(&built.map, &stack, &name);
    let frames: Vec<&str> = mapped.lines().skip(1).take(2).map(str::trim).collect();
    assert_eq!(frames, ["at fail (src/lib/fail.ts:4:28)", "at Object.run (src/server.ts:5:22)"], "{stack}\n{mapped}");
    assert!(mapped.contains("run.mjs:1:"), "{mapped}");
}
