#!/bin/sh
# Checks formatting, runs the linters, and looks for known vulnerabilities. Each tool is installed into .tools/lint at a pinned version, the first time in some
# minutes.
set -eu
cd "$(dirname "$0")/../.."

# tool prints the path of a linter, installed if need be. Usage: tool VERSION PACKAGE
tool() {
  dir="$PWD/.tools/lint/$1" name=${2##*/}
  [ -x "$dir/$name" ] || {
    echo "make lint: installing $name $1" >&2
    GOBIN="$dir" go install "$2@$1" >&2
  }
  echo "$dir/$name"
}

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || {
  echo "make lint: run gofmt -w on: $unformatted" >&2
  exit 1
}
go vet ./...
staticcheck=$(tool v0.8.2 honnef.co/go/tools/cmd/staticcheck)
"$staticcheck" ./...
golangci=$(tool v2.15.0 github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
"$golangci" run ./...
govulncheck=$(tool v1.9.0 golang.org/x/vuln/cmd/govulncheck)
if found=$("$govulncheck" ./... 2>&1); then
  :
elif echo "$found" | grep -q '^govulncheck: fetching vulnerabilities'; then
  echo "make lint: SKIPPED govulncheck: its database of vulnerabilities does not answer from here" >&2
else
  echo "$found" >&2
  exit 1
fi
