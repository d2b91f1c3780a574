#!/usr/bin/env bash
# Shows the isolate wall at work: one good call with its receipt, then hostile ones, each refused with its reason.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
bulkhead=target/release/bulkhead

show() { # file, tool, input, expected outcome, what it is
  printf '\n\033[1m%s\033[0m\n$ %s exec %s %s %s\n' "$5" "$bulkhead" "$1" "$2" "'$3'"
  local out
  out=$($bulkhead exec "$1" "$2" "$3" 2>&1)
  if [ "$(wc -l <<<"$out")" -gt 4 ]; then
    out=$(head -n 1 <<<"$out")$'\n  …\n'$(tail -n 2 <<<"$out")
  fi
  cut -c1-160 <<<"$out"
  if ! grep -q "$4" <<<"$out"; then
    printf 'error: expected `%s`\n' "$4" >&2
    failed=1
  fi
}

failed=0
show examples/prices.js double_price '{"price": 45}' '"doublePrice":90' "a good call"
show examples/hostile/environment.js run '{}' '"environment":null' "reads the environment"
show examples/hostile/spin.js run '{}' cpu_limit "loops for ever"
show examples/hostile/never-stops.js run '{}' cpu_limit "a builtin that no polite stop can end"
show examples/hostile/hoard.js run '{}' memory_limit "eats memory"
show examples/hostile/metadata.js run '{}' 'no egress' "reaches for the cloud's metadata address"
show examples/hostile/flood.js run '{}' log_limit "floods the log"
show examples/hostile/carry-over.js run '{}' '"seen":null' "leaves a mark for the next call (there is none to see)"

printf '\nTry your own: %s exec FILE TOOL JSON   (%s exec --help)\n' "$bulkhead" "$bulkhead"
printf 'What this machine can enforce: %s doctor\n' "$bulkhead"
exit $failed
