// attack: Imports a file of the kernel's as JSON data.
// expect: init_failed

import environment from "/proc/self/environ" with { type: "json" };

export default { tools: { attack: { run: () => environment } } };
