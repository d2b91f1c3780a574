// How bodies are written.

function bytes(base64, what) {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    throw new BadInput(`${what} is not base64`);
  }
}

function formBody(body, fields) {
  const usual = { explode: true };
  return fields.flatMap(([name, value]) => {
    const how = hasOwn(body.encoding ?? {}, name) ? body.encoding[name] : {};
    if (how.style) return pairs(how, name, value, how.reserved ? reserved : escaped);
    const one = how.json || isObject(value) ? JSON.stringify(value) : value;
    // A form writes a space as a plus.
    return pairs(usual, name, one, escaped).map((pair) => pair.replaceAll("%20", "+"));
  }).join("&");
}

// By hand: FormData cannot give a part a type without making a file of it.
function multipartBody(body, fields) {
  const boundary = "part-" + crypto.randomUUID();
  const quoted = (text) => text.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  const pieces = [];
  const part = (name, filename, type, content) => {
    let head = `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"`;
    if (filename !== undefined) head += `; filename="${quoted(filename)}"`;
    if (type !== undefined) head += `\r\ncontent-type: ${type}`;
    pieces.push(head + "\r\n\r\n", content, "\r\n");
  };
  for (const [name, value] of fields) {
    const how = hasOwn(body.encoding ?? {}, name) ? body.encoding[name] : {};
    for (const one of isArray(value) && !how.json ? items(value) : [value]) {
      if (how.file) file(part, name, how, one);
      else if (how.json || typeof one === "object") part(name, undefined, how.type ?? "application/json", JSON.stringify(one));
      else part(name, undefined, how.type, plain(one));
    }
  }
  pieces.push(`--${boundary}--\r\n`);
  return { type: `${body.type.split(";")[0]}; boundary=${boundary}`, content: new Blob(pieces) };
}

function file(part, name, how, value) {
  if (!isObject(value) || hasOwn(value, "base64") === hasOwn(value, "text")) throw new BadInput(`${name} needs either \`base64\` or \`text\``);
  const own = (key) => (hasOwn(value, key) && value[key] !== null ? String(value[key]) : undefined);
  const type = own("contentType") ?? how.type ?? (hasOwn(value, "text") ? "text/plain" : "application/octet-stream");
  if (!/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+( *;[\x20-\x7e]*)?$/.test(type)) throw new BadInput(`\`contentType\` of ${name} is none`);
  part(name, own("filename") ?? name, type, hasOwn(value, "text") ? String(value.text) : bytes(String(value.base64), `\`base64\` of ${name}`));
}

// The body of a request as { type, content }, or nothing.
function writeBody(body, input) {
  if (body === null) return undefined;
  const { kind, type } = body;
  let value;
  if (body.fields) {
    const given = body.fields.filter(([arg]) => hasOwn(input, arg));
    if (given.length === 0 && !body.required) return undefined;
    // A map, as an object would take `__proto__` for something else.
    const fields = new Map(given.map(([arg, name]) => [name, input[arg]]));
    if (kind === "json") return { type, content: unmarked("{" + [...fields].map(([name, field]) => JSON.stringify(name) + ":" + JSON.stringify(field)).join(",") + "}") };
    value = [...fields];
  } else {
    if (!hasOwn(input, body.arg)) return undefined;
    value = input[body.arg];
    if (kind === "json") return { type, content: unmarked(JSON.stringify(value)) };
    if (kind === "text") return { type, content: plain(value) };
    if (kind === "bytes") return { type, content: bytes(plain(value), "the body") };
    if (!isObject(value)) throw new BadInput("the body is no object");
    value = entries(value);
  }
  const fields = value.filter(([, field]) => field !== null);
  return kind === "form" ? { type, content: formBody(body, fields) } : multipartBody(body, fields);
}

