"""A server that wants out: what it tries, its tool's arguments say."""

import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp import Server  # noqa: E402

late, present = {}, {"alice": threading.Event(), "bob": threading.Event(), "done": threading.Event()}


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return {"status": answer.status, "body": answer.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read().decode()}
    except OSError as error:
        return {"error": str(error)}


def attempt(work):
    try:
        return work() or "connected"
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def connect(kind, host, port):
    def work():
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, getattr(socket, kind)) as made:
            made.settimeout(5)
            made.connect((host, port))
            made.send(b"hello")
    return attempt(work)


def proxy():
    host, port = os.environ["HTTP_PROXY"].removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def after_the_call(connection, url):
    """The end of a connection is the end of its call."""
    connection.settimeout(60)
    closed = connection.recv(1) == b""
    late.update(closed=closed, outcome=get(url), at=time.monotonic())


def many(url, count):
    connections = [proxy() for _ in range(count)]
    time.sleep(0.3)
    good = 0
    for connection in connections:
        connection.sendall(f"GET {url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
        good += answer.startswith(b"HTTP/1.1 200 ")
    return good


def run(server, number, given, params):
    what = given["do"]
    if what in ("fetch", "module"):
        return get(given["url"])
    if what == "connect":
        return connect(given.get("kind", "SOCK_STREAM"), given["host"], given["port"])
    if what == "resolve":
        return attempt(lambda: socket.getaddrinfo(given["name"], 80)[0][4][0])
    if what == "environment":
        return dict(os.environ)
    if what == "leave":
        late.clear()
        threading.Thread(target=after_the_call, args=(proxy(), given["url"]), daemon=True).start()
        return "left"
    if what == "late":
        came = time.monotonic()
        while "at" not in late:
            time.sleep(0.01)
        return {**late, "before": late["at"] < came}
    if what == "meet":
        mine, other = (present[name] for name in given["who"])
        mine.set()
        other.wait()
        if given["who"][0] == "bob":
            present["done"].wait()
            return "waited"
        outcome = get(given["url"])
        present["done"].set()
        return outcome
    if what == "many":
        return many(given["url"], given["count"])
    return early


early = get(sys.argv[1]) if len(sys.argv) > 1 else None
Server(run).serve()
