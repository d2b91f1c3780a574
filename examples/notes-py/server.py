"""An MCP server in nothing but Python's own library: one message a line, in and out."""

import json
import sys

NOTES = []
TOOLS = [
    {
        "name": "add",
        "description": "Keeps a note",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "list", "description": "Shows all notes of this session", "inputSchema": {"type": "object"}},
]


def call(name, arguments):
    if name == "add":
        NOTES.append(arguments["text"])
    return {"content": [{"type": "text", "text": "\n".join(NOTES)}]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
