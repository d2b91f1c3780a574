import { expose, illegalConstructor, internal } from "./webidl.js";
import { EventTarget } from "./event_target.js";
import { performanceNow, timeOrigin } from "./clock.js";

export class Performance extends EventTarget {
  #brand = true;
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
    super();
  }
  get timeOrigin() {
    this.#brand;
    return timeOrigin();
  }
  now() {
    this.#brand;
    return performanceNow();
  }
  toJSON() {
    this.#brand;
    return { timeOrigin: timeOrigin() };
  }
}
expose(Performance);

export const performance = new Performance(internal);
