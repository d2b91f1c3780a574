"""Tries what people compare sandboxes by. What, its tool's argument says, or its own when it tries at import."""

import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp import Server  # noqa: E402


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16).decode("latin-1")
    except OSError:
        return None


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return None


def write(path):
    try:
        with open(path, "w") as file:
            file.write("mine")
        return True
    except OSError:
        return False


def connects(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
        return True
    except OSError:
        return False


def environment(given):
    everybody = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    return [dict(os.environ), [read(f"/proc/{pid}/environ") for pid in everybody]]


def objects(given):
    """Descriptors and processes of the host."""
    links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
    killed = []
    for pid in (1, -1, given["pid"]):
        try:
            os.kill(pid, signal.SIGTERM)
            killed.append(pid)
        except OSError:
            pass
    pids = sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit())
    return {"links": links, "pids": pids, "killed": killed, "memory": read("/proc/1/mem"), "sys": listed("/sys")}


def spin(given):
    while True:
        pass


def hoard(given):
    everything = []
    while True:
        everything.append(bytearray(os.urandom(1) * (1 << 20)))


def files(given):
    return {
        "read": [read(path) for path in given["read"]],
        "listed": [listed(path) for path in given["listed"]],
        "written": [path for path in given["write"] if write(path)],
    }


def network(given):
    return [connects(host, port) for host, port in given["to"]]


def bomb(given):
    while True:
        try:
            subprocess.Popen([sys.executable, "-I", __file__, "bomb"])
        except OSError:
            pass


signal.signal(signal.SIGTERM, signal.SIG_IGN)
early = None
if len(sys.argv) > 1:
    import json
    early = globals()[sys.argv[1]](json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})


def run(server, number, given, params):
    return early if given["do"] == "early" else globals()[given["do"]](given)


Server(run).serve()
