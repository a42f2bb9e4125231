#!/usr/bin/env bash
# The program as users run it: window, vectorize, search and prompt (rg1, gt), each as a separate process.
#
#   benches/pipeline.sh REPOS_DIR TASKS [BINARY]
#
# Prints medians of ROUNDS (5) rounds with an empty cache, on one thread and on two, and compares their artifacts; then of as many
# rounds with a current cache. CPU is user + system seconds, memory is the largest resident set. Needs GNU time.
set -euo pipefail

repos=$(realpath "${1:?usage: benches/pipeline.sh REPOS_DIR TASKS [BINARY]}")
tasks=$(realpath "${2:?usage: benches/pipeline.sh REPOS_DIR TASKS [BINARY]}")
cd "$(dirname "$0")/.."
binary=${3:-}
if [ -z "$binary" ]; then
  cargo build --quiet --locked --release
  binary=${CARGO_TARGET_DIR:-target}/release/repoformer
fi
rounds=${ROUNDS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # STAGE REPOS CACHE [FLAG...]: appends "STAGE CPU WALL KB" to the log
  local stage=$1 repos=$2 cache=$3
  shift 3
  local modes=()
  [ "$stage" = prompt ] && modes=(--mode "rg1,gt")
  local status=0
  /usr/bin/time --quiet --format "$stage %U %S %e %M" --append --output "$work/log" "$binary" "$stage" --quiet \
    --repos-dir "$repos" --tasks "$tasks" --cache-dir "$cache" "${modes[@]}" "$@" 2>>"$work/said" || status=$?
  # Status 1: done, but a file or task was skipped.
  [ "$status" -le 1 ] || { cat "$work/said" >&2; exit "$status"; }
}

pipeline() { # REPOS CACHE [FLAG...]
  for stage in window vectorize search prompt; do run "$stage" "$@"; done
}

table() { # TITLE: medians of the log by stage; the sum is that of a round
  printf '\n%s, median of %s rounds\n\n| stage | CPU s | wall s | peak MB |\n|---|---|---|---|\n' "$1" "$rounds"
  awk -v rounds="$rounds" '
    function median(values, n,   i, j, t) {
      for (i = 2; i <= n; i++) for (j = i; j > 1 && values[j] < values[j - 1]; j--) { t = values[j]; values[j] = values[j - 1]; values[j - 1] = t }
      return values[int((n + 1) / 2)]
    }
    function row(name,   i, c, w, m) {
      for (i = 1; i <= rounds; i++) { c[i] = cpu[name, i]; w[i] = wall[name, i]; m[i] = memory[name, i] }
      printf "| %s | %.2f | %.2f | %.0f |\n", name, median(c, rounds), median(w, rounds), median(m, rounds) / 1024
    }
    {
      n = ++seen[$1]
      cpu[$1, n] = $2 + $3; wall[$1, n] = $4; memory[$1, n] = $5
      cpu["all", n] += $2 + $3; wall["all", n] += $4
      if ($5 > memory["all", n]) memory["all", n] = $5
    }
    END { row("window"); row("vectorize"); row("search"); row("prompt"); row("all") }' "$work/log"
  : >"$work/log"
}

for threads in 1 2; do
  for _ in $(seq "$rounds"); do
    rm -rf "$work/threads.$threads"
    pipeline "$repos" "$work/threads.$threads" --threads "$threads"
  done
  table "Empty cache, --threads $threads"
done

# These files are not compared: search times (hidden files), and the program's notes on files that it need not read again.
aside=(.notes '.*.time.json')
if diff -rq "${aside[@]/#/--exclude=}" "$work/threads.1" "$work/threads.2"; then
  count=$(find "$work/threads.1" -name .notes -prune -o -type f ! -name '.*.time.json' -print | wc -l)
  printf '\nOne thread and two leave the same bytes in %s files.\n' "$count"
else
  echo "one thread and two leave different artifacts" >&2
  exit 1
fi
rm -rf "$work/threads.1"
mv "$work/threads.2" "$work/cache"

for _ in $(seq "$rounds"); do pipeline "$repos" "$work/cache"; done
table "Current cache"
printf '\nBeside it, reading the artifacts and nothing else: %s\n' "$(cargo bench --quiet --locked --bench measure -- artifacts "$work/cache")"
