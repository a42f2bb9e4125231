#!/usr/bin/env bash
# Builds what is handed out, into dist/ (or DIST): the source distribution, and from it for each target a wheel. For a musl
# target also the program alone, which needs no library of the machine that it runs on.
#
#   scripts/dist.sh TARGET…      x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu, x86_64-unknown-linux-musl, …
#
# Needs the targets' standard libraries (`rustup target add TARGET`), and `pip install maturin ziglang`: zig compiles C
# code and links, for any target and glibc 2.17, the oldest that Rust supports. RUSTC names another compiler, as for
# cargo. PROFILE=release takes less time; that program is up to 1.1 × as slow.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${DIST:-dist}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
if [ $# -eq 0 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for target in "$@"; do
  maturin build --sdist --zig --target "$target" --profile "${PROFILE:-dist}" --out "$work/$target"
  mkdir -p "$dist"
  if [[ $target == *-musl ]]; then
    name=repoformer-$version-$target
    mkdir "$work/$name"
    python3 -m zipfile -e "$work/$target"/*.whl "$work/wheel"
    install -m 755 "$work/wheel/repoformer-$version.data/scripts/repoformer" "$work/$name/"
    install -m 644 LICENSE README.md "$work/$name/"
    tar -C "$work" --owner 0 --group 0 -czf "$dist/$name.tar.gz" "$name"
    rm -rf "$work/wheel"
  fi
  mv "$work/$target"/* "$dist/"
done
ls -l "$dist"
