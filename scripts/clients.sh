#!/usr/bin/env bash
# Points real MCP clients, each in the eras it speaks, at a host with tests/clients/fixture.js deployed: each lists tools, calls
# one, makes a mistake, reads a resource, gets a prompt, sees progress, cancels and times out.
# Prints one line per client. CLIENTS_URL and KEY: another server instead of a host of our own.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/with-host.sh
. scripts/with-host.sh

needs "npm python3-venv" npm python3
clients=target/clients
npm_packages "the clients in JavaScript" tests/clients $clients --omit=optional
stamp=$(cat tests/clients/requirements-*.txt | sha256sum)
if [ "$(cat $clients/venv/stamp 2>/dev/null)" != "$stamp" ]; then
  say "installing the clients in Python from PyPI (once)"
  rm -rf $clients/venv $clients/python-*
  python3 -m venv $clients/venv || die "python3 cannot make a virtual environment" "Debian: apt-get install python3-venv"
  for version in 1 2; do
    $clients/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --target $clients/python-$version -r tests/clients/requirements-$version.txt || die "pip could not install the Python client $version.x"
  done
  echo "$stamp" >$clients/venv/stamp
fi
# Node looks for packages beside the program.
cp tests/clients/*.mjs $clients

if [ -n "${CLIENTS_URL:-}" ]; then
  mkdir -p target/tmp
  work=$(mktemp -d "$PWD/target/tmp/clients.XXXXXX")
  trap end_all EXIT
  mcp=$CLIENTS_URL
  call_key=$KEY
else
  start_host
  make_tenant acme
  deploy tests/clients/fixture.js acme/clients server
  deploy examples/prices.js acme/prices call
  mcp=$url/acme/clients/mcp
  export AGGREGATE_URL=$url/acme/mcp
fi

failed=0
client() { # name, command…
  local name=$1 log begin=$SECONDS
  shift
  log=$(KEY=$call_key timeout --kill-after=5 120 "$@" 2>&1)
  local status=$?
  if [ $status = 0 ]; then
    printf 'ok %s (%d s)\n' "$name" $((SECONDS - begin))
  else
    printf 'FAIL %s (status %d)\n%s\n' "$name" $status "$(tail -n 25 <<<"$log" | sed 's/^/  /')"
    return 1
  fi
}
python=$clients/venv/bin/python

# Two at a time: the Python ones beside those of Node.
{
  outcome=0
  client 'python mcp 2.3.0, modern' env PYTHONPATH=$clients/python-2 "$python" tests/clients/python_v2.py "$mcp" auto ||
    outcome=1
  client 'python mcp 2.3.0, legacy' env PYTHONPATH=$clients/python-2 "$python" tests/clients/python_v2.py "$mcp" legacy ||
    outcome=1
  client 'python mcp 1.30.0, legacy' env PYTHONPATH=$clients/python-1 "$python" tests/clients/python_v1.py "$mcp" ||
    outcome=1
  exit $outcome
} &
python_lane=$!
client '@modelcontextprotocol/sdk 1.32.2, legacy' "$node" $clients/typescript.mjs "$mcp" sdk || failed=1
client '@modelcontextprotocol/client 2.4.0, legacy' "$node" $clients/typescript.mjs "$mcp" legacy || failed=1
client '@modelcontextprotocol/client 2.4.0, modern' "$node" $clients/typescript.mjs "$mcp" auto || failed=1
for era in legacy auto modern; do
  client "inspector 2.12.0, $era" "$node" $clients/inspector.mjs "$mcp" $era || failed=1
done
wait $python_lane || failed=1
exit $failed
