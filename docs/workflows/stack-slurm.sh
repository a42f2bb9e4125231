#!/usr/bin/env bash
# Parquet rows of a code corpus → training sequences of a Repoformer, on Slurm and a file system that all nodes share:
#
#     bash stack-slurm.sh INPUT WORK TOKENIZER.JSON
#
# It submits a job that groups the rows, an array with a task for each shard, and a job that joins the labels once all tasks have
# ended well. Repeat it after whatever happened: it submits what is not complete, and work that began goes on. One shard by hand:
#
#     sbatch --array=7 stack-slurm.sh INPUT WORK TOKENIZER.JSON shard
#
# Take a copy and make these lines yours. Jobs use the copy that was submitted.

#SBATCH --cpus-per-task=2
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
GROUP=(--mem=4G)                # further options of sbatch for each job: --partition, --account …
SHARD=(--mem=4G)
SEQUENCES=(--mem=4G)
PROGRAM=repoformer              # a path that all nodes have
SHARDS=64
LANGUAGE=python
DRAW=(--kind chunk)             # options of label sample
STYLE=starcoder
MODEL=in-context                # or that of a server, such as bigcode/starcoderbase-1b
ENDPOINT=                       # the server: http://host:8000
SERVER=()                       # or its command, for one beside each task: (vllm serve "$MODEL" --host 127.0.0.1); --port is added
CONCURRENCY=32                  # requests at once
BROKEN=stop                     # where rows are broken; leave-out: go on without them, the log names them

set -euo pipefail
fail() { echo "error: $*" >&2; exit 2; }
[ $# -ge 3 ] || fail "usage: bash stack-slurm.sh INPUT WORK TOKENIZER.JSON"
case $1 in /*) INPUT=$1 ;; *) INPUT=$PWD/$1 ;; esac
SELF=$(realpath "$0") WORK=$(realpath -m "$2") TOKENIZER=$(realpath -e "$3") STEP=${4:-submit}
command -v "$PROGRAM" >/dev/null || fail "there is no $PROGRAM: PROGRAM in this file"

# Nothing but this file and its arguments decides what is made: no setting of the shell that submits, no repoformer.toml there.
for variable in "${!REPOFORMER_@}"; do
  [ "$variable" = REPOFORMER_API_KEY ] || unset "$variable"
done
settings=$(printf '%s\n' "$INPUT" "$TOKENIZER" "$SHARDS" "$LANGUAGE" "${DRAW[*]}" "$STYLE" "$MODEL")
if [ "$STEP" = submit ] && [ ! -e "$WORK/settings" ]; then
  mkdir -p "$WORK/logs"
  echo "$settings" >"$WORK/settings"
fi
cd "$WORK"
[ "$(cat settings)" = "$settings" ] || fail "$WORK/settings are not those of this file and its arguments: take another folder for WORK"

submit() {
  # sbatch gives a job a copy of this file that has another path.
  case $0 in */slurm_script) fail "run this file with bash: it calls sbatch itself" ;; esac
  local name queued part incomplete="" after=()
  name=stack-$(cksum <<<"$WORK" | cut -d' ' -f1)
  queued=$(squeue --me --noheader --name="$name")
  [ -z "$queued" ] || fail "jobs of an earlier start are not over: wait, or scancel --me --name=$name"
  job() {
    local id
    id=$(sbatch --parsable --job-name="$name" "${after[@]}" "${@:2}" "$SELF" "$INPUT" "$WORK" "$TOKENIZER" "$1")
    echo "$1: job ${id%%;*}"
    after=(--dependency="afterok:${id%%;*}" --kill-on-invalid-dep=yes)
  }
  [ -e shards/group.json ] || job group --output=logs/group-%j.log "${GROUP[@]}"
  for part in $(seq "$SHARDS"); do
    [ -e "labels/$(file "$part").manifest.json" ] || incomplete+=,$part
  done
  [ -z "$incomplete" ] || rm -f sequences.complete
  [ -z "$incomplete" ] || job shard --output=logs/shard-%A_%a.log "${SHARD[@]}" --array="${incomplete#,}"
  if [ ${#after[@]} -gt 0 ] || [ ! -e sequences.complete ]; then
    job sequences --output=logs/sequences-%j.log "${SEQUENCES[@]}"
  else
    echo "all is complete: $WORK/sequences"
  fi
}

# Name of a shard's files: 00007-of-00064.jsonl.
file() { printf '%05d-of-%05d.jsonl' "$1" "$SHARDS"; }

group() {
  local code=0
  "$PROGRAM" group "$INPUT" -o shards --shards "$SHARDS" --language "$LANGUAGE" || code=$?
  [ $code -eq 1 ] && [ "$BROKEN" = leave-out ] || return $code
}

shard() {
  local part=${SLURM_ARRAY_TASK_ID:?a task of an array: sbatch --array} name cache data model predictions base rag
  name=$(file "$part")
  cache=cache/${name%.jsonl}
  data=(--tasks "instances/$name" --benchmark instances --mode none,given --prompt-style "$STYLE" --cache-dir "$cache")
  predictions=$cache/predictions/instances
  model=(--model "$MODEL")
  "$PROGRAM" label sample --raw shards --shard "$part/$SHARDS" --language "$LANGUAGE" "${DRAW[@]}" -o "instances/$name"
  "$PROGRAM" prompt "${data[@]}"
  [ ${#SERVER[@]} -eq 0 ] || serve "logs/server-${name%.jsonl}.log"
  [ -z "$ENDPOINT" ] || model+=(--endpoint "$ENDPOINT" --concurrency "$CONCURRENCY" --retry-failed)
  "$PROGRAM" complete "${data[@]}" "${model[@]}"
  base=("$predictions"/none-*.jsonl) rag=("$predictions"/given-*.jsonl)
  "$PROGRAM" label judge --instances "instances/$name" --base "${base[@]}" --rag "${rag[@]}" -o "labels/$name" || {
    # Labels without some instances are not complete.
    local code=$?
    rm -f "labels/$name.manifest.json"
    return $code
  }
}

# A server beside this task, on a free port, until the task ends.
serve() {
  local port=$((10000 + SLURM_JOB_ID % 20000)) late=$((SECONDS + 3600)) server
  while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  ENDPOINT=http://127.0.0.1:$port
  "${SERVER[@]}" --port "$port" >>"$1" 2>&1 &
  server=$!
  trap "kill $server 2>/dev/null || true" EXIT
  until "$PROGRAM" doctor --endpoint "$ENDPOINT" --model "$MODEL" >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || fail "the server has ended: $WORK/$1"
    [ "$SECONDS" -lt $late ] || fail "the server does not answer: $WORK/$1"
    sleep 2
  done
}

sequences() {
  rm -f sequences.complete
  "$PROGRAM" merge labels/*.jsonl -o labels.jsonl
  "$PROGRAM" label verbalize --labels labels.jsonl --prompt-style "$STYLE" --tokenizer "$TOKENIZER" -o sequences
  touch sequences.complete
}

# A minute before its time limit a job goes back to the queue, ten times at most. A task is named by its array and its index: the id
# of an array's last task alone would mean all tasks.
again() {
  if [ "${SLURM_RESTART_COUNT:-0}" -lt 10 ]; then
    echo "the time limit is near: back to the queue"
    scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}" || true
  else
    echo "the time limit is near, after ten restarts: give this job more time"
  fi
}

case $STEP in
  submit) submit ;;
  group | shard | sequences)
    export REPOFORMER_THREADS=${SLURM_CPUS_PER_TASK:?a job of Slurm: sbatch}
    trap again USR1
    "$STEP" &
    # A signal ends the first.
    wait $! || wait $!
    ;;
  *) fail "no step is called $STEP: group, shard or sequences" ;;
esac
