// The server that the official MCP conformance suite calls by name, written as any other server of Bulkhead's: it runs
// inside the isolate wall and is reached through the gateway. What the suite asks of the gateway is in README.md.

const RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const SILENCE = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

const text = (words) => ({ type: "text", text: words });
const image = () => ({ type: "image", data: RED_PIXEL, mimeType: "image/png" });
const resource = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const says = (...content) => ({ content });
const fromUser = (content) => ({ role: "user", content });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });
const string = { type: "string" };

// Longer than the gateway waits for a tool that may become a task: what comes after it happens in the task.
const LONG_ENOUGH = 1000;

// --- questions that several tools ask ---------------------------------------------------------------------------

const askName = (ctx, key, message = "What is your name?") =>
  ctx.elicit({ key, message, requestedSchema: object({ name: string }) });
const confirm = (ctx) =>
  ctx.elicit({ key: "confirm", message: "Please confirm", requestedSchema: object({ ok: { type: "boolean" } }) });
const complete = (ctx, key, words, maxTokens) => ctx.sample({ key, messages: [fromUser(text(words))], maxTokens });
const outcome = ({ action, content }) => `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`;

// --- tools: results --------------------------------------------------------------------------------------------

const results = {
  // The first one: the suite calls it without arguments to try its headers.
  test_simple_text: {
    description: "Answers with text.",
    run: () => says(text("This is a simple text response for testing.")),
  },
  test_image_content: {
    description: "Answers with an image.",
    run: () => says(image()),
  },
  test_audio_content: {
    description: "Answers with a sound.",
    run: () => says({ type: "audio", data: SILENCE, mimeType: "audio/wav" }),
  },
  test_embedded_resource: {
    description: "Answers with a resource.",
    run: () => says(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  },
  test_multiple_content_types: {
    description: "Answers with text, an image and a resource.",
    run: () =>
      says(
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
      ),
  },
  test_error_handling: {
    description: "Fails.",
    run() {
      throw new Error("This tool intentionally returns an error for testing");
    },
  },
};

// --- tools: while they run --------------------------------------------------------------------------------------

const running = {
  test_tool_with_logging: {
    description: "Logs three lines while it runs.",
    async run(input, ctx) {
      ctx.log.info("Tool execution started");
      await sleep(50);
      ctx.log.info("Tool processing data");
      await sleep(50);
      ctx.log.info("Tool execution completed");
      return says(text("Logged three lines."));
    },
  },
  test_logging_tool: {
    description: "Logs lines that only a client which asked for them may see.",
    run(input, ctx) {
      ctx.log.debug("Looking");
      ctx.log.info("Found");
      ctx.log.error("Lost again");
      return says(text("Logged three lines."));
    },
  },
  test_tool_with_progress: {
    description: "Reports progress while it runs.",
    async run(input, ctx) {
      ctx.progress(0, 100);
      await sleep(50);
      ctx.progress(50, 100);
      await sleep(50);
      ctx.progress(100, 100);
      return says(text("Went from 0 to 100."));
    },
  },
  test_reconnection: {
    description: "Is silent for so long that the gateway ends the stream; its answer waits for whoever comes back.",
    async run() {
      await sleep(1500);
      return says(text("Reconnection test completed successfully"));
    },
  },
  test_trigger_tool_change: {
    description: "Says that the list of tools has changed.",
    async run(input, ctx) {
      await ctx.notify.toolsChanged();
      return says(text("Tools changed."));
    },
  },
  test_trigger_prompt_change: {
    description: "Says that the list of prompts has changed.",
    async run(input, ctx) {
      await ctx.notify.promptsChanged();
      return says(text("Prompts changed."));
    },
  },
};

// --- tools: schemas ---------------------------------------------------------------------------------------------

const schemas = {
  json_schema_2020_12_tool: {
    description: "Has an input schema with much of JSON Schema 2020-12.",
    input: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } },
      },
      properties: {
        name: string,
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: string,
        email: string,
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    run: (input) => says(text(`Reaches ${input.name ?? "somebody"} by ${input.contactMethod ?? "any means"}.`)),
  },
  test_custom_header: {
    description: "Has an argument that clients also send as the header Mcp-Param-Region.",
    input: object({ region: { type: "string", "x-mcp-header": "Region" } }),
    run: ({ region }) => says(text(`Region: ${region}`)),
  },
};

// --- tools: asking the client, either era -----------------------------------------------------------------------

const asking = {
  test_sampling: {
    description: "Has the client's model answer a prompt.",
    input: object({ prompt: string }),
    async run({ prompt }, ctx) {
      const { content } = await complete(ctx, undefined, prompt, 100);
      return says(text(`LLM response: ${content?.text ?? JSON.stringify(content)}`));
    },
  },
  test_elicitation: {
    description: "Asks the user for a name and an address.",
    input: object({ message: string }),
    async run({ message }, ctx) {
      const field = (description) => ({ type: "string", description });
      const requestedSchema = object({ username: field("User's response"), email: field("User's email address") });
      const { action, content } = await ctx.elicit({ message, requestedSchema });
      return says(text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`));
    },
  },
  test_elicitation_sep1034_defaults: {
    description: "Asks the user with a form whose fields have defaults.",
    async run(input, ctx) {
      const properties = {
        name: { type: "string", description: "Name", default: "John Doe" },
        age: { type: "integer", description: "Age", default: 30 },
        score: { type: "number", description: "Score", default: 95.5 },
        status: { type: "string", description: "Status", enum: ["active", "inactive", "pending"], default: "active" },
        verified: { type: "boolean", description: "Verified", default: true },
      };
      const message = "Please look through these values";
      return says(text(outcome(await ctx.elicit({ message, requestedSchema: object(properties, []) }))));
    },
  },
  test_elicitation_sep1330_enums: {
    description: "Asks the user with a form of choices in every form they have.",
    async run(input, ctx) {
      const options = ["option1", "option2", "option3"];
      const titled = (...titles) => titles.map((title, i) => ({ const: `value${i + 1}`, title }));
      const properties = {
        untitledSingle: { type: "string", enum: options },
        titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
        legacyEnum: {
          type: "string",
          enum: ["opt1", "opt2", "opt3"],
          enumNames: ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti: { type: "array", items: { type: "string", enum: options } },
        titledMulti: { type: "array", items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") } },
      };
      const message = "Please choose";
      return says(text(outcome(await ctx.elicit({ message, requestedSchema: object(properties, []) }))));
    },
  },
  test_missing_capability: {
    description: "Needs a client that lends its model.",
    async run(input, ctx) {
      const { content } = await complete(ctx, undefined, "Say something.", 20);
      return says(text(content?.text ?? ""));
    },
  },
  test_streaming_elicitation: {
    description: "Reports progress, then asks the user.",
    async run(input, ctx) {
      ctx.progress(1, 2, "asking");
      const { content } = await askName(ctx, "user_name");
      return says(text(`Hello, ${content?.name}!`));
    },
  },
};

// --- tools: asking the client, round by round -------------------------------------------------------------------

const rounds = {
  test_input_required_result_elicitation: {
    description: "Greets the user by the name they give.",
    async run(input, ctx) {
      const { action, content } = await askName(ctx, "user_name");
      return says(text(action === "accept" ? `Hello, ${content?.name}!` : "Hello, whoever you are!"));
    },
  },
  test_input_required_result_sampling: {
    description: "Has the client's model name a capital.",
    async run(input, ctx) {
      const { content } = await complete(ctx, "capital_question", "What is the capital of France?", 100);
      return says(text(content?.text ?? JSON.stringify(content)));
    },
  },
  test_input_required_result_list_roots: {
    description: "Names the client's roots.",
    async run(input, ctx) {
      const { roots } = await ctx.roots({ key: "client_roots" });
      return says(text(`Roots: ${roots.map(({ uri }) => uri).join(", ")}`));
    },
  },
  test_input_required_result_request_state: {
    description: "Asks for a confirmation, and goes on with the state of the first round.",
    async run(input, ctx) {
      const { content } = await confirm(ctx);
      return says(text(`state-ok: ${content?.ok}`));
    },
  },
  test_input_required_result_multiple_inputs: {
    description: "Asks for a name, a greeting and the roots, all at once.",
    async run(input, ctx) {
      const [user, greeting, { roots }] = await Promise.all([
        askName(ctx, "user_name"),
        complete(ctx, "greeting", "Generate a greeting", 50),
        ctx.roots({ key: "client_roots" }),
      ]);
      return says(text(`${greeting.content?.text} ${user.content?.name}, you have ${roots.length} root(s).`));
    },
  },
  test_input_required_result_multi_round: {
    description: "Asks for a name, and then for a colour.",
    async run(input, ctx) {
      const first = await askName(ctx, "step1", "Step 1: What is your name?");
      const second = await ctx.elicit({
        key: "step2",
        message: "Step 2: What is your favorite color?",
        requestedSchema: object({ color: string }),
      });
      return says(text(`${first.content?.name} likes ${second.content?.color}.`));
    },
  },
  test_input_required_result_tampered_state: {
    description: "Asks for a confirmation with a state that nobody may change.",
    async run(input, ctx) {
      const { content } = await confirm(ctx);
      return says(text(`Confirmed: ${content?.ok}`));
    },
  },
  test_input_required_result_capabilities: {
    description: "Asks only for what the client says it can do.",
    async run(input, ctx) {
      const { capabilities } = await ctx.client();
      const asked = [];
      if (capabilities.sampling) asked.push(complete(ctx, "greeting", "Generate a greeting", 50));
      if (capabilities.elicitation) asked.push(askName(ctx, "user_name"));
      if (capabilities.roots) asked.push(ctx.roots({ key: "client_roots" }));
      const answers = await Promise.all(asked);
      return says(text(`The client answered ${answers.length} question(s).`));
    },
  },
};

// --- tools: tasks -----------------------------------------------------------------------------------------------

const optional = { taskSupport: "optional" };
const required = { taskSupport: "required" };

const tasks = {
  greet: {
    description: "Greets somebody, at once.",
    input: object({ name: string }),
    run: ({ name }) => says(text(`Hello, ${name}!`)),
  },
  slow_compute: {
    description: "Takes its time.",
    input: object({ seconds: { type: "number", minimum: 0 }, label: string }, ["seconds"]),
    execution: optional,
    async run({ seconds, label }) {
      if (seconds > 0) await sleep(seconds * 1000);
      return says(text(`${label ?? "slow_compute"}: done after ${seconds} s`));
    },
  },
  failing_job: {
    description: "Fails after a while, and only as a task.",
    execution: required,
    async run() {
      await sleep(LONG_ENOUGH);
      throw new Error("This job always fails");
    },
  },
  protocol_error_job: {
    description: "Is killed after a while: it uses more CPU time than it may.",
    execution: optional,
    async run() {
      await sleep(LONG_ENOUGH);
      for (;;);
    },
  },
  confirm_delete: {
    description: "Asks, in the middle of its task, whether to delete a file.",
    input: object({ filename: string }),
    execution: optional,
    async run({ filename }, ctx) {
      await sleep(LONG_ENOUGH);
      const requestedSchema = object({ confirm: { type: "boolean" } });
      const { action, content } = await ctx.elicit({ message: `Delete ${filename}?`, requestedSchema });
      return says(text(action === "accept" && content?.confirm ? `Deleted ${filename}.` : `Kept ${filename}.`));
    },
  },
  multi_input: {
    description: "Asks two things at once in the middle of its task.",
    execution: optional,
    async run(input, ctx) {
      await sleep(LONG_ENOUGH);
      const answers = await Promise.all([
        askName(ctx, "first", "What is the first name?"),
        askName(ctx, "second", "What is the second name?"),
      ]);
      return says(text(answers.map(({ content }) => content?.name).join(" and ")));
    },
  },
  test_tool_with_task: {
    description: "Asks for a name, and then goes on as a task.",
    execution: required,
    async run(input, ctx) {
      const { content } = await askName(ctx, "user_name");
      await sleep(LONG_ENOUGH);
      return says(text(`Worked for ${content?.name}.`));
    },
  },
};

// --- resources and prompts --------------------------------------------------------------------------------------

const resources = {
  "test://static-text": {
    name: "static-text",
    description: "Text that never changes.",
    mimeType: "text/plain",
    read: () => "This is the content of the static text resource.",
  },
  "test://static-binary": {
    name: "static-binary",
    description: "An image that never changes.",
    mimeType: "image/png",
    read: () => Uint8Array.fromBase64(RED_PIXEL),
  },
  "test://watched-resource": {
    name: "watched-resource",
    description: "Something to subscribe to.",
    mimeType: "text/plain",
    read: () => "This is the content of the watched resource.",
  },
  "test://template/{id}/data": {
    name: "template",
    description: "Data by its id.",
    mimeType: "application/json",
    complete: { id: (value) => ["123", "124", "200"].filter((id) => id.startsWith(value)) },
    read: ({ variables: { id } }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
  },
};

const prompts = {
  test_simple_prompt: {
    description: "A prompt without arguments.",
    get: () => "This is a simple prompt for testing.",
  },
  test_prompt_with_arguments: {
    description: "A prompt with two arguments.",
    arguments: [
      {
        name: "arg1",
        description: "First test argument",
        required: true,
        complete: (value) => ["paris", "park", "party", "test", "testing"].filter((word) => word.startsWith(value)),
      },
      { name: "arg2", description: "Second test argument", required: true },
    ],
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  },
  test_prompt_with_embedded_resource: {
    description: "A prompt that carries a resource.",
    arguments: [{ name: "resourceUri", description: "URI of the resource to embed", required: true }],
    get: ({ resourceUri }) => ({
      messages: [
        fromUser(resource(resourceUri, "text/plain", "Embedded resource content for testing.")),
        fromUser(text("Please process the embedded resource above.")),
      ],
    }),
  },
  test_prompt_with_image: {
    description: "A prompt that carries an image.",
    get: () => ({ messages: [fromUser(image()), fromUser(text("Please analyze the image above."))] }),
  },
  test_input_required_result_prompt: {
    description: "A prompt that asks the user for its context.",
    async get(input, ctx) {
      const { content } = await ctx.elicit({
        key: "user_context",
        message: "What context should the prompt use?",
        requestedSchema: object({ context: string }),
      });
      return `Work in this context: ${content?.context}`;
    },
  },
};

export default {
  name: "conformance",
  title: "Conformance fixture",
  version: "1.0.0",
  instructions: "Call what the conformance suite names.",
  tools: { ...results, ...running, ...schemas, ...asking, ...rounds, ...tasks },
  resources,
  prompts,
};
