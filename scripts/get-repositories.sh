#!/usr/bin/env bash
# Fetches the repositories of the measurements in README.md and docs/; see `--help`.
set -euo pipefail

usage() {
  cat <<'END'
Fetch the repositories of the measurements in README.md and docs/, at fixed versions

Usage: scripts/get-repositories.sh DIR [NAME...]
       scripts/get-repositories.sh --list

DIR gets a folder for each group, with a folder for each repository, as the commands in docs/ use them:
`--repos-dir DIR/corpora`. NAME is a group or a repository, such as corpora or corpora/evaluate; without
names everything is fetched (700 MB when unpacked).

Options:
  --list        Print each repository with its package, version and the SHA-256 digest of its archive
  --table FILE  Read the repositories from FILE [default: scripts/repositories.txt]
  -h, --help    Print help

pip, npm and apt-get fetch the archives from their configured registries. apt-get needs a distribution with the named
upstream versions: Debian 12 has both. A repository whose folder exists is not fetched again, so repeat a call that failed.
The exit status is 0 if every repository exists, 1 if one does not, 2 if nothing could be tried.
END
}

fail() { printf 'error: %s\n' "$1" >&2; exit "${2:-1}"; }
say() { printf '%s\n' "$*" >&2; }
here=${0%"${0##*/}"}
. "${here:-./}purge.sh"

# Rows of the table: folder, client, package, digest, files.
rows() { sed -e '/^#/d' -e '/^[[:space:]]*$/d' "$table"; }

# Prints the reason why a client cannot run on this machine, if any.
lack() { # client
  case $1 in
    sdist | wheel-*) python3 -m pip --version >/dev/null 2>&1 || echo "pip is missing; install it (Debian: apt-get install python3-pip python3-venv)" ;;
    npm) command -v npm >/dev/null || echo "npm is missing; install it (Debian: apt-get install npm)" ;;
    apt)
      if ! command -v apt-get >/dev/null; then
        echo "apt-get is missing; run this on Debian 12, such as in a container"
      elif ! command -v xz >/dev/null; then
        echo "xz is missing; install it (Debian: apt-get install xz-utils)"
      fi ;;
    *) echo "$table: unknown client '$1'" ;;
  esac
}

# Runs a client, and shows the end of its output if it fails.
quietly() { # command...
  "$@" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; return 1; }
}

# Calls apt's programs with lists of sources in place of packages, in the working folder.
apt() { # program arguments...
  local program=$1
  shift
  "$program" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/parts" -o "Dir::State::Lists=$lists/lists" \
    -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o APT::Sandbox::User= "$@"
}

# Downloads the lists of source packages of this system's distribution.
update_apt() {
  local file
  [ ! -e "$lists/done" ] || return 0
  mkdir -p "$lists/parts" "$lists/lists/partial"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed -e 's/^deb /deb-src /' -e 's/^Types:.*/Types: deb-src/' "$file" >"$lists/parts/${file##*/}"
  done
  # Third-party sources may have no source packages; only the packages of the table matter.
  apt apt-get -q update >"$lists/log" 2>&1 || true
  touch "$lists/done"
}

# Downloads an archive into the working folder, as its only file there.
download() { # client package digest
  local name=${2%%==*} version=${2##*==} found
  local pip=(python3 -m pip download --disable-pip-version-check --no-deps --ignore-requires-python --dest "$work/archive")
  printf '%s --hash=sha256:%s\n' "$2" "$3" >"$work/pin"
  case $1 in
    sdist) quietly "${pip[@]}" --no-binary "$name" --requirement "$work/pin" ;;
    wheel-*)
      quietly "${pip[@]}" --only-binary=:all: --python-version "${1#wheel-}" --platform manylinux_2_28_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --requirement "$work/pin" ;;
    npm) (cd "$work/archive" && quietly npm pack --silent "$2") ;;
    apt)
      update_apt
      found=$(apt apt-cache showsrc --only-source "$name" 2>/dev/null | sed -n 's/^Version: //p' | sort -u)
      version=$(grep -E "^([0-9]+:)?${version//[.+]/[&]}-[^-]*\$" <<<"$found" | tail -n 1) || {
        say "error: $name: this system's sources have ${found:-no version}, not ${2##*==}; use a system that has it, such as Debian 12"
        return 1
      }
      (cd "$work/archive" && quietly apt apt-get -q source --download-only "$name=$version")
      find "$work/archive" -type f ! -name '*.orig.tar.*' -delete
      find "$work/archive" -name '*.asc' -delete ;;
  esac
}

# Fetches an archive, unless this call or an interrupted one has fetched it; groups share archives.
obtain() { # client package digest
  local archive=$to/.archives/$3 file
  [ ! -e "$archive" ] || return 0
  mkdir -p "$work/archive" "$to/.archives"
  download "$@"
  file=$(find "$work/archive" -type f)
  sha256sum "$file" | grep -q "^\\\\\\?$3 " || fail "$2: the archive ${file##*/} has another digest than $3"
  mv "$file" "$archive"
}

# Unpacks an archive into a folder, with the files that are kept.
unpack() { # client archive files folder
  case $1 in
    wheel-*) python3 -m zipfile -e "$2" "$4" ;;
    *) mkdir "$4" && tar -xf "$2" -C "$4" --strip-components 1 ;;
  esac
  purge "$4" "${2##*/}"
  case $3 in
    all) ;;
    python | python-200k)
      find "$4" ! -type d ! -name '*.py' -delete
      [ "$3" = python ] || find "$4" -type f -size +199999c -delete ;;
    src) mv "$4" "$4.whole" && mv "$4.whole/src" "$4" ;;
    no-dist) find "$4" -type d -name dist -prune -exec rm -rf {} + ;;
    *) fail "$table: unknown files '$3'" ;;
  esac
  find "$4" -type d -empty -delete
}

# Fetches a repository into its folder, which appears once it is complete.
get() { # folder client package digest files
  work=$to/.work
  rm -rf "$work"
  mkdir -p "$work"
  trap 'rm -rf "$work"' EXIT
  obtain "$2" "$3" "$4"
  unpack "$2" "$to/.archives/$4" "$5" "$work/repository"
  mkdir -p "$(dirname "$to/$1")"
  mv "$work/repository" "$to/$1"
  say "$1: $3"
}

table=$(dirname "$0")/repositories.txt
to=
names=()
list=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit ;;
    --list) list=yes ;;
    --table) [ $# -gt 1 ] || fail "--table needs a value; see --help" 2; table=$2; shift ;;
    -*) fail "unknown option '$1'; see --help" 2 ;;
    *) if [ -z "$to" ]; then to=$1; else names+=("${1%/}"); fi ;;
  esac
  shift
done
[ -r "$table" ] || fail "$table: cannot be read (--table)" 2
if [ -n "$list" ]; then
  rows
  exit
fi
[ -n "$to" ] || { usage >&2; exit 2; }
for name in ${names[@]+"${names[@]}"}; do
  grep -q "^$name[/ ]" < <(rows) || fail "unknown group or repository '$name'; --list prints them" 2
done
for tool in tar sha256sum; do
  command -v "$tool" >/dev/null || fail "'$tool' is missing; install it" 2
done

mkdir -p "$to"
to=$(cd "$to" && pwd)
lists=$to/.apt
trap 'rm -rf "$lists"' EXIT
there=0
missing=()
lacking=()
while read -r folder client package digest files; do
  if [ ${#names[@]} -gt 0 ]; then
    wanted=
    for name in "${names[@]}"; do
      case $folder in "$name" | "$name"/*) wanted=yes ;; esac
    done
    [ -n "$wanted" ] || continue
  fi
  if [ -d "$to/$folder" ]; then
    say "$folder: already there"
    there=$((there + 1))
    continue
  fi
  reason=$(lack "$client")
  if [ -n "$reason" ]; then
    lacking+=("$reason")
    missing+=("$folder")
    continue
  fi
  # Not in a condition, where bash would go on after a failure.
  set +e
  (set -e; get "$folder" "$client" "$package" "$digest" "$files") </dev/null
  status=$?
  set -e
  if [ $status = 0 ]; then there=$((there + 1)); else missing+=("$folder"); fi
done < <(rows)

if [ ${#missing[@]} = 0 ]; then
  rm -rf "$to/.archives"
  exit
fi
[ ${#lacking[@]} = 0 ] || printf '%s\n' "${lacking[@]}" | sort -u | sed 's/^/error: /' >&2
status=1
[ "$there" -gt 0 ] || [ ${#lacking[@]} -lt ${#missing[@]} ] || status=2
fail "not fetched: ${missing[*]}" $status
