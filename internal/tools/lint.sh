#!/bin/sh
# Formatting and linters. Each tool is installed into .tools/bin at a pinned version.
set -eu
cd "$(dirname "$0")/../.."
bin="$PWD/.tools/bin"
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "gofmt: not formatted: $unformatted" >&2; exit 1; }
go vet ./...
[ -x "$bin/staticcheck" ] || GOBIN="$bin" go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
"$bin/staticcheck" ./...
