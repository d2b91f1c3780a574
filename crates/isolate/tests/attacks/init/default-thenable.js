// attack: The default export is a thenable that would put another server in its place if anybody awaited it.
// expect: ok
// result: {"server":"exported"}

const server = (name) => ({ tools: { attack: { description: name, run: () => ({ server: name }) } } });

export default { ...server("exported"), then: (resolve) => resolve(server("swapped")) };
