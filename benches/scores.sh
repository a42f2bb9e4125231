#!/usr/bin/env bash
# Scoring as a process: CPU seconds of `eval --pairs` by each metric on 100,000 pairs of lines, all else as it is by default,
# twice and four times as many, and beside it the reference programs' formulas in Python (a venv with
# benches/peers/requirements.txt, named by PEERS_VENV).
# usage: benches/scores.sh [COUNT]
set -euo pipefail
count=${1:-100000}
cd "$(dirname "$0")/.."
cargo build --locked --release --quiet
bin=$PWD/target/release/repoformer
peers=$PWD/benches/peers/scores.py
tasks=$PWD/data/tasks/line.jsonl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Targets beside their neighbours, and beside themselves with a word changed: lines of some 45 characters.
python3 - "$tasks" "$count" <<'PY'
import json, random, sys
targets = [json.loads(line)["metadata"]["ground_truth"] for line in open(sys.argv[1])]
count = int(sys.argv[2])
draw = random.Random(0)
with open("pairs.jsonl", "w") as out:
    for number in range(count):
        target = draw.choice(targets)
        words = target.split(" ")
        words[draw.randrange(len(words))] = draw.choice(targets).split(" ")[-1]
        pred = " ".join(words) if number % 2 else draw.choice(targets)
        out.write(json.dumps({"task_id": str(number), "target": target, "pred": pred}) + "\n")
PY
cat pairs.jsonl pairs.jsonl > twice.jsonl
cat twice.jsonl twice.jsonl > four.jsonl

seconds() { # file, metrics
  /usr/bin/time -o time -f '%U %S' "$bin" eval --pairs "$1" --metrics "$2" > /dev/null
  awk '{ printf "%.3f", $1 + $2 }' time
}
strings=repocoder,repoformer,crosscodeeval,repobench,chars
echo "| metrics | pairs | CPU s, reading included |"
echo "|---|---|---|"
for metric in repocoder repoformer crosscodeeval repobench chars "$strings"; do
  echo "| $metric | $count | $(seconds pairs.jsonl "$metric") |"
done
echo "| $strings | $((2 * count)) | $(seconds twice.jsonl "$strings") |"
echo "| $strings | $((4 * count)) | $(seconds four.jsonl "$strings") |"
if [ -n "${PEERS_VENV:-}" ]; then
  echo
  echo "Python, the formulas alone (metric, pairs, CPU s):"
  "$PEERS_VENV/bin/python" "$peers" pairs.jsonl
fi
