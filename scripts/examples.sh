#!/usr/bin/env bash
# Copies the examples that have dependencies to target/examples, with their packages from npm as their locks pin them, and
# obtains the bundler. Does nothing when all is there already.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}

scripts/esbuild.sh
for example in examples/*/package-lock.json; do
  from=$(dirname "$example")
  to=target/$from
  stamp=$(sha256sum <"$example")
  if [ "$(cat "$to/stamp" 2>/dev/null)" != "$stamp" ]; then
    command -v npm >/dev/null || die "\`npm\` is missing" "Debian: apt-get install npm"
    say "installing the packages of $from from npm (once)"
    rm -rf "$to"
    mkdir -p "$to"
    cp "$from/package.json" "$from/package-lock.json" "$to"
    (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
      die "npm could not install the packages of $from: $(tail -n 1 "$to/npm.log")"
    echo "$stamp" >"$to/stamp"
  fi
  cp "$from/"*.ts "$from/bulkhead.toml" "$to"
done
