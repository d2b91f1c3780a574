#!/usr/bin/env bash
# Obtains esbuild, a static program that bundles projects inside the jail, and leaves it at target/esbuild/esbuild.
# With a folder as argument it also puts it beside the programs there, under the name they look for.
# Does nothing when it is there for the pins below.
set -euo pipefail

version=0.28.2

self=$(realpath "$0")
cd "$(dirname "$self")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}
case $(uname -sm) in
  'Linux x86_64')
    package=@esbuild/linux-x64
    integrity=sha512-4xTZr1FUmSoQW4XIWmit3tzQrUTZM+N3P0XV8xROKYF50XfI7xeO90+1bZvNwxIufQ9hDQVRJH5YhgPVF8A/HQ==
    ;;
  *) die "no esbuild is pinned for $(uname -sm)" "the jail's policy is written for Linux on x86_64, too" ;;
esac

out=target/esbuild
if [ "$(cat $out/stamp 2>/dev/null)" != "$integrity" ] || ! [ -x $out/esbuild ]; then
  for tool in npm openssl base64 tar; do
    command -v $tool >/dev/null || die "\`$tool\` is missing" "Debian: apt-get install npm openssl"
  done
  mkdir -p target
  work=$(mktemp -d "$PWD/target/esbuild.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  say "fetching $package@$version from npm (once)"
  (cd "$work" && npm pack --silent --ignore-scripts "$package@$version" 2>npm.log >/dev/null) ||
    die "npm could not fetch $package@$version: $(tail -n 1 "$work/npm.log")"
  tarball=$(echo "$work"/*.tgz)
  have=sha512-$(openssl dgst -sha512 -binary "$tarball" | base64 -w0)
  [ "$have" = "$integrity" ] || die "integrity mismatch for $package@$version: expected $integrity, got $have" \
    "the registry served something else than what is pinned in scripts/esbuild.sh; do not use it"
  mkdir "$work/new"
  tar -xzf "$tarball" -C "$work/new" --strip-components=2 package/bin/esbuild
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
