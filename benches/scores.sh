#!/usr/bin/env bash
# Scoring with the whole program: CPU seconds of `eval --pairs` by each metric, with the defaults, on 100,000 pairs of lines and on
# two and four times as many; for comparison, the reference programs' formulas in Python (PEERS_VENV names a venv with
# benches/peers/requirements.txt).
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

# Pairs of a target and another target, or of a target and itself with one word changed: lines of about 45 characters.
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
