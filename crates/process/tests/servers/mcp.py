"""What the test servers have in common: the protocol, both eras, without packages."""

import json
import sys
import threading

out = threading.Lock()
MODERN = "2026-07-28"


def write(text):
    with out:
        sys.stdout.write(text)
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


class Server:
    """`run(server, number, given, params)` gives the value of the tool `run`, or None when it answers by itself."""

    def __init__(self, run, tools=("run",), modern=False):
        self.run, self.tools, self.modern = run, list(tools), modern
        self.waiting, self.asked, self.cancelled, self.listening = {}, 0, [], not modern

    def ask(self, method, params):
        """Asks the client, and waits for the whole answer."""
        self.asked += 1
        key = f"ask-{self.asked}"
        entry = self.waiting[key] = [threading.Event(), None]
        send({"id": key, "method": method, "params": params})
        entry[0].wait()
        return entry[1]

    def give(self, number, value):
        result = {"content": [], "structuredContent": value}
        if self.modern:
            result["resultType"] = "complete"
        send({"id": number, "result": result})

    def call(self, number, params):
        value = self.run(self, number, params.get("arguments"), params)
        if value is not None:
            self.give(number, value)

    def greet(self, number, method, params):
        if self.modern:
            if method != "server/discover":
                return send({"id": number, "error": {"code": -32601, "message": "no handshake here"}})
            info = {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}}
            offers = {"tools": {"listChanged": True}}
            result = {"supportedVersions": [MODERN], "capabilities": offers, "resultType": "complete", "_meta": info}
            return send({"id": number, "result": result})
        if method != "initialize":
            return send({"id": number, "error": {"code": -32601, "message": "no such method"}})
        send({"id": number, "result": {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "legacy", "version": "1"},
        }})

    def listed(self):
        return [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]

    def hear(self, message):
        method, number, params = message.get("method"), message.get("id"), message.get("params", {})
        if method is None:
            entry = self.waiting.pop(number, None)
            if entry is not None:
                entry[1] = message
                entry[0].set()
        elif method in ("initialize", "server/discover"):
            self.greet(number, method, params)
        elif method == "notifications/cancelled":
            self.cancelled.append(params["requestId"])
        elif number is None:
            return
        elif self.modern and params["_meta"]["io.modelcontextprotocol/protocolVersion"] != MODERN:
            send({"id": number, "error": {"code": -32602, "message": "no envelope"}})
        elif method == "subscriptions/listen":
            self.listening = params["notifications"] == {"toolsListChanged": True}
        elif method == "tools/list":
            send({"id": number, "result": {"tools": self.listed()}})
        elif method == "tools/call":
            threading.Thread(target=self.call, args=(number, params), daemon=True).start()
        else:
            send({"id": number, "error": {"code": -32601, "message": "no such method"}})

    def serve(self):
        for line in sys.stdin:
            self.hear(json.loads(line))
