#!/usr/bin/env bash
# Makes undici, the peer of the door to the network, ready in target/bench/egress: from npm, pinned.
# Does nothing when it is there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}
command -v npm >/dev/null || die "\`npm\` is missing" "Debian: apt-get install npm"
[ -x target/v8/node/bin/node ] || scripts/v8.sh

out=target/bench/egress
stamp=$(sha256sum <bench/egress/package-lock.json)
if [ "$(cat $out/stamp 2>/dev/null)" != "$stamp" ]; then
  say "fetching undici from npm (once, 2 MB on disk)"
  rm -rf $out
  mkdir -p $out
  cp bench/egress/package.json bench/egress/package-lock.json $out
  log=$(cd $out && npm ci --ignore-scripts --no-audit --no-fund 2>&1) || die "npm could not install it: $(tail -n 1 <<<"$log")"
  echo "$stamp" >$out/stamp
fi
# Node looks for packages beside the program.
cp bench/egress/undici.mjs $out
