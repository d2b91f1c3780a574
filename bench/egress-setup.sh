#!/usr/bin/env bash
# Makes undici, the peer of the door to the network, ready in target/bench/egress: from npm, pinned.
# Does nothing when it is there. No install script runs.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
[ -x target/v8/node/bin/node ] || scripts/v8.sh

out=target/bench/egress
npm_packages "undici (2 MB)" bench/egress $out
# Node looks for packages beside the program.
cp bench/egress/undici.mjs $out
