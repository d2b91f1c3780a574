#!/usr/bin/env bash
# Runs every test and closes with one line that counts them all. A test that cannot run on this machine counts as skipped
# (crates/skips), and fails where BULKHEAD_TEST_NO_SKIPS is set.
# LOG: where the output goes besides the terminal.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
mkdir -p target
log=${LOG:-target/test.log}
skips=$PWD/target/skips
: >"$skips"
export BULKHEAD_TEST_SKIPS=$skips
cargo=${CARGO:-cargo}
everything=(--release --locked --workspace --exclude 'bench-*' --no-fail-fast)
status=0
"$cargo" test "${everything[@]}" --tests 2>&1 | tee "$log" || status=1
"$cargo" test "${everything[@]}" --doc 2>&1 | tee -a "$log" || status=1
# Cargo counts a test that was skipped as passed.
awk -v skipped="$(cut -f1 "$skips" | sort -u | wc -l)" '
  /^test result: / { for (i = 1; i < NF; i++) { if ($(i + 1) ~ /^passed/) p += $i; if ($(i + 1) ~ /^failed/) f += $i; if ($(i + 1) ~ /^ignored/) s += $i } }
  END { printf "tests: %d passed, %d failed, %d skipped\n", p - skipped, f, s + skipped }
' "$log"
sed 's/^/skipped: /; s/\t/: /' "$skips" | sort -u
exit $status
