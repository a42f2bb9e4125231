#!/bin/sh
# Builds the book of docs/ in target/book, or in DIR (--dest-dir DIR). Needs mdbook. The program writes the reference of every
# command and setting; PROGRAM names one that is built already.
set -eu
cd "$(dirname "$0")/.."
${PROGRAM:-cargo run --release --quiet --features serve --} manual docs --format markdown --quiet
exec mdbook build docs "$@"
