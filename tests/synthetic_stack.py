#!/usr/bin/env python3
"""Groups a synthetic stack (scripts/synthetic-stack.py) and compares what is left out with what was planted.

    tests/synthetic_stack.py STACK [--program target/release/repoformer] [--shards N]

All that was planted must be found, with the reason and what it repeats. Repositories and files that are left out though nothing was planted in
them are counted, and may be one in a thousand each: packages repeat themselves, so slices of one can be near duplicates (datatrove
finds the same ones).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stack", type=pathlib.Path)
    parser.add_argument("--program", default=ROOT / "target/release/repoformer")
    parser.add_argument("--shards", type=int, default=8)
    options = parser.parse_args()
    tasks = ",".join(sorted(map(str, (ROOT / "data/tasks").glob("*.jsonl"))))
    with tempfile.TemporaryDirectory(dir=options.stack) as out:
        command = [options.program, "group", options.stack / "data", "--shards", str(options.shards), "-o", out]
        subprocess.run([*command, "--decontaminate", tasks], check=True)
        dropped = [json.loads(line) for line in pathlib.Path(out, "dropped.jsonl").read_text().splitlines()]
        kept = json.loads(pathlib.Path(out, "group.json").read_text())["counts"]
    truth = [json.loads(line) for line in (options.stack / "truth.jsonl").read_text().splitlines()]
    files = {(one["repo_name"], one["filepath"]) for one in dropped if "filepath" in one}
    leaks = {(one["repo_name"], one["path"]) for one in truth if one["kind"] == "leak"}
    # Of a repository of a benchmark any task may be named.
    said = {(one["reason"], one["repo_name"], one["of"] if one["reason"] != "contaminated" else None)
            for one in dropped if "filepath" not in one}
    planted = {("contaminated" if one["kind"] == "benchmark" else one["kind"], one["repo_name"], one.get("of"))
               for one in truth if one["kind"] != "leak"}
    for what, wrong in (("not left out", planted - said), ("left out", said - planted), ("not left out", leaks - files)):
        for one in sorted(wrong, key=str):
            print(f"{what}: {one}")
    print(f"{len(planted & said)} of {len(planted)} planted repositories and {len(leaks & files)} of {len(leaks)} planted targets are left out, "
          f"and {len(said - planted)} of {kept['repositories']:,} other repositories and {len(files - leaks)} of {kept['files']:,} other files")
    few = len(files - leaks) * 1000 <= kept["files"] and len(said - planted) * 1000 <= kept["repositories"]
    return int(not planted <= said or not leaks <= files or not leaks or not few)


if __name__ == "__main__":
    sys.exit(main())
