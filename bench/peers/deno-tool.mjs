function run(input) { return { doublePrice: input.price * 2 } }
const buffer = new Uint8Array(4096);
const input = JSON.parse(new TextDecoder().decode(buffer.subarray(0, Deno.stdin.readSync(buffer))));
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(run(input))}\n`));
Deno.stdin.readSync(buffer);
