// Whether what somebody filled in fits the form that they were asked with: a flat object of a few types, as MCP has it.
// Version 1 of the SDK compiles such schemas to code, and there is no code to be made of text here.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// Gives check(schema, value) → { valid, data, errorMessage }, as the SDK wants it.
(function form() {
  "use strict";

  const { isArray } = Array;
  const { isInteger, isFinite: isFiniteNumber } = Number;
  const { keys, hasOwn } = Object;
  const { parse: parseDate } = Date;
  const { canParse } = URL;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const exec = uncurry(RegExp.prototype.exec);

  const EMAIL = /^[^@\s]+@[^@\s]+$/;
  const DATE = /^\d{4}-\d\d-\d\d$/;
  const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

  const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);
  const isDate = (value) => parseDate(value) === parseDate(value);

  function fitsFormat(format, value) {
    if (format === "email") return exec(EMAIL, value) !== null;
    if (format === "uri") return canParse(value);
    if (format === "date") return exec(DATE, value) !== null && isDate(value);
    if (format === "date-time") return exec(TIME, value) !== null && isDate(value);
    return true;
  }

  // A choice is a list of values, or of objects with a `const` and a title.
  function isChosen(schema, value) {
    const listed = schema.enum ?? schema.oneOf ?? schema.anyOf;
    if (listed === undefined) return true;
    for (let i = 0; i < listed.length; i++) {
      if (value === (schema.enum === undefined ? listed[i].const : listed[i])) return true;
    }
    return false;
  }

  const between = (least, value, most) => !(value < least) && !(value > most);

  // `undefined` where the value fits; what is wrong with it otherwise.
  function misfit(schema, value) {
    const { type } = schema;
    if (type === "string") {
      if (typeof value !== "string") return "must be string";
      if (!between(schema.minLength, value.length, schema.maxLength)) return "has the wrong length";
      return fitsFormat(schema.format, value) ? undefined : `must match format "${schema.format}"`;
    }
    if (type === "number" || type === "integer") {
      if (!(type === "number" ? isFiniteNumber(value) : isInteger(value))) return `must be ${type}`;
      return between(schema.minimum, value, schema.maximum) ? undefined : "is out of range";
    }
    if (type === "boolean") return typeof value === "boolean" ? undefined : "must be boolean";
    if (type === "array") {
      if (!isArray(value)) return "must be array";
      if (!between(schema.minItems, value.length, schema.maxItems)) return "has the wrong number of items";
      for (let i = 0; i < value.length; i++) {
        if (!isChosen(schema.items ?? {}, value[i])) return "has an item that is no choice";
      }
      return undefined;
    }
    const isChoice = type === undefined && (schema.enum ?? schema.oneOf) !== undefined;
    return isChoice ? undefined : `has a type that no form has: ${type}`;
  }

  function misfits(schema, value) {
    if (!isObject(schema) || !isObject(value)) return "data must be object";
    const required = schema.required ?? [];
    for (let i = 0; i < required.length; i++) {
      if (!hasOwn(value, required[i])) return `data must have required property '${required[i]}'`;
    }
    const properties = schema.properties ?? {};
    const names = keys(properties);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (!hasOwn(value, name)) continue;
      const wrong = misfit(properties[name], value[name]);
      if (wrong !== undefined) return `data/${name} ${wrong}`;
      if (!isChosen(properties[name], value[name])) return `data/${name} is no choice`;
    }
    return undefined;
  }

  return (schema, value) => {
    const errorMessage = misfits(schema, value);
    const valid = errorMessage === undefined;
    return { valid, data: valid ? value : undefined, errorMessage };
  };
});
