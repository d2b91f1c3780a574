#!/usr/bin/env bash
# Runs every test and closes with one line that counts them all.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
log=target/test.log
"${CARGO:-cargo}" test --release --locked --workspace --exclude 'bench-*' --tests --no-fail-fast 2>&1 | tee $log
status=$?
awk '
  /^test result: / { for (i = 1; i < NF; i++) { if ($(i + 1) ~ /^passed/) p += $i; if ($(i + 1) ~ /^failed/) f += $i; if ($(i + 1) ~ /^ignored/) s += $i } }
  END { printf "tests: %d passed, %d failed, %d skipped\n", p, f, s }
' $log
exit $status
