#!/usr/bin/env bash
# Runs the protocol's official conformance suite, both eras, through the gateway against conformance/fixture.js, which runs
# behind the isolate wall. Prints `legacy: N passed, N failed` and `modern: N passed, N failed`.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/with-host.sh
. scripts/with-host.sh

suite=target/conformance
npm_packages "the conformance suite" conformance $suite

start_host
make_tenant acme
deploy conformance/fixture.js acme/fixture "${BOUNDARY:-call}"

KEY=$call_key "$node" conformance/proxy.mjs "$url" >"$work/proxy.port" 2>"$work/proxy.log" &
started+=($!)
for ((tries = 0; tries < 100; tries++)); do
  [ ! -s "$work/proxy.port" ] || break
  sleep 0.1
done
port=$(cat "$work/proxy.port")
[ -n "$port" ] || die "the proxy did not start: $(cat "$work/proxy.log")"

outcome=0
run() { # name, revision, floor
  rm -rf "target/conformance/out/$1"
  timeout --kill-after=5 180 "$node" $suite/node_modules/@modelcontextprotocol/conformance/dist/index.js server \
    --url "http://127.0.0.1:$port/acme/fixture/mcp" --requirements "$2" -o "target/conformance/out/$1" \
    >"target/conformance/$1.log" 2>&1
  # The suite's own status counts a scenario without any check as passed; the sums below do not.
  [ $? -lt 124 ] || { say "error: the suite did not end (target/conformance/$1.log)"; outcome=1; }
  "$node" conformance/tally.mjs "$1" "target/conformance/out/$1" "$3" || outcome=1
}
run legacy 2025-11-25 83
run modern 2026-07-28 197
exit $outcome
