#!/usr/bin/env bash
# `make shake`: runs the suite N times beside other load, and tells which test failed how often. A run that was cut short
# is repeated, the others are kept: the same command goes on where it ended. FRESH=1 begins anew.
# LOAD: how many busy processes beside it [the number of cores].
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
rounds=${N:-10}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "\`N=$rounds\` is no number of rounds" "make shake N=10"
load=${LOAD:-$(nproc)}
[[ $load =~ ^[0-9]+$ ]] || die "\`LOAD=$load\` is no number of processes" "make shake N=10 LOAD=2"
home=target/shake
[ -z "${FRESH:-}" ] || rm -rf "$home"
mkdir -p "$home"

busy=()
end() {
  [ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null
  busy=()
}
trap end EXIT
trap 'exit 130' INT TERM
start_load() {
  local count
  for ((count = 0; count < load; count++)); do
    (while :; do :; done) &
    busy+=($!)
  done
}

# `FILE-OF-TESTS TEST`, a line for each failure. Cargo says which program runs before its tests.
failures() {
  awk '/^ +(Running|Doc-tests) /{ program = $2 } /^test .* \.\.\. FAILED/{ sub(/^test /, ""); sub(/ \.\.\. FAILED.*/, ""); print program " " $0 }' "$@"
}

start_load
for ((round = 1; round <= rounds; round++)); do
  log=$home/round-$round.log
  [ ! -e "$home/round-$round.done" ] || continue
  say "round $round of $rounds, beside $load busy processes (log: $log)"
  LOG=$log scripts/test.sh >"$home/round-$round.out" 2>&1
  status=$?
  # A suite that did not even close has told nothing.
  grep '^tests: ' "$home/round-$round.out" >&2 || die "round $round did not come to its end" "its output is $home/round-$round.out"
  echo $status >"$home/round-$round.done"
done
end

failed=0
for ((round = 1; round <= rounds; round++)); do
  [ "$(cat "$home/round-$round.done")" = 0 ] || failed=$((failed + 1))
done
seq -f "$home/round-%g.log" "$rounds" | xargs cat | failures /dev/stdin | sort | uniq -c | sort -rn |
  awk -v rounds="$rounds" '{ count = $1; $1 = ""; printf "failed %d of %d times:%s\n", count, rounds, $0 }'
printf 'rounds: %d passed, %d failed\n' $((rounds - failed)) $failed
[ $failed = 0 ]
