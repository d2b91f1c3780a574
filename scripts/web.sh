#!/usr/bin/env bash
# Installs the npm packages that crates/isolate-web compiles in, as pinned by its package-lock.json.
# Does nothing when they are there already.
set -euo pipefail

cd "$(dirname "$0")/../crates/isolate-web"
say() { printf '%s\n' "$*" >&2; }
if ! command -v npm >/dev/null; then
  say 'error: `npm` is missing'
  say 'hint: Debian: apt-get install npm'
  exit 1
fi

stamp=$(sha256sum <package-lock.json | cut -c1-64)
if [ "$(cat node_modules/.bulkhead-stamp 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
say "installing the npm packages of isolate-web (once)"
if ! log=$(npm ci --ignore-scripts --no-audit --no-fund 2>&1); then
  say "error: npm could not install them"
  say "caused by: $(tail -n 1 <<<"$log")"
  exit 1
fi
echo "$stamp" >node_modules/.bulkhead-stamp
