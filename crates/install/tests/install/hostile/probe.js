// Tells what an install script can reach.
const fs = require("node:fs");
const http = require("node:http");
const net = require("node:net");
const told = { variables: process.env };
const attempt = (action) => {
  try {
    return String(action());
  } catch (error) {
    return `refused: ${error.code ?? error.message}`;
  }
};
told.file = attempt(() => fs.readFileSync("PRIVATE", "utf8"));
told.passwords = attempt(() => {
  const text = fs.readFileSync(`${process.env.HOME}/.npmrc`, "utf8");
  if (!text.includes("_authToken")) throw new Error(`no token in ${text.length} bytes`);
  return text;
});
told.kept = ["/app/.cache/_cacache", "/app/package-lock.json"].filter((path) => fs.existsSync(path));
told.tool = attempt(() => {
  fs.chmodSync("tool.sh", 0o755);
  return require("node:child_process").execFileSync("./tool.sh");
});
fs.writeFileSync("/app/setuid", "");
fs.chmodSync("/app/setuid", 0o777);
told.setuid = attempt(() => fs.chmodSync("/app/setuid", 0o6777));
fs.symlinkSync("/etc/passwd", "/app/outside");
fs.mkdirSync("/app/closed");
fs.writeFileSync("/app/closed/open", "");
fs.chmodSync("/app/closed/open", 0o666);
fs.chmodSync("/app/closed", 0o700);

const proxy = new URL(process.env.HTTP_PROXY);
const through = (options) =>
  new Promise((resolve) => {
    const headers = { host: "x", "x-probe": "1" };
    const request = http.request({ host: proxy.hostname, port: proxy.port, headers, agent: false, ...options });
    const done = (response) => {
      resolve(response.statusCode);
      request.destroy();
    };
    request.on("response", done).on("connect", done);
    request.on("error", (error) => resolve(`refused: ${error.code}`));
    request.end();
  });
const direct = () =>
  new Promise((resolve) => {
    const socket = net.connect(PORT, "127.0.0.1", () => resolve("connected"));
    socket.on("error", (error) => resolve(`refused: ${error.code}`));
  });
(async () => {
  told.direct = await direct();
  told.tunnel = await through({ method: "CONNECT", path: "127.0.0.1:PORT" });
  told.plain = await through({ path: "http://127.0.0.1:PORT/" });
  told.registry = await through({ path: `${process.env.npm_config_registry}hostile` });
  fs.writeFileSync("/app/probe.json", JSON.stringify(told));
})();
