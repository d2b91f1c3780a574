// What happens to an exception that no caller is left to catch: an `error` event on the global object first,
// the log after it unless a listener prevented that. The event machinery needs this module and is needed by it,
// so it registers itself.
import { log } from "./host.js";
import { formatError } from "./format_error.js";

let dispatchError = () => true;
let reporting = false;

export const connectErrorEvent = (dispatch) => {
  dispatchError = dispatch;
};

export function reportException(error) {
  let unhandled = true;
  if (!reporting) {
    reporting = true;
    try {
      unhandled = dispatchError(error);
    } catch {
      // A broken event machinery must not hide the error.
    } finally {
      reporting = false;
    }
  }
  if (unhandled) log("error", `Uncaught ${formatError(error)}`);
}
