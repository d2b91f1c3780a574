import { expose, illegalConstructor, internal } from "./webidl.js";

export class Navigator {
  #brand = true;
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
  }
  get userAgent() {
    this.#brand;
    return "Bulkhead";
  }
}
expose(Navigator);

export const navigator = new Navigator(internal);
