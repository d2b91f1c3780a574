// Runs a generated module against a server on loopback that shows every byte it gets.
// Prints a port; reads { module, calls } as one line; prints { surface, calls } as one line.
import net from "node:net";
import readline from "node:readline";

setTimeout(() => process.exit(3), 50_000).unref();

const usual = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}';
let requests = [];
let replies = [];

const server = net.createServer((socket) => {
  let got = Buffer.alloc(0);
  socket.on("error", () => {});
  socket.on("data", (data) => {
    got = Buffer.concat([got, data]);
    const end = got.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = got.subarray(0, end).toString("latin1");
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const chunked = /^transfer-encoding: *chunked/im.test(head);
    const body = got.subarray(end + 4);
    if (chunked ? !body.toString("latin1").endsWith("0\r\n\r\n") : body.length < length) return;
    requests.push({ head, body: body.toString("latin1") });
    const { raw = usual, fill = 0, endless = false } = replies.shift() ?? {};
    if (endless) {
      const more = () => socket.destroyed || socket.write(Buffer.alloc(1 << 16, "a"), () => setImmediate(more));
      socket.write(raw, more);
    } else socket.end(Buffer.concat([Buffer.from(raw, "utf8"), Buffer.alloc(fill, "a")]));
  });
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { module, calls } = JSON.parse(line);
  const { default: exported } = await import("data:text/javascript;base64," + Buffer.from(module).toString("base64"));
  const answers = [];
  for (const call of calls) {
    requests = [];
    replies = call.replies ?? [];
    const tool = exported.tools.find(({ name }) => name === call.tool);
    const result = await tool.run(call.input, {}).catch((error) => ({ thrown: String(error) }));
    answers.push({ requests, result: JSON.parse(JSON.stringify(result)) });
  }
  const polluted = Object.keys(Object.prototype).length > 0 || globalThis.polluted !== undefined;
  process.stdout.write(JSON.stringify({ surface: exported, polluted, calls: answers }) + "\n", () => process.exit(0));
}
