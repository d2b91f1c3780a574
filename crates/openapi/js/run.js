// A call: one request, one answer.

const MOST_BYTES = 4 * 1024 * 1024;
const MOST_EXCERPT = 2048;

function address(request, input) {
  const { parameters, credentials } = request;
  const values = parameters.map(({ arg }) => (hasOwn(input, arg) && input[arg] !== null ? input[arg] : undefined));
  const path = request.path.map((part) => {
    if (typeof part === "string") return part;
    const value = values[part];
    const text = value === undefined || value === "" ? "" : writePath(parameters[part], value);
    if (text === "") throw new BadInput(`\`${parameters[part].arg}\` is empty, and a path needs it`);
    return text;
  }).join("");
  // A segment of dots would lead to another endpoint, for servers that read escaped slashes as slashes, too.
  if (path.split(/\/|%2f|%5c/i).some((segment) => /^(\.|%2e){1,2}(;|%3b|$)/i.test(segment))) throw new BadInput("a segment of the path would be `.` or `..`");
  const query = [];
  const headers = new Headers();
  const cookie = [];
  parameters.forEach((parameter, index) => {
    const value = values[index];
    if (value === undefined) return;
    if (parameter.in === "query") query.push(...pairs(parameter, parameter.name, value, parameter.reserved ? reserved : escaped));
    else if (parameter.in === "header") headers.set(parameter.name, writeHeader(parameter, value));
    else if (parameter.in === "cookie") cookie.push(...cookies(parameter, value));
  });
  // The host reads escapes when it looks for the mark of a secret.
  unmarked([path, ...query, ...cookie].join("&").replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16))));
  // The host puts the secret where its name stands; nothing here ever has one.
  for (const { in: place, name, value } of credentials) {
    if (place === "header") {
      headers.set(name, value);
      continue;
    }
    const there = place === "query" ? query : cookie;
    // An object with `explode` has the keys that its caller likes.
    if (there.some((pair) => pair.startsWith(escaped(name) + "="))) throw new BadInput(`\`${name}\` is the place of a credential`);
    there.push(`${place === "query" ? escaped(name) : name}=${value}`);
  }
  if (cookie.length > 0) headers.set("cookie", cookie.join("; "));
  if (request.accept) headers.set("accept", request.accept);
  const url = new URL(request.base + path + (query.length > 0 ? "?" + query.join("&") : ""));
  if (url.origin + url.pathname !== request.base + path) throw new BadInput("the path would lead elsewhere");
  return { url, headers };
}

// The first bytes of the body, and whether there are more.
async function read(response, most) {
  const chunks = [];
  let size = 0;
  if (response.body !== null) {
    const reader = response.body.getReader();
    while (size <= most) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      size += value.length;
    }
    if (size > most) reader.cancel().catch(() => {});
  }
  const content = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    content.set(chunk, at);
    at += chunk.length;
  }
  return { content: content.subarray(0, most), more: size > most };
}

const text = (content) => ({ content: [{ type: "text", text: content }] });
const failure = (content) => ({ ...text(content), isError: true });

function base64(content) {
  let binary = "";
  for (let i = 0; i < content.length; i += 8192) binary += String.fromCharCode(...content.subarray(i, i + 8192));
  return btoa(binary);
}

function answer(tool, type, content) {
  const { request, name } = tool;
  const wrapped = request.wrapped;
  const media = type.split(";")[0].trim().toLowerCase();
  const isJson = media === "application/json" || media === "text/json" || media.endsWith("+json") || (media === "" && wrapped !== null);
  if (isJson && content.length > 0) {
    const raw = new TextDecoder().decode(content);
    let value;
    try {
      value = JSON.parse(raw);
    } catch {
      return failure(`the API answered with JSON that cannot be read: ${raw.slice(0, MOST_EXCERPT)}`);
    }
    if (wrapped === true) return { ...text(raw), structuredContent: { result: value } };
    if (isObject(value)) return { ...text(raw), structuredContent: value };
    if (wrapped === null) return text(raw);
    return failure(`the API answered with JSON that is no object, and its specification promises one: ${raw.slice(0, MOST_EXCERPT)}`);
  }
  if (wrapped !== null) {
    return failure(`the API answered with ${content.length === 0 ? "nothing" : media || "something"}, and its specification promises JSON. It took the request.`);
  }
  if (content.length === 0) return text("The API took the request and answered with nothing.");
  if (/^(image|audio)\/[\w.+-]+$/.test(media) && media !== "image/svg+xml") {
    return { content: [{ type: media.split("/")[0], data: base64(content), mimeType: media }] };
  }
  try {
    return text(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch {
    const blob = base64(content);
    return { content: [{ type: "resource", resource: { uri: `openapi:${name}`, mimeType: media || "application/octet-stream", blob } }] };
  }
}

async function call(tool, input, ctx) {
  const { request } = tool;
  const shown = `${request.method} ${request.shown}`;
  let target, body;
  try {
    target = address(request, input ?? {});
    body = writeBody(request.body, input ?? {});
  } catch (error) {
    if (error instanceof BadInput) return failure(`${shown} was not sent: ${error.message}`);
    throw error;
  }
  if (body !== undefined) target.headers.set("content-type", body.type);
  const init = { method: request.method, headers: target.headers, body: body?.content, signal: ctx?.signal };
  try {
    return await exchange(tool, shown, target.url, init);
  } catch (error) {
    return failure(`${shown} could not be sent, or its answer not be read: ${error?.cause?.message ?? error?.message ?? error}`);
  }
}

async function exchange(tool, shown, url, init) {
  const response = await fetch(url, init);
  const type = response.headers.get("content-type") ?? "";
  if (!response.ok) {
    const excerpt = new TextDecoder().decode((await read(response, MOST_EXCERPT)).content);
    const status = `${response.status} ${response.statusText}`.trim();
    return failure(`${shown} was answered with ${status}${excerpt === "" ? "" : "\n" + excerpt}`);
  }
  if (init.method === "HEAD") {
    const head = { status: response.status, headers: Object.fromEntries(response.headers) };
    return { ...text(JSON.stringify(head)), structuredContent: head };
  }
  const { content, more } = await read(response, MOST_BYTES);
  if (more) return failure(`${shown} was answered with more than ${MOST_BYTES} bytes`);
  return answer(tool, type, content);
}

const given = (value) => (value === null || value === "" ? undefined : value);

export default {
  name: table.name,
  title: given(table.title),
  version: given(table.version),
  instructions: given(table.instructions),
  tools: table.tools.map((tool) => ({
    name: tool.name,
    title: given(tool.title),
    description: tool.description,
    input: tool.input,
    output: given(tool.output),
    annotations: tool.annotations,
    run: (input, ctx) => call(tool, input, ctx),
  })),
};
