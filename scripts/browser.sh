#!/usr/bin/env bash
# Drives the pages of /connect with a real browser, from the link to the token (tests/browser/connect.mjs).
# Chromium is taken where it is, and otherwise installed from Debian. BROWSER: another program that speaks the same protocol.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 2
# shellcheck source=scripts/with-host.sh
. scripts/with-host.sh

find_browser() {
  browser=${BROWSER:-}
  [ -n "$browser" ] || browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
}
find_browser
if [ -z "$browser" ]; then
  hint="install Chromium and let it be found as \`chromium\`, or name it in BROWSER"
  command -v apt-get >/dev/null || die "there is no browser, and no apt-get to install one" "$hint"
  [ "$(id -u)" = 0 ] || die "there is no browser, and only root may install one" "apt-get install chromium"
  say "installing chromium (once)"
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium; }
  log=$(install 2>&1) || log=$(apt-get update -q 2>&1 && install 2>&1) ||
    die "apt-get cannot install chromium: $(tail -n 1 <<<"$log")" "$hint"
  find_browser
  [ -n "$browser" ] || die "chromium was installed and is not to be found" "$hint"
fi

# The provider is the one that the tests of the crate use.
"${CARGO:-cargo}" build --quiet --release --locked -p oauth --example provider || die "the provider cannot be built"
mkdir -p target/browser
trap end_all EXIT
trap 'exit 130' INT TERM
exec 8< <(exec target/release/examples/provider --client-secret "a client's secret" 2>/dev/null)
started+=($!)
read -r -t 30 provider <&8 || die "the provider did not start"
start_host dev --loopback "${provider##*:}"
make_tenant acme

mkdir "$work/whoami"
cat >"$work/whoami/bulkhead.toml" <<TOML
name = "whoami"
entry = "server.js"
egress = ["$provider"]
secrets = [{ name = "HUB", hosts = ["$provider"], header = "authorization", format = "Bearer {}", connection = "hub" }]
TOML
cat >"$work/whoami/server.js" <<JS
export default { tools: { whoami: { run: async () => (await (await fetch("$provider/whoami")).json()).user } } };
JS
as() { BULKHEAD_KEY=$1 "$bulkhead" "${@:2}" 2>&1; }
said=$(as "$admin_key" provider set acme/hub --authorize-url "$provider/authorize" --token-url "$provider/token" \
  --client-id bulkhead --scope read --for whoami --to "$provider" --json <<<"a client's secret") || die "cannot set the provider: $said"
said=$(as "$deploy_key" deploy "$work/whoami" --server acme --json) || die "cannot deploy: $said"

# A browser with a link of its own, all the way to the code.
drive() { # [cancel]
  said=$(BULKHEAD_KEY=$call_key "$bulkhead" connect acme/hub --no-wait --json 2>/dev/null) || die "cannot have a link: $said"
  timeout --kill-after=5 120 "$node" tests/browser/connect.mjs "$browser" "$(field url <<<"$said")" "$provider" "$PWD/target/browser" "$@" ||
    die "the browser did not come through; its pictures are in target/browser"
}
without() { as "$call_key" call acme/whoami whoami >/dev/null && die "a call went through $1"; }

without "that nobody is connected for"
code=$(drive cancel) || exit 1
as "$call_key" connect acme/hub --code "$code" >/dev/null && die "a code is good that was cancelled"
without "after the person cancelled"
code=$(drive) || exit 1
without "that the code was not shown for"
as "$deploy_key" connect acme/hub --code "$code" >/dev/null && die "somebody else's key can use the code"
as "$call_key" connect acme/hub --code BBBB-BBBB >/dev/null && die "any code is good"
said=$(as "$call_key" connect acme/hub --code "$code") || die "the code is refused: $said"
said=$(as "$call_key" call acme/whoami whoami) || die "the call has no token: $said"
grep -q '^"\?ann"\?$' <<<"$said" || die "the call is somebody else's: $said"
say "ok browser: a link, a consent, a code, a token; not twice, not for others"
