// attack: Tools named like paths and like the prototype's own properties; names are data and nothing else.
// expect: ok
// result: {"ran":"attack"}

const tool = (name) => ({ description: name, input: { type: "object" }, run: () => ({ ran: name }) });
const tools = Object.create(null);
for (const name of ["../../etc/passwd", "/proc/self/environ", "constructor", "hasOwnProperty", "attack"]) tools[name] = tool(name);
Object.defineProperty(tools, "__proto__", { value: tool("__proto__"), enumerable: true });

export default { tools };
