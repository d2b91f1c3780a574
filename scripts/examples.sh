#!/usr/bin/env bash
# Copies the examples that have dependencies to target/examples, with their packages from npm as their locks pin them, and
# obtains the bundler. Does nothing when all is there already.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

scripts/esbuild.sh
for example in examples/*/package-lock.json; do
  from=$(dirname "$example")
  to=target/$from
  npm_packages "the packages of $from" "$from" "$to"
  cp "$from/"*.ts "$from/bulkhead.toml" "$to"
done
