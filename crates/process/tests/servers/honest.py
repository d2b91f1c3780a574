"""A server that uses what the protocol has: what it does, its tool's arguments say."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp import Server, send  # noqa: E402


def run(server, number, given, params):
    what = given.get("do")
    if what == "ask":
        return server.ask(given["method"], {"messages": []})
    if what == "progress":
        token = params["_meta"]["progressToken"]
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}})
        send({"method": "notifications/progress", "params": {"progressToken": 999_999, "progress": 1}})
        return "done"
    if what == "log":
        send({"method": "notifications/message", "params": {"level": "warning", "logger": "me", "data": {"a": 1}}})
        print("on stderr", file=sys.stderr, flush=True)
        time.sleep(0.3)
        return "done"
    if what == "updated":
        send({"method": "notifications/resources/updated", "params": {"uri": "file:///a"}})
        return "done"
    if what == "changed":
        if server.listening:
            send({"method": "notifications/tools/list_changed"})
        return "done"
    if what == "wait":
        while number not in server.cancelled:
            time.sleep(0.01)
        return None
    if what == "cancelled":
        return {"cancelled": len(server.cancelled), "pid": os.getpid()}
    if what == "slow_ask":
        time.sleep(given["after"])
        return server.ask("sampling/createMessage", {"messages": []})
    if what == "sleep":
        time.sleep(given["for"])
        return "awake"
    if what == "look":
        return look()
    if what == "count":
        server.count = getattr(server, "count", 0) + 1
        return server.count
    if what == "pid":
        return os.getpid()
    if what == "input":
        return rounds(server, number, params)
    return given


def rounds(server, number, params):
    """Two rounds of questions, as the newest revision has them."""
    given = params.get("inputResponses")
    if given is None:
        wanted = {"first": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {}}}}
        state = "one"
    elif "first" in given:
        wanted = {"second": {"method": "roots/list"}}
        state = params["requestState"] + " two"
    else:
        return {"state": params["requestState"], "answers": given}
    send({"id": number, "result": {"resultType": "input_required", "inputRequests": wanted, "requestState": state}})
    return None


def look():
    """What can be seen from inside."""
    def attempt(work):
        try:
            work()
            return True
        except OSError:
            return False

    return {
        "environment": sorted(os.environ),
        "folder": os.getcwd(),
        "home": os.listdir(os.environ["HOME"]),
        "root": sorted(os.listdir("/")),
        "app_writable": attempt(lambda: open("/app/x", "w").close()),
        "tmp_writable": attempt(lambda: open("/tmp/x", "w").close()),
        "home_writable": attempt(lambda: open(os.environ["HOME"] + "/x", "w").close()),
        "user": os.getuid(),
        "pids": [name for name in os.listdir("/proc") if name.isdigit()],
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
    }


Server(run, modern=sys.argv[1:] == ["modern"]).serve()
