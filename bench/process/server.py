"""An MCP server over standard input and output with one tool, without packages: `double_price {"price": 45}`."""

import json
import sys

TOOL = {
    "name": "double_price",
    "description": "Doubles a price",
    "inputSchema": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
}


def initialize(params):
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "prices", "version": "1"},
    }


def call(params):
    if params["name"] != TOOL["name"]:
        raise ValueError(f"there is no tool {params['name']}")
    value = {"doublePrice": params["arguments"]["price"] * 2}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


METHODS = {
    "initialize": initialize,
    "ping": lambda params: {},
    "tools/list": lambda params: {"tools": [TOOL]},
    "tools/call": call,
}


def answer(message):
    known = METHODS.get(message["method"])
    if known is None:
        return {"error": {"code": -32601, "message": "no such method"}}
    try:
        return {"result": known(message.get("params", {}))}
    except (KeyError, TypeError, ValueError) as error:
        return {"error": {"code": -32602, "message": str(error)}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
        sys.stdout.flush()
