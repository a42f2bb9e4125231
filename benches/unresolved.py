#!/usr/bin/env python3
"""Compares `eval --unresolved` with unit tests: do completions with a name that resolves nowhere fail?

    benches/unresolved.py [--work DIR] > docs/results/unresolved.csv

Completes the bundled tasks with the embedded model in four modes, and runs the repositories' tests (pytest must be installed). A row a
kind of tasks: completions that fail and that pass, those of both with such a name, and the AUC of the name for failing.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("REPOFORMER", ROOT / "target/release/repoformer")
KINDS = ["line", "api", "function"]
MODES = ["none", "rg1", "gt", "rg-rg"]


def run(work, *args, most=0):
    data = ["--repos-dir", ROOT / "data/repos", "--cache-dir", work / "cache"]
    done = subprocess.run([str(part) for part in [PROGRAM, *args, *data]], capture_output=True, text=True)
    if done.returncode > most:
        sys.exit(f"{args}: status {done.returncode}\n{done.stderr}")


def records(path):
    return {record["row"]: record for record in map(json.loads, path.read_text().splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="folder of the completions and results, which a further run uses again")
    work = parser.parse_args().work or pathlib.Path(tempfile.mkdtemp())
    print("tasks,failing,failing_with_name,passing,passing_with_name,auc")
    total = [0] * 4
    for kind in KINDS:
        tasks = ["--tasks", ROOT / f"data/tasks/{kind}.jsonl"]
        counts = [0] * 4
        for mode in MODES:
            run(work, "run", *tasks, "--mode", mode)
            files = [work / f"{kind}-{mode}-{what}.jsonl" for what in ("names", "verdicts")]
            run(work, "eval", *tasks, "--mode", mode, "--unresolved", "-o", files[0])
            # Tasks whose tests are not conclusive are left out, with status 1.
            run(work, "eval", *tasks, "--mode", mode, "--exec", "--per-task", "-o", files[1], most=1)
            names, verdicts = map(records, files)
            for row, verdict in verdicts.items():
                if verdict.get("statuses"):
                    passes = verdict["statuses"][0] == "pass"
                    counts[2 * passes] += 1
                    counts[2 * passes + 1] += bool(names[row]["unresolved"][0])
        print_row(kind, counts)
        total = [a + b for a, b in zip(total, counts)]
    print_row("all", total)


def print_row(kind, counts):
    failing, named, passing, passing_named = counts
    # Of a feature with two values, ties count half.
    auc = (1 + named / failing - passing_named / passing) / 2
    print(f"{kind},{failing},{named},{passing},{passing_named},{auc:.3f}", flush=True)


main()
