// attack: Imports a file of the host by climbing out of its own folder.
// expect: init_failed
// message: etc/passwd

import passwd from "../../../../../../../../etc/passwd";

export default { tools: { attack: { run: () => passwd } } };
