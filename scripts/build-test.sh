#!/usr/bin/env bash
# Installs the packages that the tests of crates/build bundle into target/build-npm; does nothing when they are there.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}

from=crates/build/tests/npm
out=target/build-npm
stamp=$(cat $from/package.json $from/package-lock.json | sha256sum)
if [ "$(cat $out/stamp 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
command -v npm >/dev/null || die "\`npm\` is missing" "Debian: apt-get install npm"
say "installing what the tests of builds bundle from npm (once)"
rm -rf $out
mkdir -p $out
cp $from/package.json $from/package-lock.json $out
(cd $out && npm ci --ignore-scripts --omit=optional --no-audit --no-fund >npm.log 2>&1) ||
  die "npm could not install the packages: $(tail -n 1 $out/npm.log)"
# The jail reads them as nobody when root runs the tests.
chmod -R a+rX $out
echo "$stamp" >$out/stamp
