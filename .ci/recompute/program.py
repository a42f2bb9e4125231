"""Runs the program and reads its files."""

import json
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORIES = PROJECT / "data/repos"
FIXTURES = PROJECT / "tests/fixtures"
TOKENIZERS = FIXTURES / "tokenizers"


def read(path):
    return [json.loads(line) for line in open(path)]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class Program:
    """The program under test, and the folder for its results."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def __call__(self, *arguments, skips=False):
        done = subprocess.run([self.binary, *map(str, arguments), "--quiet"], cwd=PROJECT, capture_output=True, text=True)
        if done.returncode not in ((0, 1) if skips else (0,)):
            sys.exit(f"repoformer {' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    def inspect(self, path):
        done = subprocess.run(
            [self.binary, "inspect", path, "--format", "jsonl", "--context"], capture_output=True, text=True, check=True
        )
        return [json.loads(line) for line in done.stdout.split("\n") if line]


def only(folder, pattern):
    [path] = folder.glob(pattern)
    return path
