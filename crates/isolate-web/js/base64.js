import { native } from "./host.js";
import { regExpExec } from "./primordials.js";
import { domString, requireArguments } from "./webidl.js";
import { DOMException } from "./dom_exception.js";

const latin1 = /^[\0-\xff]*$/;

export const { atob, btoa } = {
  atob(data) {
    requireArguments(arguments.length, 1, "atob");
    const text = native.atob(domString(data));
    if (text === undefined) throw new DOMException("the text is not correctly encoded", "InvalidCharacterError");
    return text;
  },
  btoa(data) {
    requireArguments(arguments.length, 1, "btoa");
    const text = domString(data);
    if (regExpExec(latin1, text) === null) {
      throw new DOMException("the text has a character above U+00FF", "InvalidCharacterError");
    }
    return native.btoa(text);
  },
};
