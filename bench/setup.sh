#!/usr/bin/env bash
# Makes the peers ready: the Node that V8 is taken from, and the pinned packages. Does nothing when they are there.
# No install script runs: isolated-vm carries a build for Node 26, workerd and deno are plain executables.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
cd bench

if [ -z "${BENCH_NODE:-}" ]; then
  BENCH_NODE=$(realpath ..)/target/v8/node/bin/node
  [ -x "$BENCH_NODE" ] || "$(realpath ../scripts/v8.sh)"
fi
stamp=$(sha256sum <package-lock.json)
if [ "$(cat node_modules/.stamp 2>/dev/null)" != "$stamp" ]; then
  say "fetching the peers from npm (once, 260 MB on disk)"
  npm ci --ignore-scripts --loglevel=error >&2
  printf '%s\n' "$stamp" >node_modules/.stamp
fi
"$BENCH_NODE" -e 'require("isolated-vm")' 2>/dev/null ||
  die "isolated-vm has no build for $("$BENCH_NODE" --version)" "unset BENCH_NODE, or set it to a Node 24 or 26"
