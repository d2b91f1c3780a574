// Time as tenant code may see it: in whole milliseconds, counted from the moment this process began to serve.
import { native, now } from "./host.js";
import { floor } from "./primordials.js";

let origin = 0;
let latest = 0;

/** Milliseconds since the time origin; never runs backwards. A fork sets a new origin and starts over. */
export function performanceNow() {
  const start = native.timeOrigin();
  if (start !== origin) {
    origin = start;
    latest = 0;
  }
  const elapsed = floor(now() - start);
  if (elapsed > latest) latest = elapsed;
  return latest;
}

export const timeOrigin = () => native.timeOrigin();
