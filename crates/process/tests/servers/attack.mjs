// Tries what people compare sandboxes by. What, its tool's argument says, or its own when it tries at import.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import { serve } from "./mcp.mjs";

const attempt = (work, otherwise) => {
  try {
    return work();
  } catch {
    return otherwise;
  }
};
const read = (path) => attempt(() => readFileSync(path, "latin1").slice(0, 1 << 16), null);
const listed = (path) => attempt(() => readdirSync(path), null);
const pids = () => readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number);

const connects = (host, port) =>
  new Promise((done) => {
    const socket = net.connect({ host, port, timeout: 5000 });
    const over = (outcome) => {
      socket.destroy();
      done(outcome);
    };
    socket.once("connect", () => over(true));
    socket.once("error", () => over(false));
    socket.once("timeout", () => over(false));
  });

const attacks = {
  environment: () => [{ ...process.env }, pids().map((pid) => read(`/proc/${pid}/environ`))],
  // Descriptors and processes of the host.
  objects: (given) => {
    const links = readdirSync("/proc/self/fd").map((fd) => attempt(() => readlinkSync(`/proc/self/fd/${fd}`), "gone"));
    process.on("SIGTERM", () => {});
    const killed = [1, -1, given.pid].filter((pid) => attempt(() => process.kill(pid, "SIGTERM"), false));
    return { links, pids: pids(), killed, memory: read("/proc/1/mem"), sys: listed("/sys") };
  },
  spin: () => {
    for (;;);
  },
  hoard: () => {
    const everything = [];
    for (;;) everything.push(Buffer.alloc(1 << 20, 1 + Math.random()));
  },
  files: (given) => ({
    read: given.read.map(read),
    listed: given.listed.map(listed),
    written: given.write.filter((path) => attempt(() => writeFileSync(path, "mine") ?? true, false)),
  }),
  network: (given) => Promise.all(given.to.map(([host, port]) => connects(host, port))),
  bomb: () => {
    for (;;) attempt(() => spawn(process.execPath, [process.argv[1], "bomb"]).on("error", () => {}));
  },
};

const [, , first, words] = process.argv;
const early = first && (await attacks[first](JSON.parse(words ?? "{}")));
await serve((given) => (given.do === "early" ? early : attacks[given.do](given)));
