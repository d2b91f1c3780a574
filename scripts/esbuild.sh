#!/usr/bin/env bash
# Obtains esbuild, a static program that bundles projects inside the jail, and leaves it at target/esbuild/esbuild.
# With a folder as argument it also puts it beside the programs there, under the name they look for.
# Does nothing when it is there for the pins below.
set -euo pipefail

version=0.28.2

self=$(realpath "$0")
cd "$(dirname "$self")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
case $(uname -sm) in
  'Linux x86_64')
    package=@esbuild/linux-x64
    integrity=sha512-4xTZr1FUmSoQW4XIWmit3tzQrUTZM+N3P0XV8xROKYF50XfI7xeO90+1bZvNwxIufQ9hDQVRJH5YhgPVF8A/HQ==
    ;;
  *) die "no esbuild is pinned for $(uname -sm)" "the jail's policy is written for Linux on x86_64, too" ;;
esac

out=target/esbuild
if [ "$(cat $out/stamp 2>/dev/null)" != "$integrity" ] || ! [ -x $out/esbuild ]; then
  mkdir -p target
  work=$(mktemp -d "$PWD/target/esbuild.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/new"
  npm_archive "$package@$version" "$integrity" "$work/new" --strip-components=2 package/bin/esbuild
  # The jail's program is nobody's: it must be able to start it.
  chmod 755 "$work/new" "$work/new/esbuild"
  echo "$integrity" >"$work/new/stamp"
  rm -rf $out
  mv "$work/new" $out
fi

[ $# -gt 0 ] || exit 0
target=$1/bulkhead-esbuild
[ "$target" -ef $out/esbuild ] && exit 0
mkdir -p "$1"
ln -f $out/esbuild "$target" 2>/dev/null || cp -f $out/esbuild "$target"
