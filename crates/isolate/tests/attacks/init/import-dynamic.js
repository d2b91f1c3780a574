// attack: Awaits a dynamic import at top level, which is refused as the static one is.
// expect: init_failed
// message: node:child_process

const { execSync } = await import("node:child_process");

export default { tools: { attack: { run: () => execSync("id").toString() } } };
