"""A server of the wall's conformance suite: does what its first argument says. No packages."""

import json
import os
import sys
import threading
import time

out = threading.Lock()
waiting = {}
count = 0
asked = 0


def send(message):
    text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
    with out:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def log(text):
    send({"method": "notifications/message", "params": {"level": "info", "data": text}})


def ask():
    """A host call; a refusal is fine."""
    global asked
    asked += 1
    key = f"ask-{asked}"
    answered = waiting[key] = threading.Event()
    send({"id": key, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
    answered.wait()


def hoard():
    everything = []
    while True:
        everything.append(bytearray(os.urandom(1) * (256 << 10)))
        time.sleep(0.002)


def spin():
    while True:
        pass


def sleep():
    while True:
        time.sleep(3600)


def burn():
    for _ in range(1_000_000):
        pass


def counted():
    global count
    count += 1
    return count


def late():
    log("late")
    ask()


def obey(order):
    if order == "count":
        return counted()
    if order in ("ask", "ask_then_sleep"):
        ask()
    if order in ("log", "log_then_sleep"):
        log("five!")
    if order == "burn":
        burn()
    if order == "spin":
        spin()
    if order in ("sleep", "ask_then_sleep", "log_then_sleep"):
        sleep()
    return None


def run(behaviour, given):
    if behaviour == "echo":
        return given
    if behaviour == "count":
        return counted()
    if behaviour == "linger":
        threading.Thread(target=late, daemon=True).start()
        return counted()
    if behaviour == "spin":
        spin()
    if behaviour == "hoard":
        hoard()
    if behaviour == "sleep":
        sleep()
    if behaviour == "shout":
        while True:
            print("listen to me", file=sys.stderr, flush=True)
    if behaviour == "bulky":
        return "x" * (64 << 10)
    if behaviour == "ask":
        while True:
            ask()
    if behaviour == "fail":
        raise ValueError("broken on purpose")
    if behaviour == "crash":
        os.abort()
    return obey(given.get("do"))


def call(number, behaviour, given):
    try:
        value = run(behaviour, given)
    except ValueError as error:
        send({"id": number, "error": {"code": -32000, "message": str(error)}})
        return
    send({"id": number, "result": {"content": [], "structuredContent": value}})


def answer(message, behaviour):
    method, number = message["method"], message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        server = {"name": "behave", "version": "1"}
        send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}})
    elif method == "tools/list":
        send({"id": number, "result": {"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        given = message["params"]["arguments"]
        threading.Thread(target=call, args=(number, behaviour, given), daemon=True).start()
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "no such method"}})


def main():
    behaviour = sys.argv[1]
    if behaviour == "fail_to_start":
        raise SystemExit("broken on purpose")
    if behaviour == "spin_at_start":
        spin()
    if behaviour == "sleep_at_start":
        sleep()
    if behaviour == "hoard_at_start":
        hoard()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message:
            answer(message, behaviour)
        elif message.get("id") in waiting:
            waiting.pop(message["id"]).set()


main()
