// attack: An input schema of forty objects that is 2^40 when written out.
// expect: init_limit

let schema = { type: "string" };
for (let i = 0; i < 40; i++) schema = { anyOf: [schema, schema] };

export default { tools: { attack: { description: "d", input: { type: "object", properties: { a: schema } }, run: () => 1 } } };
