#!/bin/sh
# Runs every fuzz target in the module for a time, one after the other. Usage: internal/tools/fuzz.sh 1m
set -eu
cd "$(dirname "$0")/../.."
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9]*' "$file" | cut -d' ' -f2 | while read -r target; do
    echo "== $target in $(dirname "$file")"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$(dirname "$file")"
  done
done
