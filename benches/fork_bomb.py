#!/usr/bin/env python3
"""Tells how usable a machine stays while predictions that start processes without end are tested.

A clock beside `repoformer eval --exec` sleeps for 20 ms again and again, and says how late it woke. Each kind of bomb is one of
ten predictions; the other nine must pass.

    benches/fork_bomb.py [PROGRAM]      # PROGRAM: target/release/repoformer
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/repoformer").resolve()
CALC = "def add(a, b):\n    return a + b\n"
TEST = (
    "import unittest, calc\n\nclass AddTest(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
)
FORK = "    import os\n    while 1:\n        try:\n            {}\n        except OSError: pass\n"
BOMBS = {
    "none": "    return b + a",
    "processes": FORK.format("os.fork()"),
    "sessions": FORK.format("os.fork() or os.setsid()"),
    "short-lived": FORK.format("os.fork() or os._exit(0)"),
    "threads": "    import _thread\n    def f():\n        while 1:\n            try: _thread.start_new_thread(f, ())\n"
    "            except RuntimeError: pass\n    f()\n",
}


def evaluate(folder, bomb):
    repository = folder / "repos" / "demo"
    repository.mkdir(parents=True)
    (repository / "calc.py").write_text(CALC)
    (repository / "test_calc.py").write_text(TEST)
    metadata = {"task_id": "demo/0", "ground_truth": "    return a + b", "fpath_tuple": ["demo", "calc.py"]}
    metadata |= {"context_start_lineno": 0, "line_no": 1}
    task = {"prompt": "def add(a, b):\n", "metadata": metadata}
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    samples = [f"    return a + b + 0 * {number}" for number in range(9)]
    samples.insert(3, bomb)
    (folder / "p.jsonl").write_text(json.dumps({"task_id": "demo/0", "pred": samples}) + "\n")
    line = "eval --exec --predictions p.jsonl --repos-dir repos --tasks tasks.jsonl --cache-dir cache --timeout 10"
    return subprocess.Popen(
        [PROGRAM, *line.split(), "--per-task", "--format", "json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )


def lateness(process):
    late = []
    while process.poll() is None:
        begin = time.monotonic()
        time.sleep(0.02)
        late.append(1000 * (time.monotonic() - begin - 0.02))
    return sorted(late)


def main():
    print("bomb         seconds  late by p50 ms  p99 ms  max ms  passed  the bomb")
    for name, bomb in BOMBS.items():
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            process = evaluate(pathlib.Path(folder), bomb)
            output = []
            reader = threading.Thread(target=lambda: output.append(process.stdout.read()))
            reader.start()
            late = lateness(process)
            reader.join()
            seconds = time.monotonic() - begin
            statuses = json.loads(output[0])["tasks"][0]["statuses"]
        at = lambda share: late[min(len(late) - 1, int(share * len(late)))]
        passed = statuses[:3].count("pass") + statuses[4:].count("pass")
        print(
            f"{name:12} {seconds:7.1f} {at(0.5):15.1f} {at(0.99):7.1f} {at(1):7.1f} {passed:5}/9  {statuses[3]}",
            flush=True,
        )


main()
