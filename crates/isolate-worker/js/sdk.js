// A server made with the official SDK, or anything that is connected to a transport as its servers are.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// rpc, offer: rpc.js, offer.js
// checkForm:  form.js
(function sdk(rpc, offer, checkForm) {
  "use strict";

  const { freeze } = Object;
  const { apply } = Reflect;
  const NewPromise = Promise;
  const NewTypeError = TypeError;

  const recognises = (exported) => typeof exported.connect === "function" && typeof exported.close === "function";

  // The validator that makes code of schemas is the SDK's default. One that the author chose stays.
  function replaceValidator(server) {
    if (server?._jsonSchemaValidator?._ajv === undefined) return;
    server._jsonSchemaValidator = { getValidator: (schema) => (value) => checkForm(schema, value) };
  }

  async function adopt(exported) {
    replaceValidator(exported.server ?? exported);
    const peer = rpc.connect((message) => {
      const { onmessage } = transport;
      if (typeof onmessage !== "function") {
        throw new NewTypeError("the server does not listen: its `connect` set no `onmessage`");
      }
      apply(onmessage, transport, [message]);
    });
    const settled = (work) => new NewPromise((resolve) => resolve(work()));
    // The SDK writes its callbacks into it.
    const transport = {
      onmessage: undefined,
      onclose: undefined,
      onerror: undefined,
      sessionId: undefined,
      start: () => settled(() => {}),
      send: (message, options) => settled(() => peer.receive(message, options?.relatedRequestId)),
      close: () =>
        settled(() => {
          peer.close();
          const { onclose } = transport;
          if (typeof onclose === "function") apply(onclose, transport, []);
        }),
    };
    await exported.connect(transport);
    const greeting = await offer.initialize(peer);
    peer.notify("notifications/initialized");
    const adopted = await offer.adopt(peer, greeting);
    // A server with another one inside answers by itself for a tool that it does not have: no author's code runs.
    if (exported.server !== undefined) offer.rehearse(peer);
    return adopted;
  }

  return freeze({ __proto__: null, recognises, adopt });
});
