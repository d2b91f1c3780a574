#!/usr/bin/env bash
# Checks types/bulkhead.d.ts: types/test holds what it must accept and, marked, what it must refuse.
# Installs TypeScript from npm into target/tools-node, pinned; does nothing when it is there already.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

version=5.9.3
integrity=sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==
tools=target/tools-node
needs nodejs node

if [ "$(cat $tools/stamp 2>/dev/null)" != "$integrity" ]; then
  mkdir -p target
  work=$(mktemp -d "$PWD/target/tools-node.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/new"
  npm_archive "typescript@$version" "$integrity" "$work/new" --strip-components=1
  echo "$integrity" >"$work/new/stamp"
  rm -rf $tools
  mv "$work/new" $tools
fi

node $tools/bin/tsc --project types/test --strict --noEmit
say "types: ok"
