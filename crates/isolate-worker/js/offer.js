// What a server that speaks MCP itself offers: all of it is asked for while the server initialises, and given in the form
// that other servers have. Each call is then a request to it.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// rpc:     rpc.js
// surface: surface.js
(function offer(rpc, surface) {
  "use strict";

  const { isArray } = Array;
  const { entries, freeze, hasOwn, setPrototypeOf } = Object;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const exec = uncurry(RegExp.prototype.exec);
  const then = uncurry(Promise.prototype.then);
  const push = uncurry(Array.prototype.push);
  const NewError = Error;

  // Without a prototype, so that nobody's accessor sees it filled.
  const empty = () => setPrototypeOf([], null);

  // The revisions that begin with `initialize`, newest first, and the one that does not.
  const VERSIONS = setPrototypeOf(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"], null);
  const MODERN = "2026-07-28";

  // What a client may be asked. Whether the one behind a call can, its host says when it is asked.
  const capabilities = () => ({ roots: {}, sampling: { tools: {}, context: {} }, elicitation: { form: {} } });
  const clientInfo = () => ({ name: "bulkhead", version: "1" });

  const MOST_PAGES = 1000;
  const MOST_ENTRIES = 10_000;
  const MOST_ROUNDS = 16;

  // --- calls -------------------------------------------------------------------------------------------------

  const KEY = /^[A-Za-z0-9_.\/-]{1,120}$/;

  // A server of the newest revision ends a request with questions, and is asked again with the answers.
  async function answers(ctx, requests, round) {
    const list = entries(requests);
    const asked = empty();
    for (let i = 0; i < list.length; i++) {
      const { 0: name, 1: request } = list[i];
      const key = exec(KEY, name) === null ? undefined : round === 1 ? name : `${round}/${name}`;
      const answer = rpc.ask(ctx, request?.method, request?.params, key);
      if (answer === undefined) throw new NewError(`the server asks for \`${request?.method}\`, which nobody can be asked`);
      then(answer, () => {}, () => {}); // it is looked at below, after those before it
      push(asked, answer);
    }
    const responses = {};
    for (let i = 0; i < asked.length; i++) responses[list[i][0]] = await asked[i];
    return responses;
  }

  async function rounds(peer, method, params, ctx, result) {
    for (let round = 1; result?.resultType === "input_required"; round++) {
      if (round > MOST_ROUNDS) throw new NewError(`the server has asked ${MOST_ROUNDS} times, and still wants to`);
      const { inputRequests, requestState } = result;
      const inputResponses = inputRequests === undefined ? undefined : await answers(ctx, inputRequests, round);
      result = await peer.request(method, { ...params, inputResponses, requestState }, ctx);
    }
    return result;
  }

  // `unknown`: whether parameters that do not fit mean that there is no such thing.
  function call(peer, method, params, ctx, unknown, pick) {
    const done = (result) =>
      result?.resultType === "input_required" ? then(rounds(peer, method, params, ctx, result), pick) : pick(result);
    return then(peer.request(method, params, ctx), done, (error) => {
      const answer = rpc.answerOf(error);
      if (answer !== undefined) answer.unknown = unknown;
      throw error;
    });
  }

  const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

  // Who the server is its host says.
  function metaOf(result) {
    const { [SERVER_INFO]: _, ...meta } = result?._meta ?? {};
    for (const key in meta) if (hasOwn(meta, key)) return meta;
    return undefined;
  }

  const picked = {
    __proto__: null,
    tool: (result) => ({
      content: result?.content,
      structuredContent: result?.structuredContent,
      isError: result?.isError,
      _meta: metaOf(result),
    }),
    resource: (result) => ({ contents: result?.contents, _meta: metaOf(result) }),
    prompt: (result) => ({ description: result?.description, messages: result?.messages, _meta: metaOf(result) }),
    complete: (result) => result?.completion,
  };

  // --- what it offers ----------------------------------------------------------------------------------------

  async function pages(peer, method, key, offered) {
    const found = empty();
    let cursor;
    for (let page = 0; offered; page++) {
      if (page === MOST_PAGES) throw new NewError(`\`${method}\` has more than ${MOST_PAGES} pages`);
      let result;
      try {
        result = await peer.request(method, cursor === undefined ? {} : { cursor });
      } catch (error) {
        if (page === 0 && rpc.answerOf(error)?.code === rpc.METHOD_NOT_FOUND) break;
        throw error;
      }
      const list = result?.[key];
      if (!isArray(list)) throw new NewError(`the answer to \`${method}\` has no array \`${key}\``);
      for (let i = 0; i < list.length; i++) {
        if (found.length === MOST_ENTRIES) throw new NewError(`\`${method}\` has more than ${MOST_ENTRIES} entries`);
        push(found, list[i]);
      }
      cursor = result.nextCursor;
      if (cursor === undefined || cursor === null) break;
    }
    return found;
  }

  function contains(list, value) {
    for (let i = 0; i < (list?.length ?? 0); i++) if (list[i] === value) return true;
    return false;
  }

  async function initialize(peer) {
    const params = { protocolVersion: VERSIONS[0], capabilities: capabilities(), clientInfo: clientInfo() };
    const result = await peer.request("initialize", params);
    if (!contains(VERSIONS, result?.protocolVersion)) {
      throw new NewError("the server answers `initialize` with a revision of the protocol that is not known here");
    }
    return { __proto__: null, version: result.protocolVersion, info: result.serverInfo, greeting: result };
  }

  async function discover(peer) {
    const result = await peer.request("server/discover", {});
    if (!contains(result?.supportedVersions, MODERN)) throw new NewError(`the server does not know ${MODERN}`);
    return { __proto__: null, version: MODERN, info: result?._meta?.[SERVER_INFO], greeting: result };
  }

  // Gives what the server offers, and a way to look again.
  async function adopt(peer, greeted, noteTool = () => {}) {
    const again = () => then(list(peer, greeted, () => {}), ({ surface: shown }) => shown);
    return { __proto__: null, read: await list(peer, greeted, noteTool), again };
  }

  // Reads all that the server offers, and gives it in the form that other servers have.
  async function list(peer, { info, greeting }, noteTool) {
    const offered = greeting?.capabilities ?? {};
    const tools = await pages(peer, "tools/list", "tools", offered.tools);
    const prompts = await pages(peer, "prompts/list", "prompts", offered.prompts);
    const resources = await pages(peer, "resources/list", "resources", offered.resources);
    const templates = await pages(peer, "resources/templates/list", "resourceTemplates", offered.resources);
    for (let i = 0; i < tools.length; i++) {
      noteTool(tools[i]);
      const { name, title, description, icons, annotations, execution, _meta } = tools[i];
      const { inputSchema: input, outputSchema: output } = tools[i];
      const run = (given, ctx) => call(peer, "tools/call", { name, arguments: given }, ctx, false, picked.tool);
      tools[i] = { name, title, description, icons, _meta, input, output, annotations, execution, run };
    }
    for (let i = 0; i < prompts.length; i++) {
      const { name, title, description, icons, _meta, arguments: parameters } = prompts[i];
      const get = (given, ctx) => call(peer, "prompts/get", { name, arguments: given }, ctx, false, picked.prompt);
      prompts[i] = { name, title, description, icons, _meta, arguments: parameters, get };
    }
    const { name, title, version, websiteUrl, icons } = info ?? {};
    const { instructions } = greeting;
    const read = surface.read(
      { name, title, version, websiteUrl, icons, instructions, tools, prompts },
      { __proto__: null, resources, templates, completions: offered.completions ? true : undefined },
    );
    read.server.read = (uri, ctx) => call(peer, "resources/read", { uri }, ctx, true, picked.resource);
    read.server.complete = ({ ref, argument, context }, ctx) =>
      call(peer, "completion/complete", { ref, argument, context: context ?? undefined }, ctx, true, picked.complete);
    return read;
  }

  // Takes the way of a call for a tool that is not there, so that what is made at first use is there in every compartment.
  function rehearse(peer) {
    then(peer.request("tools/call", { name: "", arguments: {} }), () => {}, () => {});
  }

  return freeze({ __proto__: null, initialize, discover, adopt, rehearse, capabilities, clientInfo, MODERN });
});
