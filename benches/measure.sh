#!/usr/bin/env bash
# Builds the program of benches/measure.rs and prints its path.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo bench --quiet --locked --bench measure --no-run --message-format json | python3 -c '
import json, sys
built = [message for message in map(json.loads, sys.stdin) if message["reason"] == "compiler-artifact"]
print(next(message["executable"] for message in built if message["target"]["name"] == "measure"))'
