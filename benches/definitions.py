#!/usr/bin/env python3
"""Compares the definitions that API tasks name with those that jedi goes to, in Python repositories.

    pip install jedi==0.19.2
    benches/definitions.py repos [--program target/release/repoformer] [--names 500]

Precision: of calls whose definitions the program names and jedi finds too, how many agree. Recall: of calls that jedi follows
into another file of the repository, how many the program finds there. A call counts once for each text.
"""

import argparse
import ast
import json
import random
import subprocess
import tempfile
from pathlib import Path

import jedi

SEED = 0


def tasks_of(program, repos):
    """All API tasks of the repositories; several seeds, as equal lines are drawn once."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(3):
            path = Path(folder) / f"{seed}.jsonl"
            sample = ["sample", "--kind", "api", "--per-repo", "1000000", "--repos-dir", repos, "--seed", str(seed)]
            subprocess.run([program, *sample, "-o", path, "--quiet"], check=True)
            for line in path.read_text(encoding="utf-8").splitlines():
                task = json.loads(line)["metadata"]
                found["/".join(task["fpath_tuple"]), task["line_no"]] = task
    return found


def name_of(call):
    """The node whose end is the name that is called."""
    return call.func if isinstance(call.func, (ast.Name, ast.Attribute)) else None


def calls_of(text):
    """Line (1-based), column of the last character, and name of each call."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        name = name_of(node) if isinstance(node, ast.Call) else None
        if name is not None:
            word = name.id if isinstance(name, ast.Name) else name.attr
            # Columns of the tree are in bytes.
            column = len(lines[name.end_lineno - 1].encode()[: name.end_col_offset].decode(errors="ignore"))
            yield node, name.end_lineno, column - 1, word


def places_of(script, line, column, root):
    """Files and lines (0-based) within a folder that jedi goes to."""
    try:
        names = script.goto(line, column, follow_imports=True)
    except Exception:  # jedi fails on some code
        return None
    places = [(name.module_path, name.line) for name in names if name.module_path and name.line]
    return {(str(path.relative_to(root)), line - 1) for path, line in places if path.is_relative_to(root)}


def main():
    parser = argparse.ArgumentParser(description="Compares definitions of API tasks with jedi's.")
    parser.add_argument("repos", type=Path)
    parser.add_argument("--program", default="target/release/repoformer")
    parser.add_argument("--names", type=int, default=500, help="calls to compare for each figure [%(default)s]")
    args = parser.parse_args()
    root = args.repos.resolve()
    tasks = tasks_of(args.program, root)
    by_text = {}
    for (own, _), task in tasks.items():
        by_text.setdefault((own, task["ground_truth"].strip()), []).append(task)
    calls = []
    for path in sorted(root.rglob("*.py")):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        calls += [(path, *call) for call in calls_of(text)]
    random.Random(SEED).shuffle(calls)
    scripts, texts, seen = {}, {}, set()
    agreed = named = found = wanted = unknown = 0
    wrong, missed = [], []
    for path, node, line, column, word in calls:
        if named >= args.names and wanted >= args.names:
            break
        own = str(path.relative_to(root))
        text = texts.setdefault(path, path.read_text(encoding="utf-8").split("\n"))
        key = own, word, text[line - 1].strip()
        if key in seen:
            continue
        seen.add(key)
        task = next((tasks[own, at] for at in range(node.lineno - 1, max(-1, node.lineno - 11), -1) if (own, at) in tasks), None)
        ours = set()
        if task is not None and node.end_lineno <= task["line_no"] + task["ground_truth"].count("\n") + 1:
            said = [one for one in task["definitions"] if one["text"].split("(")[0].split(":")[0].split()[-1] == word]
            ours = {(one["path"], one["line"]) for one in said}
        if path not in scripts:
            repository = root / Path(own).parts[0]
            scripts[path] = jedi.Script(path=path, project=jedi.Project(repository, added_sys_path=[str(root)]))
        if not ours and wanted >= args.names:
            continue
        places = places_of(scripts[path], line, column, root)
        if not places:
            unknown += bool(ours)
            continue
        others = {place for place in places if place[0] != own and place[0].split("/")[0] == own.split("/")[0]}
        if ours and named < args.names:
            named += 1
            # A line of the program is that of `def`; jedi's, too.
            agreed += bool(ours & places)
            if not ours & places:
                wrong.append((own, line, word, sorted(ours), sorted(places)))
        if others and wanted < args.names:
            is_found = bool(ours & others)
            # Equal lines are drawn once.
            same = by_text.get((own, "\n".join(text[node.lineno - 1 : node.end_lineno]).strip()), [])
            is_found |= any((one["path"], one["line"]) in others for task in same for one in task["definitions"])
            wanted += 1
            found += is_found
            if not is_found:
                missed.append((own, line, word, sorted(others), task is not None))
    print(json.dumps({"precision": agreed / max(named, 1), "of": named, "jedi finds nothing": unknown, "recall": found / max(wanted, 1), "of calls": wanted}))
    for name, some in {"wrong": wrong, "missed": missed}.items():
        for one in some[:25]:
            print(name, *one)


if __name__ == "__main__":
    main()
