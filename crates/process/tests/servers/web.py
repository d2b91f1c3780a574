"""Servers that speak MCP over HTTP, without packages. Which kind, the first argument says:

json, events: each message is a POST, and its answer is JSON or a stream of events. modern: the same without sessions.
old: everything comes back on one stream. All others mean harm, or are merely broken.
"""

import json
import os
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KIND = sys.argv[1]
PORT = 8080
SESSION = "session-1"
VERSION = "2025-06-18"
MODERN = "2026-07-28"

stream = queue.Queue()
waiting = {}
resumable = {}
missing = []
counted = []


def result_of(message, emit):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        offers = {"tools": {"listChanged": True}}
        info = {"name": KIND, "version": "1"}
        return {"protocolVersion": VERSION, "capabilities": offers, "serverInfo": info}
    if method == "server/discover":
        info = {"io.modelcontextprotocol/serverInfo": {"name": KIND, "version": "1"}}
        return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete", "_meta": info}
    if method == "tools/list":
        return {"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        value = run(params["arguments"], params, emit)
        return {"content": [], "structuredContent": value, "resultType": "complete"}
    return None


def run(given, params, emit):
    what = given.get("do")
    if what == "ask":
        entry = waiting["ask-1"] = [threading.Event(), None]
        emit({"id": "ask-1", "method": "sampling/createMessage", "params": {"messages": []}})
        entry[0].wait()
        return entry[1]
    if what == "tell":
        token = params["_meta"]["progressToken"]
        emit({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        emit({"method": "notifications/message", "params": {"level": "warning", "data": "told"}})
        print("on stdout", flush=True)
        return "done"
    if what == "changed":
        stream.put({"method": "notifications/tools/list_changed"})
        time.sleep(0.3)
        return "done"
    if what == "missing":
        return missing
    if what == "count":
        counted.append(1)
        return len(counted)
    if what == "sleep":
        time.sleep(3600)
    return given


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def head(self, status, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def whole(self, status, value, *headers):
        body = b"" if value is None else json.dumps(value).encode()
        kind = [("Content-Type", "application/json")] if body else []
        self.head(status, ("Content-Length", str(len(body))), *kind, *headers)
        self.wfile.write(body)

    def events(self, *headers):
        self.close_connection = True
        self.head(200, ("Content-Type", "text/event-stream"), ("Connection", "close"), *headers)

    def event(self, message, name=None):
        lines = f"event: {name}\n" if name else ""
        text = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
        self.wfile.write(f"{lines}data: {text}\n\n".encode())
        self.wfile.flush()

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def check(self, message):
        """What a client must say in headers; gives what it did not."""
        method = message.get("method")
        wanted = {"mcp-session-id": SESSION, "mcp-protocol-version": VERSION}
        if KIND == "modern":
            wanted = {"mcp-protocol-version": MODERN, "mcp-method": method}
            if method == "tools/call":
                wanted["mcp-name"] = message["params"]["name"]
        elif method == "initialize" or KIND not in ("json", "events"):
            wanted = {}
        wanted["host"] = f"127.0.0.1:{PORT}"
        missing.extend(name for name, value in wanted.items() if self.headers.get(name) != value)

    def do_POST(self):
        message = self.body()
        if self.path not in ("/mcp", "/messages?of=1"):
            return self.whole(404, None)
        if KIND == "modern" and message.get("method") == "initialize":
            error = {"code": -32022, "message": "no such revision"}
            return self.whole(400, {"jsonrpc": "2.0", "id": None, "error": error})
        self.check(message)
        if "method" not in message:
            entry = waiting.pop(message["id"])
            entry[1] = message
            entry[0].set()
            return self.whole(202, None)
        if "id" not in message:
            return self.whole(202, None)
        if self.path == "/messages?of=1":
            self.whole(202, None)
            return self.answer(message, stream.put)
        hostile = globals().get(KIND)
        if callable(hostile) and message["method"] == "tools/call":
            return hostile(self, message)
        session = [("Mcp-Session-Id", SESSION)] if message["method"] == "initialize" and KIND != "modern" else []
        if KIND == "json":
            return self.answer(message, lambda answer: self.whole(200, {"jsonrpc": "2.0", **answer}, *session))
        self.events(*session)
        if message["method"] == "tools/call" and message["params"]["arguments"].get("do") == "resume":
            self.wfile.write(b"id: e1\nretry: 100\ndata:\n\n")
            self.wfile.flush()
            resumable["e1"] = message
            return None
        return self.answer(message, self.event, self.event)

    def answer(self, message, give, emit=None):
        result = result_of(message, emit or stream.put)
        if result is None:
            return give({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        return give({"id": message["id"], "result": result})

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        if last in resumable:
            self.events()
            return self.event({"id": resumable.pop(last)["id"], "result": result_of_resumed()})
        if KIND == "modern" or self.path not in ("/mcp", "/sse"):
            return self.whole(405, None)
        self.events()
        if KIND == "old":
            self.event("/messages?of=1", "endpoint")
        if KIND == "elsewhere":
            self.event("gopher://example.com/messages", "endpoint")
        while True:
            message = stream.get()
            if message is None:
                return None
            self.event(message)


def result_of_resumed():
    return {"content": [], "structuredContent": "resumed"}


def endless_headers(handler, message):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"x-more: " + b"x" * 1000 + b"\r\n")


def endless_event(handler, message):
    handler.events()
    handler.wfile.write(b"data: ")
    while True:
        handler.wfile.write(b"x" * (64 << 10))


def endless_body(handler, message):
    handler.close_connection = True
    handler.head(200, ("Content-Type", "application/json"), ("Connection", "close"))
    while True:
        handler.wfile.write(b"[" * (64 << 10))


def comments(handler, message):
    handler.events()
    while True:
        handler.wfile.write(b": listen to me\n" * 1000)


def strange_kinds(handler, message):
    handler.events()
    while True:
        handler.wfile.write(b"event: chatter\ndata: " + b"x" * 32000 + b"\n\n")


def redirect(handler, message):
    handler.head(307, ("Location", f"http://127.0.0.1:{PORT}/other"), ("Content-Length", "0"))


def other_id(handler, message):
    handler.whole(200, {"jsonrpc": "2.0", "id": 1_000_000, "result": {"content": []}})


def nothing(handler, message):
    handler.events()


def packed(handler, message):
    handler.whole(200, {"jsonrpc": "2.0", "id": message["id"], "result": {}}, ("Content-Encoding", "gzip"))


def forgets(handler, message):
    handler.whole(404, None)


def dies(handler, message):
    os._exit(7)


if KIND == "never":
    time.sleep(3600)
print("Welcome to the greatest server of all!", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
