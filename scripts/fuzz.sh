#!/usr/bin/env bash
# `make fuzz`: runs each target of fuzz/fuzz_targets for SECONDS_EACH seconds [60], one after the other, and says how many
# inputs each has tried. TARGETS: only these. Needs no other toolchain; cargo-fuzz is installed into target/fuzz, pinned.
# What is found is kept in target/fuzz/found, and what a target has learned in target/fuzz/corpus; fuzz/seeds is where it begins.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
seconds=${SECONDS_EACH:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "\`SECONDS_EACH=$seconds\` is no number of seconds" "make fuzz SECONDS_EACH=1200"
home=$PWD/target/fuzz
version=0.13.2
mkdir -p "$home/found"
if [ "$(cat "$home/stamp" 2>/dev/null)" != "$version" ]; then
  say "installing cargo-fuzz $version (once)"
  log=$(cargo install --quiet --locked --root "$home" "cargo-fuzz@$version" 2>&1) || die "cargo-fuzz cannot be installed: $(tail -n 1 <<<"$log")"
  echo "$version" >"$home/stamp"
fi
# The flags of the sanitizers are not stable; the compiler that is there has them all the same.
export RUSTC_BOOTSTRAP=1 PATH=$home/bin:$PATH
fuzz() { cargo fuzz "$1" --fuzz-dir fuzz --target-dir "$home/build" "${@:2}"; }

all=$(for file in fuzz/fuzz_targets/*.rs; do basename "$file" .rs; done)
for target in ${TARGETS:-$all}; do
  [ -e "fuzz/fuzz_targets/$target.rs" ] || die "there is no target \`$target\`" "one of: ${all//$'\n'/ }"
done
say "building (some minutes the first time)"
if [ -n "${TARGETS:-}" ]; then
  for target in $TARGETS; do fuzz build "$target" || die "\`$target\` cannot be built"; done
else
  fuzz build || die "the targets cannot be built"
fi

passed=0 failed=0
for target in ${TARGETS:-$all}; do
  mkdir -p "$home/corpus/$target" "fuzz/seeds/$target"
  log=$home/$target.log
  # Ten seconds for one input and 2 GiB for the process are failures as well.
  if fuzz run "$target" "$home/corpus/$target" "fuzz/seeds/$target" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=65536 -artifact_prefix="$home/found/$target-" -print_final_stats=1 >"$log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok %s: %s inputs in %d s\n' "$target" "$(awk '/stat::number_of_executed_units/{ print $2 }' "$log")" "$seconds"
  else
    failed=$((failed + 1))
    printf 'FAIL %s (log: %s)\n' "$target" "$log"
    grep -aE 'panicked|ERROR|SUMMARY|Test unit written' "$log" | head -n 6 | sed 's/^/  /'
  fi
done
printf 'fuzzing: %d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
