#!/usr/bin/env bash
# Makes the peers of the process wall ready: bubblewrap from Debian, and in target/bench/process the server that people
# start with npx, from npm, pinned. Does nothing when they are there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}
for tool in node npm npx python3; do
  found=''
  for folder in /usr/local/bin /usr/bin /bin; do [ ! -x $folder/$tool ] || found=yes; done
  [ -n "$found" ] || die "\`$tool\` is missing in /usr/bin and /usr/local/bin" "Debian: apt-get install npm python3"
done
if ! command -v bwrap >/dev/null; then
  [ "$(id -u)" = 0 ] || die "\`bwrap\` is missing" "Debian: apt-get install bubblewrap"
  say "installing bubblewrap (once, from Debian)"
  log=$(apt-get install --yes --no-install-recommends bubblewrap 2>&1) || die "apt-get could not install it: $(tail -n 1 <<<"$log")"
fi

out=target/bench/process
stamp=$(sha256sum <bench/process/package-lock.json)
if [ "$(cat $out/stamp 2>/dev/null)" != "$stamp" ]; then
  say "fetching server-everything from npm (once, 30 MB on disk)"
  rm -rf $out
  mkdir -p $out
  cp bench/process/package.json bench/process/package-lock.json $out
  log=$(cd $out && npm ci --ignore-scripts --no-audit --no-fund 2>&1) || die "npm could not install it: $(tail -n 1 <<<"$log")"
  echo "$stamp" >$out/stamp
fi
cp bench/process/server.mjs bench/process/server.py $out
