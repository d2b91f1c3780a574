# Makes of what pip has installed what is the same on every machine: scripts name no interpreter of this one, and compiled
# modules hold neither times nor places. They are used without a look at their source, which nobody changes any more.
import base64, compileall, csv, hashlib, pathlib, py_compile, re, sys

root = pathlib.Path(sys.argv[1])
START = re.compile(rb"#!(?:/bin/sh\n'''exec' [^\n]*\n' '''|[^\n]*python[^\n]*)\n")
written = {}
for script in (root / "bin").glob("*"):
    text = b"" if script.is_symlink() or not script.is_file() else script.read_bytes()
    if START.match(text):
        text = START.sub(b"#!/usr/bin/env python3\n", text, count=1)
        script.write_bytes(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
        written[f"../../bin/{script.name}"] = [f"sha256={digest}", str(len(text))]
for record in root.glob("*.dist-info/RECORD"):
    with open(record, newline="") as file:
        rows = [row[:1] + written[row[0]] if row and row[0] in written else row for row in csv.reader(file)]
    with open(record, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(root, quiet=2, force=True, invalidation_mode=mode)
