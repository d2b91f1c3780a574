#!/usr/bin/env bash
# Puts the executable that carries V8 beside the programs in the folder given, under the name they look for.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
target=$1/bulkhead-v8
source=target/v8/node/bin/node
[ "$target" -ef "$source" ] && exit 0
ln -f "$source" "$target" 2>/dev/null || cp -f "$source" "$target"
