#!/usr/bin/env bash
# Makes the gateway's peers ready in target/bench/gateway: Node servers from npm, FastMCP from PyPI, all pinned.
# Does nothing when they are there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
needs "npm python3-venv" npm python3
[ -x target/v8/node/bin/node ] || scripts/v8.sh

out=target/bench/gateway
npm_packages "the gateway's peers (40 MB)" bench/gateway $out
stamp=$(sha256sum <bench/gateway/requirements.txt)
if [ "$(cat $out/venv/stamp 2>/dev/null)" != "$stamp" ]; then
  say "installing FastMCP from PyPI (once, 150 MB)"
  rm -rf $out/venv
  python3 -m venv $out/venv
  $out/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r bench/gateway/requirements.txt ||
    die "pip could not install FastMCP (see above)"
  echo "$stamp" >$out/venv/stamp
fi
# Node looks for packages beside the program.
cp bench/gateway/*.mjs bench/gateway/*.py $out
