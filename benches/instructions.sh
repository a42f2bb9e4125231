#!/usr/bin/env bash
# Instructions per operation on the sample repositories, counted by valgrind's callgrind: the same in every run, whatever else the
# machine does. Each count is the difference between a program that prepares and runs the operation once, and one that only prepares
# it.
#
#   benches/instructions.sh [NAME...]
set -euo pipefail
cd "$(dirname "$0")/.."

names=("$@")
[ $# -gt 0 ] || names=(files prompt-counts window-sets index batch one-query lines bodies metric term-at-a-time)
measure=$(benches/measure.sh)

collected() { # NAME RUNS → "INSTRUCTIONS OPERATIONS UNIT"
  local log said
  log=$(mktemp)
  said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$measure" stage "$1" "$2" 2>"$log")
  echo "$(sed -n 's/.*Collected : //p' "$log") ${said% *}"
  rm -f "$log"
}

echo '| operation | instructions | again | of |'
echo '|---|---|---|---|'
for name in "${names[@]}"; do
  counts=()
  for _ in 1 2; do
    read -r without _ < <(collected "$name" 0)
    read -r with operations unit < <(collected "$name" 1)
    counts+=("$(awk "BEGIN { printf \"%.1f\", ($with - $without) / $operations }")")
  done
  echo "| $name | ${counts[0]} | ${counts[1]} | a $unit, $operations of them |"
done
