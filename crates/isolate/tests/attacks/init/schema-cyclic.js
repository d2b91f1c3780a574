// attack: An input schema that contains itself.
// expect: init_failed
// message: circular

const schema = { type: "object", properties: {} };
schema.properties.self = schema;

export default { tools: { attack: { description: "d", input: schema, run: () => 1 } } };
