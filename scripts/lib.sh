#!/usr/bin/env bash
# What the scripts share: source it from the repository's root.

say() { printf '%s\n' "$*" >&2; }

die() { # what is wrong, what to do about it
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}

needs() { # Debian's packages, the tools that must be there
  local tool packages=$1
  shift
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "\`$tool\` is missing" "Debian: apt-get install $packages"
  done
}

# Installs what the lock in a folder pins, into another one, without running install scripts. Empties that one first.
# Does nothing when it is there.
npm_packages() { # what it is, the folder with package.json and its lock, the other folder, flags for npm
  local what=$1 from=$2 to=$3 stamp log
  shift 3
  stamp=$(cat "$from/package.json" "$from/package-lock.json" | sha256sum)
  [ "$(cat "$to/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  needs npm npm
  say "installing $what from npm (once)"
  rm -rf "$to"
  mkdir -p "$to"
  cp "$from/package.json" "$from/package-lock.json" "$to"
  log=$(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund "$@" 2>&1) ||
    die "npm could not install $what: $(tail -n 1 <<<"$log")"
  echo "$stamp" >"$to/stamp"
}

# Fetches a package's archive, if it is the one that is pinned, and unpacks it as tar does with the flags given.
npm_archive() { # name@version, its integrity, a folder that is there, flags for tar
  local package=$1 integrity=$2 to=$3 work have
  shift 3
  needs "npm openssl" npm openssl base64 tar
  say "fetching $package from npm (once)"
  work=$(mktemp -d "$to/npm.XXXXXX")
  (cd "$work" && npm pack --silent --ignore-scripts "$package" 2>npm.log >/dev/null) ||
    die "npm could not fetch $package: $(tail -n 1 "$work/npm.log")"
  have=sha512-$(openssl dgst -sha512 -binary "$work"/*.tgz | base64 -w0)
  [ "$have" = "$integrity" ] || die "integrity mismatch for $package: expected $integrity, got $have" \
    "the registry served something else than what is pinned in $0; do not use it"
  tar -xzf "$work"/*.tgz -C "$to" "$@"
  rm -rf "$work"
}
