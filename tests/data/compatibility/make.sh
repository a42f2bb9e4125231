#!/bin/sh
# Writes the files of this version into a folder of its name: `sh tests/data/compatibility/make.sh` with `repoformer` in the
# search path. They stay as they are once the version is out; `tests/cmd/compatibility` reads them with every later one.
set -eu
cd "$(dirname "$0")"
version=$(repoformer --version | cut -d ' ' -f 2)
rm -rf "$version"
mkdir "$version"
cd "$version"

# Two repositories, three tasks.
lines() { seq 0 "$2" | sed "s/.*/$1_& = $1(&)/"; }
mkdir -p repos/alpha repos/beta/pkg
lines store 24 > repos/alpha/store.py
lines view 29 > repos/alpha/view.py
lines main 39 > repos/beta/main.py
lines help 9 > repos/beta/pkg/help.py
task() { # id, folder, file, first line of the context, line of the hole
    prompt=$(head -n "$5" "repos/$2/$3" | tail -n +"$(($4 + 1))" | sed 's/$/\\n/' | tr -d '\n')
    truth=$(sed -n "$(($5 + 1))p" "repos/$2/$3")
    printf '{"prompt":"%s","metadata":{"task_id":"%s","ground_truth":"%s","fpath_tuple":["%s","%s"],"context_start_lineno":%s,"line_no":%s}}\n' \
        "$prompt" "$1" "$truth" "$2" "$3" "$4" "$5"
}
{ task alpha/0 alpha store.py 10 12; task alpha/1 alpha view.py 0 20; task beta/0 beta main.py 0 30; } > tasks.jsonl
printf 'repos-dir = "repos"\ntasks = "tasks.jsonl"\ncache-dir = "cache"\n' > repoformer.toml

repoformer run -q --mode none,rg1 > /dev/null

# The journal of a model's answers, which came in a batch.
repoformer complete -q --mode none --model m --max-tokens 8 --write-batch requests.jsonl
answer() { printf '{"id":"x","custom_id":%s,"error":null,"response":{"status_code":200,"request_id":"y","body":{"choices":[{"index":0,"text":"store_12 = store(12)","finish_reason":"stop"}]}}}\n' "$1"; }
sed 's/^{"custom_id":\("[^"]*"\).*/\1/' requests.jsonl | while read -r id; do answer "$id"; done > answers.jsonl
repoformer complete -q --mode none --model m --max-tokens 8 --read-batch answers.jsonl
rm requests.jsonl answers.jsonl

# Results of tests, and scores of the tasks.
for mode in none rg1; do
    repoformer eval -q --predictions "cache/predictions/tasks/$mode-one-gram-ws-20-ss-2-in-context.jsonl" --per-task \
        --format jsonl -o "scores-$mode.jsonl"
done
printf '{"task_id":"alpha/0","pred":["store_12 = store(12)","x = 1"]}\n' > predictions.jsonl
repoformer eval -q --exec --test-cmd '! grep -q "x = 1\|planted" store.py' --predictions predictions.jsonl --missing skip \
    --isolation auto --format jsonl --per-task -o tested.jsonl || test $? = 1
rm -rf cache/exec/tasks/copies

# Labels, and a policy that was trained on labels.
repoformer label judge -q --instances tasks.jsonl --base cache/predictions/tasks/none-one-gram-ws-20-ss-2-in-context.jsonl \
    --rag cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl -o labels.jsonl
# Label n of a repository: retrieval helps where n is a multiple of 3.
trained() {
    block="    total = scale_$2(total)\\n    emit(total, $2)\\n"
    if [ $(($2 % 3)) = 0 ]; then
        seen="    first = start($2)\\n" found="    emit(total, $2)\\n    finish(total)\\n" infile=0.25 rag=1.0 helps=true
    else
        seen=$block found="class Other:\\n    pass\\n" infile=0.75 rag=0.5 helps=false
    fi
    file=repo$1/pkg/m$2.py
    printf '{"metadata":{"task_id":"%s","filename":"%s","start_i":4,"end_i":5},"prompt":"%s","groundtruth":"    finish(total)","right_context":"","crossfile_context":{"text":"# x","list":[{"retrieved_chunk":"%s","filename":"pkg/other.py","score":0.5}]},"es_infile":%s,"es_rg1":%s,"generation_model":"m","label":%s,"threshold":0.0}\n' \
        "$file/4_5" "$file" "def run_$2(value):\\n    total = 0\\n$seen$block" "$found" $infile $rag $helps
}
for repository in 0 1 2; do
    for number in $(seq 0 29); do trained $repository "$number"; done
done > trained.jsonl
repoformer policy train -q --labels trained.jsonl -o learned.json
rm trained.jsonl
