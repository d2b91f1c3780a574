#!/usr/bin/env bash
# For scripts that need a host: source it from the repository's root, then `start_host` (or `start_host dev …`). The host gets a free port
# and a data directory of its own; both are gone when the script ends, however it ends.
#   sets: node (the pinned Node), url, operator_key, work (a directory for the script's own files)

bulkhead=$PWD/target/release/bulkhead
node=$PWD/target/v8/node/bin/node
started=()

# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# Asks the processes in `started` to end, and kills those that do not.
end_all() {
  local pid tries
  for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  for pid in "${started[@]}"; do
    for ((tries = 0; tries < 100; tries++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null && say "note: process $pid had to be killed"
    wait "$pid" 2>/dev/null
  done
  started=()
  [ -z "${work:-}" ] || rm -rf "$work"
}

free_port() {
  "$node" -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

start_host() { # command and flags [serve]
  local port tries
  [ -x "$bulkhead" ] || die "\`target/release/bulkhead\` is missing" "make build"
  [ -x "$node" ] || die "\`target/v8/node/bin/node\` is missing" "make build"
  mkdir -p target/tmp
  work=$(mktemp -d "$PWD/target/tmp/host.XXXXXX")
  trap end_all EXIT
  trap 'exit 130' INT TERM
  port=$(free_port)
  url=http://127.0.0.1:$port
  "$bulkhead" "${@:-serve}" --listen "127.0.0.1:$port" --data "$work/data" >"$work/host.log" 2>&1 &
  started+=($!)
  for ((tries = 0; tries < 100; tries++)); do
    # The page is asked for by bash itself: no other program is needed.
    if { exec 9<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
      printf 'GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n' >&9
      read -r -t 5 _ status _ <&9 || status=
      exec 9>&-
      [ "$status" != 200 ] || break
    fi
    kill -0 "${started[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  if [ "${status:-}" != 200 ]; then
    tail -n 20 "$work/host.log" >&2
    die "the host did not become ready"
  fi
  operator_key=$(cat "$work/data/operator.key")
  export BULKHEAD_URL=$url
}

# A field of the JSON object on standard input.
field() { "$node" -e 'console.log(JSON.parse(require("node:fs").readFileSync(0, "utf8"))[process.argv[1]])' "$1"; }

# Creates a tenant and sets admin_key, deploy_key and call_key.
make_tenant() {
  local created
  created=$(BULKHEAD_KEY=$operator_key "$bulkhead" tenant create "$1" --json) || die "cannot create tenant \`$1\`: $created"
  deploy_key=$(field deploy_key <<<"$created")
  # shellcheck disable=SC2034  # for the script that sources this
  admin_key=$(field admin_key <<<"$created")
  # shellcheck disable=SC2034  # for the script that sources this
  call_key=$(field call_key <<<"$created")
}

# Deploys a file: FILE TENANT/SERVER BOUNDARY.
deploy() {
  local said
  said=$(BULKHEAD_KEY=$deploy_key "$bulkhead" deploy "$1" --server "$2" --boundary "$3" --json 2>&1) ||
    die "cannot deploy \`$1\`: $said"
}
