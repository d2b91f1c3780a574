#!/usr/bin/env bash
# Makes the gateway's peers ready in target/bench/gateway: Node servers from npm, FastMCP from PyPI, all pinned.
# Does nothing when they are there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}
for tool in npm python3; do
  command -v $tool >/dev/null || die "\`$tool\` is missing" "Debian: apt-get install npm python3-venv"
done
[ -x target/v8/node/bin/node ] || scripts/v8.sh

out=target/bench/gateway
stamp=$(cat bench/gateway/package-lock.json bench/gateway/requirements.txt | sha256sum)
if [ "$(cat $out/stamp 2>/dev/null)" != "$stamp" ]; then
  say "fetching the gateway's peers from npm and PyPI (once, 180 MB on disk)"
  rm -rf $out
  mkdir -p $out
  cp bench/gateway/package.json bench/gateway/package-lock.json $out
  log=$(cd $out && npm ci --ignore-scripts --no-audit --no-fund 2>&1) || die "npm could not install them: $(tail -n 1 <<<"$log")"
  python3 -m venv $out/venv
  $out/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r bench/gateway/requirements.txt ||
    die "pip could not install FastMCP (see above)"
  echo "$stamp" >$out/stamp
fi
# Node looks for packages beside the program.
cp bench/gateway/*.mjs bench/gateway/*.py $out
