#!/usr/bin/env bash
# Fuzzes every fuzz target of the module in the current directory, one after
# another, for $FUZZTIME each. A target that hangs is a failure too.
set -euo pipefail

targets=0
listing=$(go test -list '^Fuzz' ./...)
names=()
while read -r word package _; do
	case $word in
	Fuzz*) names+=("$word") ;;
	ok)
		for name in "${names[@]}"; do
			echo "== $package $name"
			timeout 10m go test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 100x "$package" </dev/null
			targets=$((targets + 1))
		done
		names=()
		;;
	esac
done <<<"$listing"
echo "fuzzed $targets targets"
