#!/usr/bin/env bash
# Installs the npm packages that crates/isolate-web compiles in, as pinned by its package-lock.json.
# Does nothing when they are there already.
set -euo pipefail

cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
needs npm npm
cd crates/isolate-web

stamp=$(sha256sum <package-lock.json | cut -c1-64)
if [ "$(cat node_modules/.bulkhead-stamp 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
say "installing the npm packages of isolate-web (once)"
log=$(npm ci --ignore-scripts --no-audit --no-fund 2>&1) || die "npm could not install them: $(tail -n 1 <<<"$log")"
echo "$stamp" >node_modules/.bulkhead-stamp
