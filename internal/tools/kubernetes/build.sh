#!/bin/sh
# Builds the real kube-apiserver and etcd into .tools/kubernetes/VERSION/, as this folder's go.mod pins them: the first
# time some minutes and 3 GB of Go's caches, then nothing. Usage: internal/tools/kubernetes/build.sh
# Where MERIDIAN_KUBERNETES names a folder with both, that one is checked and nothing is built.
set -eu
cd "$(dirname "$0")"

fail() {
  echo "make kubernetes: $1" >&2
  echo "  Or set MERIDIAN_KUBERNETES to a folder with a kube-apiserver and an etcd of your own." >&2
  exit 1
}

# works says whether a folder has both, and whether they run here.
works() { "$1/kube-apiserver" --version >/dev/null 2>&1 && "$1/etcd" --version >/dev/null 2>&1; }

if [ -n "${MERIDIAN_KUBERNETES:-}" ]; then
  works "$MERIDIAN_KUBERNETES" || fail "MERIDIAN_KUBERNETES is $MERIDIAN_KUBERNETES, and no kube-apiserver and etcd run there."
  exit
fi

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) || fail "go could not read the pinned versions (its words are above)."
target=$(cd ../../.. && pwd)/.tools/kubernetes/${version#v}
works "$target" && exit

echo "make kubernetes: building kube-apiserver $version and etcd: some minutes, once" >&2
mkdir -p "$target"
scratch=$(mktemp -d "$target/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
minor=${version#v1.} flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do # clients parse what the server says of itself
  flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%.*} -X $package.gitTreeState=clean"
done
CGO_ENABLED=0 go build -trimpath -o "$scratch/etcd" -ldflags "-s -w" go.etcd.io/etcd/server/v3 || fail "etcd does not build (its words are above)."
CGO_ENABLED=0 go build -trimpath -o "$scratch/kube-apiserver" -ldflags "$flags" k8s.io/kubernetes/cmd/kube-apiserver || fail "kube-apiserver does not build (its words are above)."
works "$scratch" || fail "what was built does not run here."
mv "$scratch/etcd" "$scratch/kube-apiserver" "$target/"
