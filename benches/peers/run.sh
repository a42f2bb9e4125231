#!/usr/bin/env bash
# Times the library and Python libraries that do the same, alternating on the same data; prints tables.
#
#   REPOFORMER_CORPUS=DIR benches/peers/run.sh [ROUNDS]
#
# The virtual environment and the exported data are in target/peers.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-5}
work=${CARGO_TARGET_DIR:-target}/peers
mkdir -p "$work"
if ! cmp -s benches/peers/requirements.txt "$work/venv/installed"; then
  python3 -m venv --clear "$work/venv"
  "$work/venv/bin/pip" install --quiet --requirement benches/peers/requirements.txt
  cp benches/peers/requirements.txt "$work/venv/installed"
fi
measure=$(benches/measure.sh)
rm -rf "$work/data"
"$measure" export "$work/data"
"$measure" check
"$work/venv/bin/python" benches/peers/compare.py "$measure" "$work/data" "$rounds"
"$work/venv/bin/python" benches/peers/bm25.py "$measure" "$work/data" "$rounds"
