#!/usr/bin/env bash
# Chunks with the whole program: CPU time, wall time and memory from chunks to cross-file texts (released settings, 200 line tasks
# per repository), of every ranker on all chunks, and of CrossCodeEval-sized data: 2,665 tasks, with folders of the same
# repositories as a thousand small ones.
# usage: benches/chunks.sh REPOS_DIR      (one folder per repository)
set -euo pipefail
repos=$(cd "${1:?usage: benches/chunks.sh REPOS_DIR}" && pwd)
cd "$(dirname "$0")/.."
cargo build --locked --release --quiet
bin=$PWD/target/release/repoformer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

stages() { # flags ...
  for stage in window vectorize search; do "$bin" "$stage" -q "$@"; done
  "$bin" prompt -q --prompt-style attach "$@"
}
export bin
export -f stages

echo "| repository | tasks | CPU s | wall s | MB |"
echo "|---|---|---|---|---|"
for path in "$repos"/*/; do
  name=$(basename "$path")
  "$bin" sample --kind line --per-repo 200 --seed 0 --data-tables draw --repos-dir "$repos" --repo "$name" -o "$name.jsonl" -q
  flags="--repos-dir $repos --tasks $name.jsonl --profile repoformer-release --mode rg1 --cache-dir released"
  /usr/bin/time -o time -f '%U %S %e %M' bash -c "stages $flags"
  awk -v name="$name" -v tasks="$(wc -l <"$name.jsonl")" \
    '{ printf "| %s | %d | %.2f | %.2f | %d |\n", name, tasks, $1 + $2, $3, $4 / 1024 }' time
done

echo
echo "| repository | chunks | ranker | ms/query |"
echo "|---|---|---|---|"
for path in "$repos"/*/; do
  name=$(basename "$path")
  for ranker in jaccard bm25 tf-idf weighted-ngram rrf:jaccard,bm25; do
    row=$("$bin" eval --retrieval --profile repoformer-paper --repos-dir "$repos" --tasks "$name.jsonl" --cache-dir all -q \
      --rankers "$ranker" --format tsv | tail -n 1)
    chunks=$("$bin" inspect "all/window/repos/${name}_chunk20_stride10.bin" | awk '$1 == "records" { print $2 }')
    echo "| $name | $chunks | $ranker | $(cut -f 15 <<<"$row") |"
  done
done

mkdir small
find -L "$repos" -name '*.py' -printf '%h\n' | sort | uniq -c | awk '$1 >= 4 && $1 <= 60 { $1 = ""; print substr($0, 2) }' >folders
number=0
while read -r folder && [ "$number" -lt 1000 ]; do
  to=small/$(printf 'r%04d' "$number")
  mkdir -p "$to"
  cp "$folder"/*.py "$to"
  number=$((number + 1))
done <folders
"$bin" sample --kind line --per-repo 3 --seed 0 --data-tables draw --repos-dir small -o all.jsonl -q
head -n 2665 all.jsonl >drawn.jsonl
"$bin" convert drawn.jsonl --to crosscodeeval --repos-dir small -o small.jsonl -q
flags="--repos-dir small --tasks small.jsonl --profile crosscodeeval --mode rg1 --cache-dir many"
/usr/bin/time -o time -f '%U %S %e %M' bash -c "stages $flags"
echo
awk -v repos="$(ls small | wc -l)" -v tasks="$(wc -l <small.jsonl)" \
  '{ printf "%d small repositories, %d tasks: %.2f s of CPU, %.2f s, %d MB\n", repos, tasks, $1 + $2, $3, $4 / 1024 }' time
