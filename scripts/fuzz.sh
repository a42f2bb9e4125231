#!/usr/bin/env bash
# Fuzzes the readers: scripts/fuzz.sh SECONDS [GROUP...], all groups one after another by default. Prints the executions and the
# covered edges of each. New inputs are kept in fuzz/found/GROUP, and what fails in fuzz/found/GROUP-crash-…, -timeout-…, -oom-….
# More time or memory than an input's length allows is a crash.
# A stable compiler does; the C++ compiler builds libFuzzer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: scripts/fuzz.sh SECONDS [GROUP...]}
shift
groups=("$@")
[ ${#groups[@]} -gt 0 ] || mapfile -t groups < <(ls fuzz/corpus)
# The package's profiles hold here too, so that packages which the tests compiled the same way are not compiled again.
target=${CARGO_TARGET_DIR:-$PWD/target}
(cd fuzz && RUSTC_WRAPPER=$PWD/rustc CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target cargo build --locked --profile test --config ../Cargo.toml)
failed=0
for group in "${groups[@]}"; do
  found=fuzz/found/$group
  mkdir -p "$found"
  log=$found.log
  longest=$(sed -n "s/.*name: \"$group\", longest: \([0-9< ]*\),.*/\1/p" fuzz/src/readers.rs)
  mapfile -t seeds < <(echo "fuzz/corpus/$group" && awk -v group="$group" '$1 == group { print $2 }' fuzz/seeds)
  READERS=$group nice "$target/debug/repoformer-fuzz" -timeout=600 -rss_limit_mb=2048 -max_total_time="$seconds" \
    -max_len="$((longest))" -print_final_stats=1 -artifact_prefix="$found-" "$found" "${seeds[@]}" >"$log" 2>&1 &
  process=$!
  wait "$process" || failed=1
  rm -rf "/dev/shm/repoformer-fuzz-$process"
  awk -v group="$group" '
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
    /number_of_executed_units/ { runs = $NF }
    /panicked at|ERROR: libFuzzer/ { failure = $0 }
    END { printf "%-13s %12s executions %8s edges  %s\n", group, runs, edges, failure }' "$log"
done
exit $failed
