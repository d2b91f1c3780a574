// attack: Imports the host's own runtime by the name it has in stack traces.
// expect: init_failed

import * as runtime from "bulkhead:runtime";

export default { tools: { attack: { run: () => Object.keys(runtime) } } };
