#!/usr/bin/env python3
"""Makes the tables of README.md and docs/ that need no model but the embedded one.

    scripts/get-repositories.sh repositories
    cargo build --release
    scripts/tables.py repositories                        # all of them: half an hour, on two cores
    scripts/tables.py repositories corpora retrievers     # some of them
    scripts/tables.py repositories typescript --check     # exit status 1 if a row is not in README.md or docs/

Prints each table as it is in the documents, after the SHA-256 digests of its task files. Tasks and caches are kept in
REPOSITORIES/.tables. Table `commits` needs clones of Git repositories: REPOSITORIES/git/click.git and so on, at the commits that
docs/results.md names.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ["none", "rg1", "rg-rg", "gt"]
PAPER = ["--profile", "repoformer-paper"]
LEFT_RIGHT = ["--query", "left-right"]
RRF = "rrf:definitions,bm25-by-line-reciprocal,bm25"
LINE_RECIPROCAL = "bm25-by-line-reciprocal"


class Bench:
    """Runs the program on groups of repositories, in a folder of its own."""

    def __init__(self, repositories, program):
        self.repositories, self.program = repositories, program
        self.work = repositories / ".tables"
        self.work.mkdir(exist_ok=True)
        self.digests = {}

    def run(self, *arguments):
        words = [str(self.program), *map(str, arguments)]
        done = subprocess.run(words, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # 1: some records are left out, and the program has said which.
        if done.returncode > 1:
            sys.exit(f"{' '.join(words)}\n{done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--format", "json"))

    def group(self, name):
        folder = self.repositories / name
        if not folder.is_dir():
            sys.exit(f"error: {folder} is missing; scripts/get-repositories.sh {self.repositories} {name}")
        return folder

    def sample(self, name, group, kind, *flags):
        """Draws tasks, unless they are drawn, and returns the flags that name them."""
        file = self.work / f"{name}.jsonl"
        folder = self.group(group)
        if not file.exists():
            self.run("sample", "--kind", kind, *flags, "--repos-dir", folder, "-o", file.name, "--quiet")
        self.note(file)
        return ["--repos-dir", folder, "--tasks", file.name]

    def note(self, file):
        self.digests[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()

    def records(self, *arguments):
        """The records that a command writes."""
        self.run(*arguments, "--quiet", "-o", "records.jsonl")
        with open(self.work / "records.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def gain(self, measure, *arguments):
        """The difference of a measure, from no retrieval to retrieval, with its interval."""
        measures = self.json("compare", "none", "rg1", *arguments, "--measure", measure)["measures"]
        difference = measures[0]["difference"]
        return interval([100 * difference[name] for name in ("mean", "low", "high")])


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def percent(value, digits=2):
    return number(None if value is None else 100 * value, digits)


def interval(values):
    mean, low, high = map(number, values)
    return f"{mean} [{low}, {high}]"


def pair(row):
    """EM and ES of a row of `run`."""
    return f"{percent(row['em'])} / {percent(row['es'])}"


def bold(rows, *columns):
    """Sets the greatest values of columns in bold."""
    def size(cell):
        try:
            return float(cell.split(" ")[0])
        except ValueError:
            return float("-inf")

    for column in columns:
        best = max(size(row[column]) for row in rows)
        for row in rows:
            if size(row[column]) == best:
                head, blank, tail = row[column].partition(" ")
                row[column] = f"**{head}**{blank}{tail}"
    return rows


def bold_in_row(row, columns):
    cells = [[row[column]] for column in columns]
    bold(cells, 0)
    for column, (cell,) in zip(columns, cells):
        row[column] = cell
    return row


# ---- tables, each with the names of its columns


def demonstration(bench):
    yield ["tasks", "n", *(f"{mode} EM / ES" for mode in MODES)]
    rows = {row["mode"]: row for row in bench.json("run", "--repos-dir", HERE.parent / "data/repos", "--tasks", HERE.parent / "data/tasks/line.jsonl")}
    yield ["demonstration: lines, embedded model", str(rows["none"]["n"]), *(pair(rows[mode]) for mode in MODES)]


def corpora(bench):
    yield ["tasks", "n", *(f"{mode} EM / ES" for mode in MODES)]
    tasks = {}
    for kind in ["line", "api"]:
        tasks[kind] = bench.sample(f"real-{kind}", "corpora", kind, "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
        rows = {row["mode"]: row for row in bench.json("run", *tasks[kind])}
        yield [kind if kind == "line" else "API", f"{rows['none']['n']:,}", *(pair(rows[mode]) for mode in MODES)]
    modes = {one["predictions"]: one["repositories"] for one in bench.json("eval", *tasks["line"], "--metrics", "repocoder")}
    for name in modes["none"]:
        yield [f"line: {name}", str(modes["none"][name]["n"]), *(pair(modes[mode][name]["repocoder"]) for mode in MODES)]


def copies(bench):
    """How many targets of the line tasks stand word for word among the retrieved lines, and what the modes differ in."""
    tasks = bench.sample("real-line", "corpora", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
    bench.run("run", *tasks, "--quiet")
    yield ["mode", "targets among the retrieved lines", "EM there", "EM elsewhere", "other targets than rg1, more and fewer",
           "ES better, the same, worse than rg1"]
    found = {}
    for mode in MODES[1:]:
        prompts = bench.records("prompt", *tasks, "--mode", mode)
        scores = bench.json("eval", *tasks, "--mode", mode, "--metrics", "repocoder", "--per-task")
        [scores] = scores if isinstance(scores, list) else [scores]
        exact = {(task["task_id"]): task["repocoder"]["em"] for task in scores["tasks"]}
        found[mode] = set()
        sums = {True: [], False: []}
        for record in prompts:
            note = record["metadata"]
            cut = note["top_k_context"]
            shown = [one or fragment for one, fragment in zip(note.get("shown_context", cut), cut)]
            shown = [line.strip() for one in shown for line in one["context"].split("\n")]
            hit = note["ground_truth"].strip() in shown
            sums[hit].append(exact[note["task_id"]])
            if hit:
                found[mode].add(note["task_id"])
        versus = ["", ""]
        if mode != "rg1":
            [measure] = bench.json("compare", "rg1", mode, *tasks, "--measure", "repocoder.es")["measures"]
            more, fewer = len(found[mode] - found["rg1"]), len(found["rg1"] - found[mode])
            versus = [f"{more}, {fewer}", f"{measure['better']}, {measure['same']:,}, {measure['worse']}"]
        yield [mode, f"{percent(len(found[mode]) / len(prompts), 1)} %", *(percent(sum(values) / len(values), 0) for values in (sums[True], sums[False])), *versus]


def five_repositories(bench):
    return bench.sample("lines", "repoeval", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")


def cuts(bench):
    yield ["cut", *(f"{mode} EM / ES" for mode in MODES), "tokens a prompt (rg1)"]
    tasks = five_repositories(bench)
    for name, flags in [("chunks (`repoformer-paper`)", [*PAPER, "--policy", "always"]), ("windows (default)", [])]:
        rows = {row["mode"]: row for row in bench.json("run", *tasks, *flags, "--mode", ",".join(MODES), "--metrics", "repocoder")}
        yield [name, *(pair(rows[mode]) for mode in MODES), f"{rows['rg1']['prompt_tokens']:,.0f}"]


def retrieval_row(one, columns):
    return [percent(one["all"][column]["mean"]) if column in one["all"] else "" for column in columns]


COLUMNS = ["id_recall", "new_id_recall", "api_recall", "definition_recall", "verbatim", "es", "gt_recall@10"]


def retrievers(bench):
    columns = [column for column in COLUMNS if column != "definition_recall"]
    yield ["ranker", "query", "identifiers", "new ones", "API names", "verbatim", "best ES", "gt@10"]
    tasks = five_repositories(bench)
    rows = []
    for ranker in ["jaccard", "bm25", LINE_RECIPROCAL, "tf-idf", "weighted-ngram", "rrf:jaccard,bm25"]:
        for query in ["last-n-lines", "left-right"]:
            [one] = bench.json("eval", "--retrieval", *PAPER, *tasks, "--rankers", ranker, "--queries", query)
            rows.append([ranker, query, *retrieval_row(one, columns)])
    yield from bold(rows, 2, 3, 4, 5, 6)


def definitions(bench):
    rankers = [LINE_RECIPROCAL, f"rrf:{LINE_RECIPROCAL},bm25", f"graph:{LINE_RECIPROCAL}", "definitions", RRF, f"graph:{RRF}"]
    yield ["tasks", "ranker", "identifiers", "new ones", "API names", "definitions", "verbatim", "best ES", "gt@10"]
    for kind, name in [("api", "API"), ("line", "lines")]:
        tasks = packages(bench, kind)
        rows = []
        for ranker in rankers:
            [one] = bench.json("eval", "--retrieval", *PAPER, *tasks, "--rankers", ranker, "--queries", "left-right")
            rows.append([name, ranker, *retrieval_row(one, COLUMNS)])
            if kind == "line":
                rows[-1][5] = ""
        yield from bold(rows, 2, 3, 4, *([5] if kind == "api" else []), 6, 7)


def packages(bench, kind):
    return bench.sample(f"packages-{kind}", "packages", kind, "--per-repo", 200, "--seed", 0, "--context-tokens", 1000)


def aligned(bench):
    """The embedded model, with definitions shown in several ways."""
    yield ["ranker", "align", "API: EM / ES", "ES, less none", "lines: EM / ES", "ES, less none"]
    ways = [("jaccard", "none"), (LINE_RECIPROCAL, "none"), *((ranker, align) for ranker in ("definitions", RRF) for align in ("none", "enclosing", "signature"))]
    cells = {way: [] for way in [("(none)", ""), *ways]}
    for kind in ["api", "line"]:
        tasks = packages(bench, kind)
        for ranker, align in ways:
            flags = [*PAPER, *tasks, *LEFT_RIGHT, "--ranker", ranker, "--align", align]
            none, rg1 = bench.json("run", *flags, "--mode", "none,rg1", "--policy", "always")[:2]
            if len(cells["(none)", ""]) == 2 * (kind == "line"):
                cells["(none)", ""] += [pair(none), ""]
            cells[ranker, align] += [pair(rg1), bench.gain("repoformer.es", *flags)]
    yield from ([*way, *cells[way]] for way in cells)


def language(name, group, label):
    def table(bench):
        ways = [("jaccard", "last-n-lines"), (LINE_RECIPROCAL, "left-right"), ("definitions", "left-right"), (RRF, "left-right")]
        yield ["language", "tasks", "none: EM / ES", *(f"{ranker.split(',')[0]}" for ranker, _ in ways)]
        for kind, title in [("api", "API"), ("line", "lines")]:
            tasks = bench.sample(f"{group}-{kind}", group, kind, "--language", name, "--per-repo", 200, "--seed", 0, "--context-tokens", 1000)
            row = [label, title, ""]
            for ranker, query in ways:
                flags = ["--language", name, *PAPER, *tasks, "--query", query, "--ranker", ranker]
                none = bench.json("run", *flags, "--mode", "none,rg1", "--policy", "always")[0]
                row[2] = pair(none)
                row.append(bench.gain("repoformer.es", *flags))
            yield bold_in_row(row, range(3, 7))

    return table


def javascript(bench):
    yield ["tasks", "ranker", "identifiers", "new ones", "API names", "definitions", "best ES"]
    for kind, name in [("line", "lines"), ("api", "API")]:
        tasks = bench.sample(f"javascript-{kind}", "javascript", kind, "--language", "javascript", "--per-repo", 100, "--seed", 0)
        rows = []
        for ranker in ["jaccard", LINE_RECIPROCAL, RRF]:
            [one] = bench.json("eval", "--retrieval", "--unit", "chunks", *tasks, "--rankers", ranker, "--queries", "left-right")
            rows.append([name, ranker, *retrieval_row(one, COLUMNS[:4] + ["es"])])
            if kind == "line":
                rows[-1][5] = ""
        yield from bold(rows, 2, 3, 4, *([5] if kind == "api" else []), 6)


def labels(bench, name, tasks, *flags):
    """Labels of tasks, by the embedded model."""
    if not (bench.work / f"{name}-labels.jsonl").exists():
        bench.run("run", *tasks, *flags, "--mode", "none,rg1", "--quiet")
        for mode in ["none", "rg1"]:
            bench.run("complete", *tasks, *flags, "--mode", mode, "-o", f"{name}-{mode}.jsonl", "--quiet")
        bench.run("prompt", *tasks, *flags, "--mode", "rg1", "-o", f"{name}-prompts.jsonl", "--quiet")
        bench.run("label", "judge", "--instances", tasks[-1], "--prompts", f"{name}-prompts.jsonl", "--base", f"{name}-none.jsonl", "--rag",
                  f"{name}-rg1.jsonl", "-o", f"{name}-labels.jsonl", "--quiet")
    return f"{name}-labels.jsonl"


def policies(bench):
    tasks = bench.sample("real-line", "corpora", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
    more = bench.sample("more-line", "corpora", "line", "--per-repo", 1000, "--seed", 7, "--data-tables", "draw")
    yield from sweep(bench, "--labels", labels(bench, "real-line", tasks), "--train-labels", labels(bench, "more-line", more),
                     "--retrieval-ms", "sparse=200", "--retrieval-ms", "dense=1500", "--generation-ms", 500)


def sweep(bench, *flags):
    """The summary of `policy sweep`, as it prints it."""
    lines = bench.run("policy", "sweep", *flags, "--format", "tsv").splitlines()
    yield from (line.split("\t") for line in lines)


TABLES = {
    "demonstration": demonstration, "corpora": corpora, "copies": copies, "cuts": cuts, "retrievers": retrievers, "definitions": definitions,
    "aligned": aligned, "typescript": language("typescript", "typescript", "TypeScript"), "java": language("java", "java", "Java"),
    "csharp": language("csharp", "csharp", "C#"), "javascript": javascript, "policies": policies,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--program", type=Path, default=HERE.parent / "target/release/repoformer")
    parser.add_argument("--check", action="store_true", help="fail if a row or a digest is not in README.md or docs/")
    given = parser.parse_intermixed_args()
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"unknown table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    bench = Bench(given.repositories.resolve(), given.program.resolve())
    documents = [path.read_text(encoding="utf-8") for path in [HERE.parent / "README.md", *(HERE.parent / "docs").glob("*.md")]]
    missing = []
    for name in given.tables or TABLES:
        bench.digests = {}
        head, *rows = TABLES[name](bench)
        lines = [f"`{file}` `{digest}`" for file, digest in bench.digests.items()]
        print(f"\n{name}\n", *lines, sep="\n")
        rows = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows]
        print("", f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows, sep="\n", flush=True)
        missing += [line for line in [*lines, *rows] if not any(line in text for text in documents)]
    if given.check:
        print("", f"{len(missing)} rows and digests are not in README.md or docs/", *missing, sep="\n")
        sys.exit(bool(missing))


if __name__ == "__main__":
    main()
