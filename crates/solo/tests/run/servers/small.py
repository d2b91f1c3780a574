"""A small server: one tool that evaluates an expression, so that tests can ask it anything."""
import json
import sys

TOOL = {"name": "evaluate", "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}}}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        scope = {}
        try:
            exec(params["arguments"]["code"], scope)
            text = json.dumps(scope.get("out"))
        except BaseException as error:
            text = json.dumps(f"{type(error).__name__}: {error}")
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params", {}))}
        print(json.dumps(reply), flush=True)
