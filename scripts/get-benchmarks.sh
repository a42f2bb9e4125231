#!/usr/bin/env bash
# Fetches the published benchmarks, checks them, and lays them out for `repoformer`; `--help` says more.
set -euo pipefail

usage() {
  cat <<'END'
Fetch the benchmarks of repository-level code completion from where their authors publish them

Usage: scripts/get-benchmarks.sh [--to DIR] [--base-url URL] [--checksums FILE] [NAME...]

Names (default: all):
  repoeval           RepoEval: 10 task files and 16 repositories (github.com/microsoft/CodeT, MIT; the
                     repositories have their own licences)
  crosscodeeval      CrossCodeEval: tasks in Python, Java, C# and TypeScript (github.com/amazon-science/cceval,
                     Apache-2.0)
  crosscodelongeval  CrossCodeLongEval: chunk and function tasks (github.com/amazon-science/Repoformer, Apache-2.0)

Options:
  --to DIR           Folder to lay them out in [default: data/benchmarks]
  --base-url URL     Mirror that takes the place of https://raw.githubusercontent.com
  --checksums FILE   Checksums that take the place of the published ones, for a mirror with other archives:
                     lines of `sha256sum`, by the archives' file names
  -h, --help         Print help

A download that breaks off goes on where it stopped. A benchmark that is there is not fetched again.
The exit status is 0 if every benchmark is there, 1 if one is not, 2 if nothing could be tried.
END
}

fail() { printf 'error: %s\n' "$1" >&2; exit "${2:-1}"; }
say() { printf '%s\n' "$*" >&2; }
here=${0%"${0##*/}"}
. "${here:-./}purge.sh"

# The archives of a benchmark: checksum, and path with the commit. The authors publish no checksums of their own; these are
# git's, by which the commit names its files.
archives() {
  case $1 in
    repoeval)
      local folder=microsoft/CodeT/205330ab6bbc14286af4b83579f71cbd2ecc9cc8/RepoCoder
      printf '%s\n' \
        "0f8a50199e2a3c38ab5322302138ac026f6255a6 $folder/datasets/datasets.zip" \
        "90b701a8c1106365465b398b15a844aec7f3da36 $folder/repositories/line_and_api_level.zip" \
        "7dfc4a9f6ccf5ff84864359050b1eb5c65572ced $folder/repositories/function_level.zip" ;;
    crosscodeeval)
      local folder=amazon-science/cceval/2386d7862aa7cf782c401e9d529223e78daf136c/data
      printf '%s\n' "d838b2795a5b314fb7580c652c4df98f4c61d2c9 $folder/crosscodeeval_data.tar.xz" ;;
    crosscodelongeval)
      local folder=amazon-science/Repoformer/5b0571318e9918fd2af132c4b35077f9ea331133/crosscodelongeval
      printf '%s\n' \
        "607009befbb008800b9724d5898a8ad256bce349 $folder/cceval_chunk_eval_data.tar.gz" \
        "c916a19a83012b617d096fc7ac07e041b0668592 $folder/cceval_function_eval_data.tar.gz" ;;
  esac
}

line_and_api_level=(alibaba_FederatedScope awslabs_fortuna google_vizier huggingface_diffusers huggingface_evaluate
  nerfstudio-project_nerfstudio opendilab_ACE pytorch_rl)
function_level=(CarperAI_trlx amazon-science_patchcore-inspection deepmind_tracr facebookresearch_omnivore
  google_lightweight_mmm leopard-ai_betty lucidrains_imagen-pytorch maxhumber_redframes)
languages=(python java csharp typescript)

# The number of tasks that the papers give for a task file.
published() { # path in the benchmark's folder
  case $1 in
    datasets/function_*) echo 455 ;;
    datasets/*) echo 1600 ;;
    python/*) echo 2665 ;;
    java/*) echo 2139 ;;
    csharp/*) echo 1768 ;;
    typescript/*) echo 3356 ;;
    *) echo 5000 ;;
  esac
}

# The checksum of a file: git's where it is compared with one of git's, SHA-256 otherwise.
checksum() { # file expected
  if [ ${#2} = 40 ]; then
    { printf 'blob %s\0' "$(wc -c <"$1" | tr -d ' ')"; cat "$1"; } | sha1sum
  else
    sha256sum <"$1"
  fi | cut -d ' ' -f 1
}

# The checksum that an archive must have: that of --checksums, where it names the archive.
expected() { # archive published-checksum
  local given=
  [ -z "$checksums" ] || given=$(awk -v name="$1" '{ sub(".*[*/]", "", $2) } $2 == name { print $1; exit }' "$checksums")
  echo "${given:-$2}"
}

# Leaves an archive with the right checksum in the folder of downloads.
fetch() { # checksum path
  local name=${2##*/} url=$base_url/$2 got
  local file=$to/.downloads/$name
  if [ ! -e "$file" ]; then
    say "fetching $url"
    local curl=(curl --fail --location --retry 3 --output "$file.part") status=0
    if [ -t 2 ]; then curl+=(--progress-bar); else curl+=(--silent --show-error); fi
    "${curl[@]}" --continue-at - "$url" || status=$?
    # The server cannot go on there: from the beginning.
    if [[ $status =~ ^(22|33|36)$ && -s $file.part ]]; then
      rm "$file.part"
      status=0
      "${curl[@]}" "$url" || status=$?
    fi
    [ $status = 0 ] || fail "$url: curl gave up with status $status; run again to go on, or name a mirror with --base-url"
    mv "$file.part" "$file"
  fi
  got=$(checksum "$file" "$1")
  [ "$got" = "$1" ] || {
    mv "$file" "$file.refused"
    fail "$name: wrong checksum: expected $1, got $got (kept as $file.refused); run again to fetch it anew"
  }
}

unpack() { # archive folder
  mkdir -p "$2"
  case $1 in
    *.zip) unzip -q -o "$1" -d "$2" </dev/null || [ $? = 1 ] ;; # 1: warnings
    *.xz) xz -dc "$1" | tar -xf - -C "$2" ;;
    *) gzip -dc "$1" | tar -xf - -C "$2" ;;
  esac || return 1
  purge "$2" "${1##*/}"
}

# Moves the task files below a folder, whatever folders the archive has them in.
take_tasks() { # from to
  mkdir -p "$2"
  find "$1" -type f -name '*.jsonl' -not -name '._*' -exec mv {} "$2" \;
}

# Moves the folder that holds a folder of this name.
take_folder() { # from name to
  local found
  found=$(find "$1" -maxdepth 3 -type d -name "$2" -not -path '*/__MACOSX/*' -print -quit)
  [ -n "$found" ] || fail "${1##*/}: holds no folder $2"
  mv "${found%/*}" "$3"
  rm -rf "$3/__MACOSX"
}

# Lays the unpacked archives of a benchmark out.
lay_out() { # name unpacked to
  mkdir -p "$3"
  case $1 in
    repoeval)
      mkdir "$3/repositories"
      take_tasks "$2/datasets.zip" "$3/datasets"
      take_folder "$2/line_and_api_level.zip" "${line_and_api_level[0]}" "$3/repositories/line_and_api_level"
      take_folder "$2/function_level.zip" "${function_level[0]}" "$3/repositories/function_level" ;;
    crosscodeeval)
      local language
      take_folder "$2/crosscodeeval_data.tar.xz" "${languages[0]}" "$2/all"
      for language in "${languages[@]}"; do
        take_tasks "$2/all/$language" "$3/$language"
      done ;;
    crosscodelongeval) take_tasks "$2" "$3" ;;
  esac
}

# Fails unless the folder has the benchmark's repositories, and the task files that the commands name.
check() { # name folder advice
  local wanted path
  case $1 in
    repoeval) wanted=("${line_and_api_level[@]/#/repositories/line_and_api_level/}"
      "${function_level[@]/#/repositories/function_level/}"
      datasets/{line,api}_level_completion_2k_context_codegen.test.jsonl
      datasets/function_level_completion_2k_context_codex.test.jsonl) ;;
    crosscodeeval) wanted=("${languages[@]/%//line_completion_rg1_bm25.jsonl}") ;;
    crosscodelongeval) wanted=(python_{chunk,function}_completion_sparse_rg1.jsonl) ;;
  esac
  for path in "${wanted[@]}"; do
    [ -e "$2/$path" ] || fail "$1: $path is missing$3"
  done
}

# Fetches a benchmark into its folder, which appears when it is whole.
get() { # name
  local sum path sources='' place=$to/$1
  while read -r sum path; do
    sources+="$(expected "${path##*/}" "$sum")  $path"$'\n'
  done < <(archives "$1")
  if [ -e "$place" ]; then
    [ "$(cat "$place/sources.txt")"$'\n' = "$sources" ] ||
      fail "$place: sources.txt has other checksums than those asked for; remove the folder, or choose another --to"
    check "$1" "$place" "; remove $place, and run again"
    say "$1: already there"
    return
  fi
  work=$to/.work
  trap 'rm -rf "$work"' EXIT
  rm -rf "$work"
  mkdir -p "$to/.downloads" "$work"
  while read -r sum path; do
    fetch "$sum" "$path"
  done <<<"${sources%$'\n'}"
  while read -r _ path; do
    unpack "$to/.downloads/${path##*/}" "$work/${path##*/}" || fail "${path##*/}: cannot be unpacked"
  done <<<"${sources%$'\n'}"
  lay_out "$1" "$work" "$work/new"
  check "$1" "$work/new" " in the archives"
  printf '%s' "$sources" >"$work/new/sources.txt"
  mv "$work/new" "$place"
  while read -r _ path; do
    rm "$to/.downloads/${path##*/}"
  done <<<"${sources%$'\n'}"
}

# Prints the counts of a benchmark that is there, and the commands that use it.
show() { # name
  local place=$to/$1 path count wanted folder
  printf '\n%s in %s, %s\n' "$1" "$place" "$(du -sh "$place" | cut -f 1)"
  while read -r path; do
    path=${path#"$place"/}
    count=$(grep -c '' "$place/$path") || true
    wanted=$(published "$path")
    printf '%6s tasks  %s\n' "$count" "$path"
    [ "$count" = "$wanted" ] || say "note: $place/$path: $count tasks, where the papers give $wanted"
  done < <(find "$place" -path "$place/repositories" -prune -o -name '*.jsonl' -print | LC_ALL=C sort)
  for folder in "$place"/repositories/*; do
    [ -d "$folder" ] || continue
    count=$(find "$folder" -mindepth 1 -maxdepth 1 -type d | wc -l | tr -d ' ')
    printf '%6s repositories  %s\n' "$count" "${folder#"$place"/}"
  done
  place=$(printf '%q' "$place")
  local datasets=$place/datasets line_api=$place/repositories/line_and_api_level function=$place/repositories/function_level
  case $1 in
    repoeval)
      printf '  %s\n' \
        "repoformer validate --repos-dir $line_api $datasets/line_level_*.jsonl $datasets/api_level_*.jsonl" \
        "repoformer validate --repos-dir $function $datasets/function_level_*.jsonl" \
        "repoformer run --repos-dir $line_api --tasks $datasets/line_level_completion_2k_context_codegen.test.jsonl" \
        "repoformer run --repos-dir $line_api --tasks $datasets/api_level_completion_2k_context_codegen.test.jsonl" \
        "repoformer run --repos-dir $function --tasks $datasets/function_level_completion_2k_context_codex.test.jsonl" ;;
    crosscodeeval)
      local language
      printf '  %s\n' "repoformer validate $place/*/*.jsonl"
      for language in "${languages[@]}"; do
        printf '  %s\n' "repoformer run --profile crosscodeeval --mode none,given --benchmark crosscodeeval-$language --tasks $place/$language/line_completion_rg1_bm25.jsonl"
      done
      printf '%s\n' \
        "The tasks carry their cross-file context (mode given) and need no repositories. The authors give the repositories" \
        "on request only. With --repos-dir, a folder that holds one folder per metadata.repository, every mode works." ;;
    crosscodelongeval)
      printf '  %s\n' \
        "repoformer validate $place/*.jsonl" \
        "repoformer run --profile repoformer-paper --mode none,given --tasks $place/python_chunk_completion_sparse_rg1.jsonl" \
        "repoformer run --profile repoformer-paper --mode none,given --tasks $place/python_function_completion_sparse_rg1.jsonl"
      printf '%s\n' "The tasks carry their cross-file context and name no file, so no other mode works." ;;
  esac
}

all=(repoeval crosscodeeval crosscodelongeval)
to=data/benchmarks
base_url=https://raw.githubusercontent.com
checksums=
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --to|--base-url|--checksums)
      [ $# -gt 1 ] || fail "$1 needs a value; see --help" 2
      case $1 in
        --to) to=${2%/} ;;
        --base-url) base_url=${2%/} ;;
        --checksums) checksums=$2 ;;
      esac
      shift ;;
    -h|--help) usage; exit ;;
    repoeval|crosscodeeval|crosscodelongeval) names+=("$1") ;;
    *) fail "unknown benchmark or option '$1'; see --help" 2 ;;
  esac
  shift
done
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")

needs() { # tool package who
  command -v "$1" >/dev/null || fail "'$1' is missing, and $3 needs it; install it (Debian: apt-get install $2)" 2
}
needs curl curl "every benchmark"
needs tar tar "every benchmark"
needs sha1sum coreutils "every benchmark"
needs sha256sum coreutils "every benchmark"
for name in "${names[@]}"; do
  case $name in
    repoeval) needs unzip unzip repoeval ;;
    crosscodeeval) needs xz xz-utils crosscodeeval ;;
    crosscodelongeval) needs gzip gzip crosscodelongeval ;;
  esac
done
if [ -n "$checksums" ]; then
  [ -r "$checksums" ] || fail "$checksums: cannot be read (--checksums)" 2
  known=$(for name in "${all[@]}"; do archives "$name"; done)
  while read -r _ path || [ -n "$path" ]; do
    [[ $known$'\n' == */"${path##*[*/]}"$'\n'* ]] || fail "$checksums: '$path' is none of the benchmarks' archives" 2
  done <"$checksums"
fi

there=()
missing=()
for name in "${names[@]}"; do
  # Not in a condition, where bash would go on after a failure.
  set +e
  (set -e; get "$name")
  status=$?
  set -e
  if [ $status = 0 ]; then there+=("$name"); else missing+=("$name"); fi
done
rmdir "$to/.downloads" 2>/dev/null || true
for name in ${there[@]+"${there[@]}"}; do
  show "$name"
done
[ ${#missing[@]} = 0 ] || fail "not fetched: ${missing[*]}"
