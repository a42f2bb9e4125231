#!/usr/bin/env python3
"""Compares the definitions that API tasks name with those of another tool.

    pip install jedi==0.19.2
    benches/definitions.py repos [--program target/release/repoformer] [--names 500]

    npm install typescript@5.6.3                         # `npm pack` fetches packages, each for a folder in repos
    benches/definitions.py repos --language typescript   # or javascript

Python's calls are followed by jedi, TypeScript's and JavaScript's by TypeScript's compiler.

Precision: of calls whose definitions the program names and the other tool finds too, how many agree. Recall: of calls that the
other tool follows into another file of the repository, how many the program finds there. A call counts once for each text.
"""

import argparse
import ast
import json
import random
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

SEED = 0


class Call(NamedTuple):
    """A call; lines are 0-based, and the column that of a character of the name that is called."""

    own: str
    first_line: int
    last_line: int
    line: int
    column: int
    name: str


class Jedi:
    """Calls of Python files, and where jedi goes to from them."""

    def __init__(self, root, _language):
        import jedi

        self.jedi, self.root, self.scripts = jedi, root, {}

    def calls(self):
        for path in sorted(self.root.rglob("*.py")):
            try:
                text = path.read_text(encoding="utf-8")
                tree = ast.parse(text)
            except (UnicodeDecodeError, SyntaxError, ValueError):
                continue
            lines = text.split("\n")
            for node in ast.walk(tree):
                callee = node.func if isinstance(node, ast.Call) else None
                if isinstance(callee, (ast.Name, ast.Attribute)):
                    name = callee.id if isinstance(callee, ast.Name) else callee.attr
                    line = callee.end_lineno - 1
                    # Columns in the tree count bytes.
                    column = len(lines[line].encode()[: callee.end_col_offset].decode(errors="ignore")) - 1
                    yield Call(str(path.relative_to(self.root)), node.lineno - 1, node.end_lineno - 1, line, column, name)

    def places(self, call):
        """Files and lines within the folder; none where it finds nothing."""
        if call.own not in self.scripts:
            project = self.jedi.Project(self.root / Path(call.own).parts[0], added_sys_path=[str(self.root)])
            self.scripts[call.own] = self.jedi.Script(path=self.root / call.own, project=project)
        try:
            names = self.scripts[call.own].goto(call.line + 1, call.column, follow_imports=True)
        except Exception:  # jedi fails on some code
            return set()
        places = [(name.module_path, name.line) for name in names if name.module_path and name.line]
        return {(str(path.relative_to(self.root)), line - 1) for path, line in places if path.is_relative_to(self.root)}


class TypeScript:
    """Calls of TypeScript's or JavaScript's files, and where TypeScript's compiler finds what they call."""

    def __init__(self, root, language):
        command = ["node", Path(__file__).with_suffix(".js"), language, root]
        self.compiler = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def calls(self):
        while (line := self.compiler.stdout.readline()).strip():
            yield Call(*json.loads(line))
        if not line:
            raise SystemExit("node ended before it had read all files: its message says why")

    def places(self, call):
        self.compiler.stdin.write(json.dumps(call) + "\n")
        self.compiler.stdin.flush()
        return {tuple(place) for place in json.loads(self.compiler.stdout.readline())}


JUDGES = {"python": Jedi, "typescript": TypeScript, "javascript": TypeScript}


def tasks_of(program, language, repos):
    """All API tasks of the repositories; several seeds, as equal lines are drawn once."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(3):
            path = Path(folder) / f"{seed}.jsonl"
            sample = ["sample", "--kind", "api", "--per-repo", "1000000", "--repos-dir", repos, "--seed", str(seed)]
            subprocess.run([program, *sample, "--language", language, "-o", path, "--quiet"], check=True)
            for line in path.read_text(encoding="utf-8").splitlines():
                task = json.loads(line)["metadata"]
                found["/".join(task["fpath_tuple"]), task["line_no"]] = task
    return found


def names(line, name):
    """Whether a line defines a name."""
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", line.partition("=")[0]) is not None


def main():
    parser = argparse.ArgumentParser(description="Compares definitions of API tasks with another tool's.")
    parser.add_argument("repos", type=Path)
    parser.add_argument("--language", choices=JUDGES, default="python")
    parser.add_argument("--program", default="target/release/repoformer")
    parser.add_argument("--names", type=int, default=500, help="calls to compare for each figure [%(default)s]")
    args = parser.parse_args()
    root = args.repos.resolve()
    tasks = tasks_of(args.program, args.language, root)
    by_text = {}
    for (own, _), task in tasks.items():
        by_text.setdefault((own, task["ground_truth"].strip()), []).append(task)
    judge = JUDGES[args.language](root, args.language)
    calls = list(judge.calls())
    random.Random(SEED).shuffle(calls)
    texts, seen = {}, set()
    agreed = named = found = wanted = unknown = 0
    wrong, missed = [], []
    for call in calls:
        if named >= args.names and wanted >= args.names:
            break
        own = call.own
        if own not in texts:
            texts[own] = (root / own).read_text(encoding="utf-8", errors="replace").split("\n")
        text = texts[own]
        # TypeScript also ends lines at U+2028.
        if call.last_line >= len(text):
            continue
        key = own, call.name, text[call.line].strip()
        if key in seen:
            continue
        seen.add(key)
        first = range(call.first_line, max(-1, call.first_line - 10), -1)
        task = next((tasks[own, at] for at in first if (own, at) in tasks), None)
        ours = set()
        if task is not None and call.last_line <= task["line_no"] + task["ground_truth"].count("\n"):
            ours = {(one["path"], one["line"]) for one in task["definitions"] if names(one["text"], call.name)}
        if not ours and wanted >= args.names:
            continue
        places = judge.places(call)
        if not places:
            unknown += bool(ours)
            continue
        others = {place for place in places if place[0] != own and place[0].split("/")[0] == own.split("/")[0]}
        if ours and named < args.names:
            named += 1
            # Both tools report the line of the name.
            agreed += bool(ours & places)
            if not ours & places:
                wrong.append((call, sorted(ours), sorted(places)))
        if others and wanted < args.names:
            is_found = bool(ours & others)
            # Equal lines are drawn only once.
            same = by_text.get((own, "\n".join(text[call.first_line : call.last_line + 1]).strip()), [])
            is_found |= any((one["path"], one["line"]) in others for task in same for one in task["definitions"])
            wanted += 1
            found += is_found
            if not is_found:
                missed.append((call, sorted(others), task is not None))
    print(json.dumps({"precision": agreed / max(named, 1), "of": named, "the other finds nothing": unknown, "recall": found / max(wanted, 1), "of calls": wanted}))
    for name, some in {"wrong": wrong, "missed": missed}.items():
        for one in some[:25]:
            print(name, *one)


if __name__ == "__main__":
    main()
