// attack: The module exports `then`, which makes its namespace a thenable that never calls back.
// expect: ok
// result: {"ran":true}

export function then() {}

export default { tools: { attack: { description: "d", run: () => ({ ran: true }) } } };
