#!/usr/bin/env bash
# Checks types/bulkhead.d.ts: types/test holds what it must accept and, marked, what it must refuse.
# Installs TypeScript from npm into target/tools-node, pinned; does nothing when it is there already.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}

version=5.9.3
integrity=sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==
tools=target/tools-node
for tool in npm node openssl tar; do
  command -v $tool >/dev/null || die "\`$tool\` is missing" "Debian: apt-get install nodejs npm openssl"
done

if [ "$(cat $tools/stamp 2>/dev/null)" != "$integrity" ]; then
  say "fetching typescript@$version from npm (once)"
  mkdir -p target
  work=$(mktemp -d "$PWD/target/tools-node.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent --ignore-scripts "typescript@$version" 2>npm.log >/dev/null) ||
    die "npm could not fetch typescript@$version: $(tail -n 1 "$work/npm.log")"
  have=sha512-$(openssl dgst -sha512 -binary "$work/typescript-$version.tgz" | base64 -w0)
  [ "$have" = "$integrity" ] || die "integrity mismatch for typescript@$version: expected $integrity, got $have" \
    "the registry served something else than what is pinned in scripts/types-test.sh; do not use it"
  mkdir "$work/new" && tar -xzf "$work/typescript-$version.tgz" -C "$work/new" --strip-components=1
  echo "$integrity" >"$work/new/stamp"
  rm -rf $tools
  mv "$work/new" $tools
fi

node $tools/bin/tsc --project types/test --strict --noEmit
say "types: ok"
