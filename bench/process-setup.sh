#!/usr/bin/env bash
# Makes the peers of the process wall ready: bubblewrap from Debian, and in target/bench/process the server that people
# start with npx, from npm, pinned. Does nothing when they are there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
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
npm_packages "server-everything (30 MB)" bench/process $out
cp bench/process/server.mjs bench/process/server.py $out
