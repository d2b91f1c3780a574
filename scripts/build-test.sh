#!/usr/bin/env bash
# Installs the packages that the tests of crates/build bundle into target/build-npm; does nothing when they are there.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

out=target/build-npm
npm_packages "what the tests of builds bundle" crates/build/tests/npm $out --omit=optional
# The jail reads them as nobody when root runs the tests.
chmod -R a+rX $out
