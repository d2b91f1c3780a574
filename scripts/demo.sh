#!/usr/bin/env bash
# `make run`: starts a host on target/demo, deploys the examples for a tenant `demo`, shows a good call and hostile ones, and
# prints what to paste. Stays until Ctrl-C; with DEMO_EXIT=1 it stops after printing. A second run finds its tenant and keys.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
bulkhead=target/release/bulkhead
home=${DEMO_HOME:-target/demo}
keys=$home/keys.json
log=$home/host.log
host=

title() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$1"; else printf '\n%s\n' "$1"; fi; }
# A field of a flat JSON object; names and keys have nothing to escape.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

end() {
  trap - EXIT INT TERM
  if [ -n "$host" ]; then
    kill -TERM "$host" 2>/dev/null
    wait "$host" 2>/dev/null
  fi
}
trap end EXIT
trap 'exit 0' INT TERM

for file in $bulkhead target/release/bulkhead-v8 examples/prices.js; do
  [ -e "$file" ] || die "\`$file\` is missing" "make build"
done
mkdir -p "$home" || die "\`$home\` cannot be made"
chmod 700 "$home"

# --- the host ----------------------------------------------------------------------------------------------------
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=8470
while taken $port; do
  port=$((port + 1))
  [ $port -lt 8500 ] || die "no port between 8470 and 8499 is free"
done
export BULKHEAD_URL=http://127.0.0.1:$port
unset BULKHEAD_KEY BULKHEAD_LISTEN BULKHEAD_DATA
$bulkhead serve --listen 127.0.0.1:$port --data "$home/data" >"$log" 2>&1 &
host=$!
for _ in $(seq 600); do
  grep -q '^listening on ' "$log" && break
  kill -0 $host 2>/dev/null || break
  sleep 0.1
done
if ! grep -q '^listening on ' "$log" || ! kill -0 $host 2>/dev/null; then
  cat "$log" >&2
  die "the host did not start" "its log is $log"
fi
sed '/^next: /d' "$log"

# --- the tenant --------------------------------------------------------------------------------------------------
operator() { $bulkhead "$@" --key-file "$home/data/operator.key"; }
umask 077
if operator tenant show demo --json >/dev/null; then
  if ! [ -s "$keys" ] || ! $bulkhead tenant show demo --key "$(field call_key <"$keys")" --json >/dev/null; then
    # The tenant is there and its keys are not: new ones do as well.
    deploy=$(operator key create demo --role deploy --name demo) || exit
    call=$(operator key create demo --role call --name demo) || exit
    printf '{"tenant":"demo","deploy_key":"%s","call_key":"%s"}\n' "$deploy" "$call" >"$keys"
  fi
else
  operator tenant create demo --json >"$keys" || die "the tenant cannot be created" "its log is $log"
fi
deploy_key=$(field deploy_key <"$keys")
call_key=$(field call_key <"$keys")
[ -n "$deploy_key" ] && [ -n "$call_key" ] || die "\`$keys\` holds no keys" "rm -r $home, and try again"

# --- its servers -------------------------------------------------------------------------------------------------
title "deployed for tenant \`demo\`"
deploy() { # file, server
  BULKHEAD_KEY=$deploy_key $bulkhead deploy "$1" --server "demo/$2" --accept-surface 2>/dev/null || die "\`$1\` cannot be deployed" "its log is $log"
}
for file in examples/*.js; do
  deploy "$file" "$(basename "$file" .js | tr '_.' '--')"
done
for name in spin hoard metadata; do
  deploy examples/hostile/$name.js hostile-$name >/dev/null
done
# A program instead of a module. A deploy leaves its lock beside the manifest, so it is a copy that is deployed.
mkdir -p "$home/notes" && cp examples/notes-py/* "$home/notes/"
deploy "$home/notes" notes

failed=0
show() { # server, tool, arguments, expected words, what it is
  title "$5"
  printf '$ bulkhead call demo/%s %s %s\n' "$1" "$2" "'$3'"
  local out
  out=$(BULKHEAD_KEY=$call_key $bulkhead call "demo/$1" "$2" "$3" 2>&1 | cut -c1-160)
  printf '%s\n' "$out"
  if ! grep -q "$4" <<<"$out"; then
    printf 'error: expected `%s`\n' "$4" >&2
    failed=1
  fi
}
show prices double_price '{"price": 45}' '"doublePrice":90' "a good call, with its receipt"
show notes add '{"text": "a note"}' 'wall process' "a program in a jail: Python, as it is"
show hostile-spin run '{}' cpu_limit "loops for ever"
show hostile-hoard run '{}' memory_limit "eats memory"
show hostile-metadata run '{}' 'no rule allows' "reaches for the cloud's metadata address"

# --- what to paste -----------------------------------------------------------------------------------------------
endpoint=$BULKHEAD_URL/demo/prices/mcp
title "the endpoint"
printf 'URL  %s\nkey  %s\n' "$endpoint" "$call_key"
title "curl"
cat <<END
curl -s $endpoint -H 'Authorization: Bearer $call_key' \\
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: double_price' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"double_price","arguments":{"price":45},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
END
title "Inspector"
cat <<END
npx @modelcontextprotocol/inspector --cli $endpoint --transport http \\
  --header 'Authorization: Bearer $call_key' --method tools/call --tool-name double_price --tool-arg price=45
END
title "Python (pip install mcp)"
cat <<END
python3 -c '
import asyncio, httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def main():
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer $call_key"}) as http:
        async with Client(streamable_http_client("$endpoint", http_client=http)) as client:
            print(await client.call_tool("double_price", {"price": 45}))
asyncio.run(main())'

The operator's key is in $home/data/operator.key; \`export BULKHEAD_URL=$BULKHEAD_URL\` and try \`$bulkhead --help\`.
END
[ $failed = 0 ] || die "a call did not end as it should" "its log is $log"
[ "${DEMO_EXIT:-}" != 1 ] || exit 0
printf '\nThe host runs until Ctrl-C; its log is %s.\n' "$log"
wait $host
