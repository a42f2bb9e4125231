#!/usr/bin/env bash
# Repeats an experiment and compares its scores with those that were committed:
#
#     reproduce.sh FOLDER [--accept]
#
# FOLDER holds experiment.toml, with repos-dir and tasks, and expected/, the scores of each mode, which --accept writes.
# Exit status: 0 all is as expected, 1 a score differs or something was skipped, 2 it could not run.
set -euo pipefail
cd "$1"
repoformer=${REPOFORMER:-repoformer}
# The embedded model gives the same scores on every machine. With a server, say how far its means may be apart: 0.005.
tolerance=${TOLERANCE:-0}
status=0

# Goes on after exit status 1: done, but something was skipped or a check failed.
step() {
  local code=0
  "$@" || code=$?
  [ "$code" -le 1 ] || exit "$code"
  [ "$code" -eq 0 ] || status=1
}

# An old cache will do: what is current stays, and the plan says why the rest is made again.
step "$repoformer" run --config experiment.toml --dry-run
step "$repoformer" run --config experiment.toml -q >table.txt
for mode in none rg1; do
  step "$repoformer" eval --config experiment.toml --mode "$mode" --per-task --format json -o "$mode.json"
  expected=expected/$mode.json
  if [ "${2-}" = --accept ]; then
    mkdir -p expected && cp "$mode.json" "$expected"
  elif [ "$tolerance" != 0 ]; then
    step "$repoformer" compare "$expected" "$mode.json" --within "$tolerance"
  elif ! cmp -s "$mode.json" "$expected"; then
    echo "$mode: not as expected"
    step "$repoformer" compare "$expected" "$mode.json"
    status=1
  fi
done
exit "$status"
