// attack: Imports code from a data URL, to get past a check of the source.
// expect: init_failed

import hidden from "data:text/javascript,export default () => 42";

export default { tools: { attack: { run: () => hidden() } } };
