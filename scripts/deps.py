#!/usr/bin/env python3
"""Rules for dependencies: where they come from and under which licences, read from `cargo metadata`.

Prints what breaks a rule and exits 1; prints crates that are there in several versions, which is no error.
The advisory database is not in a package registry, so it is not asked.
"""
import json
import re
import subprocess
import sys

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0",
    "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib",
}


def allowed(expression):
    """Whether an SPDX expression can be met with allowed licences: AND binds, OR lets choose."""
    tokens = re.findall(r"\(|\)|[^\s()/]+(?: WITH [^\s()]+)?|/", expression.replace(" WITH ", " WITH "))

    def either(position):
        ok, position = both(position)
        while position < len(tokens) and tokens[position] in ("OR", "/"):
            other, position = both(position + 1)
            ok = ok or other
        return ok, position

    def both(position):
        ok, position = one(position)
        while position < len(tokens) and tokens[position] == "AND":
            other, position = one(position + 1)
            ok = ok and other
        return ok, position

    def one(position):
        if tokens[position] == "(":
            ok, position = either(position + 1)
            return ok, position + 1
        return tokens[position] in ALLOWED, position + 1

    return either(0)[0]


def main():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["packages"]
    broken, versions = [], {}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions.setdefault(package["name"], []).append(package["version"])
        source = package["source"]
        if source is not None and not source.startswith("registry+"):
            broken.append(f"{name}: comes from {source}, not from a package registry")
        if not allowed(package["license"] or ""):
            broken.append(f"{name}: licence `{package['license']}` is not in the list of {sys.argv[0]}")
        for dependency in package["dependencies"] if source is None else []:
            if dependency["req"] == "*" and not dependency.get("path"):
                broken.append(f"{name}: depends on any version of {dependency['name']}")
    for name, several in sorted(versions.items()):
        if len(several) > 1:
            print(f"note: {name} is there in {len(several)} versions: {', '.join(several)}")
    for line in broken:
        print(f"error: {line}")
    print(f"{len(packages)} crates checked")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
