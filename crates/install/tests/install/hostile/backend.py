# Builds a package and tells in it what a build can reach.
import http.client, json, os, socket, urllib.parse, zipfile


def attempt(action):
    try:
        return action()
    except Exception as error:
        return f"refused: {error}"


def through(method, target):
    proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    connection.request(method, target, headers={"Host": "x"})
    return connection.getresponse().status


def build_wheel(folder, settings=None, metadata=None):
    told = {
        "variables": dict(os.environ),
        "file": attempt(lambda: open("PRIVATE").read()),
        "direct": attempt(lambda: str(socket.create_connection(("127.0.0.1", PORT), 5))),
        "tunnel": attempt(lambda: through("CONNECT", "127.0.0.1:PORT")),
        "plain": attempt(lambda: through("GET", "http://127.0.0.1:PORT/")),
        "registry": attempt(lambda: through("GET", os.environ["PIP_INDEX_URL"] + "/hostile/")),
    }
    info = "hostile-1.0.dist-info"
    files = {
        "probe.json": json.dumps(told),
        "hostile.py": "def main():\n    pass\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nhostile = hostile:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    name = "hostile-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
