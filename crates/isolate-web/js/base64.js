import { native } from "./host.js";
import { domString, requireArguments } from "./webidl.js";
import { DOMException } from "./dom_exception.js";

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
    if (!native.isLatin1(text)) throw new DOMException("the text has a character above U+00FF", "InvalidCharacterError");
    return native.btoa(text);
  },
};
