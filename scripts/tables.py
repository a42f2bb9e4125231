#!/usr/bin/env python3
"""Makes the results that need no model except the embedded one: the files docs/results/TABLE.csv, and the rows of README.md and docs/
that show them.

    scripts/get-repositories.sh repositories
    cargo build --release
    scripts/tables.py repositories                        # all of them: half an hour, on two cores
    scripts/tables.py repositories corpora retrievers     # some of them
    scripts/tables.py repositories corpora --check        # exit status 1 if a row differs from README.md or docs/
    scripts/tables.py repositories corpora --write        # writes the rows and the digests of the tasks

Prints each table in Markdown, after the SHA-256 digests of its task files (docs/results/task-files.csv). Tasks and caches are kept
in REPOSITORIES/.tables. Table `commits` needs clones of Git repositories: REPOSITORIES/git/click.git and so on, at the commits in
docs/results/clones.csv.
"""

import argparse
import csv
import hashlib
import io
import json
import re
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
        # 1: some records are left out; the program has named them.
        if done.returncode > 1:
            sys.exit(f"{' '.join(words)}\n{done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--format", "json"))

    def group(self, name):
        folder = self.repositories / name
        if not folder.is_dir():
            way = "clone it (docs/results/clones.csv has the commit)" if name in COMMITS else f"scripts/get-repositories.sh {self.repositories} {name}"
            sys.exit(f"error: {folder} is missing: {way}")
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


def by_repository(bench, tasks):
    modes = {one["predictions"]: one["repositories"] for one in bench.json("eval", *tasks, "--metrics", "repocoder")}
    for name in modes["none"]:
        yield [f"line: {name}", str(modes["none"][name]["n"]), *(pair(modes[mode][name]["repocoder"]) for mode in MODES)]


def evaluate(bench):
    """The row of one small repository, which table `corpora` has, too."""
    yield ["tasks", "n", *(f"{mode} EM / ES" for mode in MODES)]
    tasks = bench.sample("evaluate-line", "corpora", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw", "--repo", "evaluate")
    bench.run("run", *tasks)
    yield from by_repository(bench, tasks)


def corpora(bench):
    yield ["tasks", "n", *(f"{mode} EM / ES" for mode in MODES)]
    tasks = {}
    for kind in ["line", "api"]:
        tasks[kind] = bench.sample(f"real-{kind}", "corpora", kind, "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
        rows = {row["mode"]: row for row in bench.json("run", *tasks[kind])}
        yield [kind if kind == "line" else "API", f"{rows['none']['n']:,}", *(pair(rows[mode]) for mode in MODES)]
    yield from by_repository(bench, tasks["line"])


def copies(bench):
    """Number of targets of the line tasks that are among the retrieved lines word for word, and differences of the modes."""
    tasks = bench.sample("real-line", "corpora", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
    bench.run("run", *tasks, "--quiet")
    yield ["mode", "targets among the retrieved lines", "EM there", "EM elsewhere", "targets that rg1 lacks", "targets that rg1 alone has",
           "ES better than rg1", "the same", "worse"]
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
        versus = [""] * 5
        if mode != "rg1":
            [measure] = bench.json("compare", "rg1", mode, *tasks, "--measure", "repocoder.es")["measures"]
            versus = [len(found[mode] - found["rg1"]), len(found["rg1"] - found[mode]), *(measure[name] for name in ("better", "same", "worse"))]
            versus = [f"{count:,}" for count in versus]
        yield [mode, f"{percent(len(found[mode]) / len(prompts), 1)} %", *(percent(sum(values) / len(values), 0) for values in (sums[True], sums[False])), *versus]


def five_repositories(bench):
    return bench.sample("lines", "repoeval", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")


def cuts(bench):
    yield ["cut", *(f"{mode} EM / ES" for mode in MODES), "tokens/prompt (rg1)"]
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
    yield ["ranker", "align", "API: EM / ES", "API: ES gain", "lines: EM / ES", "lines: ES gain"]
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
        yield ["language", "tasks", "none: EM / ES", "jaccard, last-n-lines", LINE_RECIPROCAL, "definitions", "rrf:definitions,…"]
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


def sweep(bench, *flags):
    """The rows of the summary that `policy sweep` prints in parts, by policy: cells from AUC on."""
    rows = {}
    for line in bench.run("policy", "sweep", *flags).splitlines():
        name, *cells = re.split(r" {2,}", line.strip())
        if cells and name != "policy":
            rows.setdefault(name, []).extend("" if cell == "-" else cell for cell in cells)
    return rows


def policies(bench):
    tasks = bench.sample("real-line", "corpora", "line", "--per-repo", 200, "--seed", 0, "--data-tables", "draw")
    more = bench.sample("more-line", "corpora", "line", "--per-repo", 1000, "--seed", 7, "--data-tables", "draw")
    rows = sweep(bench, "--labels", labels(bench, "real-line", tasks), "--train-labels", labels(bench, "more-line", more),
                 "--retrieval-ms", "sparse=200", "--retrieval-ms", "dense=1500", "--generation-ms", 500)
    yield ["policy", "AUC", "calibration error", "ES at 20 %", "ES at 50 %", "ES, chosen elsewhere", "retrieves for", "as good as always at",
           "saves, sparse / dense"]
    for name in ["never", "always", "oracle"]:
        print(f"{name}: {rows[name][11]}")
    table = [[name, *rows[name][:5], f"{rows[name][6]} %", f"{rows[name][-3]} %", f"{rows[name][-2]} / {rows[name][-1]} %"]
             for name in ["random", "trial-generation", "learned", "trial-retrieval", "learned-scored"]]
    yield from bold(table, 1, 3, 4, 5)


def likelihood(bench):
    """Policies that learned from labels by edit similarity, and by the likelihood of the target."""
    flags = [*PAPER, "--ranker", LINE_RECIPROCAL]
    ways = {"es": "ES", "by-likelihood": "likelihood"}
    for group in ["held", "repoeval"]:
        tasks = bench.sample(f"{group}-seed-3", group, "line", "--per-repo", 200, "--seed", 3, "--data-tables", "draw")
        bench.run("run", *tasks, *flags, *LEFT_RIGHT, "--mode", "none,rg1", "--quiet")
        for mode, query in [("none", []), ("rg1", LEFT_RIGHT)]:
            made = [*tasks, *flags, "--mode", mode, *query, "--quiet"]
            bench.run("prompt", *made, "-o", f"{group}-{mode}-prompts.jsonl")
            bench.run("complete", *made, "-o", f"{group}-{mode}-es.jsonl")
            bench.run("complete", *made, "--likelihood", "-o", f"{group}-{mode}-by-likelihood.jsonl")
        for way, metric in [("es", "repoformer"), ("by-likelihood", "likelihood")]:
            bench.run("label", "judge", "--instances", tasks[-1], "--prompts", f"{group}-rg1-prompts.jsonl", "--base", f"{group}-none-{way}.jsonl", "--rag",
                      f"{group}-rg1-{way}.jsonl", "--metric", metric, "-o", f"{group}-{way}.jsonl", "--quiet")
        pairs = list(zip(gain(bench.work / f"{group}-es.jsonl", "es"), gain(bench.work / f"{group}-by-likelihood.jsonl", "likelihood")))
        differ = [(es, likely) for es, likely in pairs if es]
        agree = sum((es > 0) == (likely > 0) for es, likely in differ) / len(differ)
        print(f"{group}: ES the same for {len(pairs) - len(differ)} of {len(pairs)}, the likelihood for {sum(not likely for _, likely in pairs)}; "
              f"they agree for {agree:.0%} of the others")
    yield ["policy", "learned from", "AUC", "ES at 20 %", "ES at 50 %", "ES, chosen elsewhere", "retrieves for", "as good as always at"]
    rows = []
    for policy in ["learned", "learned-scored"]:
        for way, name in ways.items():
            model = f"{policy}-{way}.json"
            bench.run("policy", "train", "--labels", f"held-{way}.jsonl", "--policy", policy, "-o", model)
            swept = sweep(bench, "--labels", "repoeval-es.jsonl", "--policy", f"never,always,oracle,{policy}", "--model", model)
            [cells] = [cells for key, cells in swept.items() if key.startswith("learned")]
            rows.append([policy, name, cells[0], *cells[2:5], f"{cells[6]} %", f"{cells[-1]} %"])
    print("never, always, oracle:", *(swept[name][9] for name in ("never", "always", "oracle")))
    yield from bold(rows, 2, 3, 4, 5)


def gain(file, metric):
    with open(file, encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            yield record[f"{metric}_rg1"] - record[f"{metric}_infile"]


STRATA = ["file", "import", "repository", "nowhere"]
COMMITS = [f"git/{name}.git" for name in ("click", "httpx", "rich", "pytest", "pydantic")]


def commit_tasks(bench):
    """Lines that commits added, all of them and by stratum."""
    file, folder = bench.work / "commits-line.jsonl", bench.work / "trees"
    if not file.exists():
        histories = [flag for name in COMMITS for flag in ("--from-commits", bench.group(name))]
        bench.run("sample", *histories, "--since", "2024-01-01", "--trees", folder, "--kind", "line", "--per-repo", 150, "-o", file.name, "--quiet")
    bench.note(file)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    for stratum in STRATA:
        part = [line for line in lines if json.loads(line)["metadata"]["commit"]["stratum"] == stratum]
        (bench.work / f"{stratum}.jsonl").write_text("".join(part), encoding="utf-8")
    return folder, {"all": file.name, **{stratum: f"{stratum}.jsonl" for stratum in STRATA}}


def scored(bench, folder, file):
    """EM and ES of a file of tasks, by mode, and the share of the targets among ten fragments of `jaccard`, word for word."""
    flags = [*PAPER, "--repos-dir", folder, "--tasks", file]
    rows = {row["mode"]: row for row in bench.json("run", *flags, "--policy", "oracle")}
    [one] = bench.json("eval", "--retrieval", *flags, "--queries", "left-right", "--rankers", "jaccard")
    return rows, percent(one["all"]["verbatim"]["mean"])


def commits(bench):
    yield ["stratum", "tasks", "ES none", "ES rg1", "ES gt", "ES oracle", "jaccard", LINE_RECIPROCAL, "definitions", "rrf:definitions,…"]
    folder, files = commit_tasks(bench)
    for name, file in files.items():
        rows, _ = scored(bench, folder, file)
        row = [name, str(rows["none"]["n"]), *(percent(rows[mode]["es"]) for mode in ("none", "rg1", "gt", "oracle"))]
        for ranker in ["jaccard", LINE_RECIPROCAL, "definitions", RRF]:
            flags = [*PAPER, "--repos-dir", folder, "--tasks", file, "--queries", "left-right", "--rankers", ranker]
            row.append(percent(bench.json("eval", "--retrieval", *flags)[0]["all"]["id_recall"]["mean"]))
        yield bold_in_row(bold_in_row(row, range(2, 5)), range(6, 10))


def heads(bench):
    """Lines of commits, and random lines of the same repositories."""
    yield ["lines", "EM none", "EM rg1", "ES none", "ES rg1", "ES oracle", "target among ten fragments word for word (jaccard)"]
    trees, files = commit_tasks(bench)
    for name in COMMITS:
        to = bench.work / "heads" / Path(name).stem
        if not to.exists():
            to.mkdir(parents=True)
            archive = subprocess.run(["git", "-C", bench.group(name), "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
            subprocess.run(["tar", "-x", "-C", to], input=archive, check=True)
    file = bench.work / "heads-line.jsonl"
    if not file.exists():
        bench.run("sample", "--kind", "line", "--per-repo", 112, "--repos-dir", "heads", "-o", file.name, "--quiet")
    bench.note(file)
    for label, folder, name in [("of commits", trees, files["all"]), ("random", "heads", file.name)]:
        rows, verbatim = scored(bench, folder, name)
        yield [label, *(percent(rows[mode][score]) for score in ("em", "es") for mode in ("none", "rg1")), percent(rows["oracle"]["es"]), verbatim]


def instances(bench):
    """Labels of the instances that `label sample` draws from RepoEval's repositories, by the embedded model."""
    yield ["instances", "n", "retrieval helps", "changes nothing", "hurts", "AUC of `learned-scored`"]
    for kind in ["chunk", "function"]:
        file = bench.work / f"instances-{kind}.jsonl"
        if not file.exists():
            bench.run("label", "sample", "--repos-dir", bench.group("repoeval"), "--kind", kind, "-o", file.name, "--quiet")
        bench.note(file)
        flags = [*PAPER, "--tasks", file.name, "--quiet"]
        bench.run("prompt", *flags, "--mode", "none,given")
        for mode in ["none", "given"]:
            bench.run("complete", *flags, "--mode", mode, "-o", f"instances-{kind}-{mode}.jsonl")
        name = f"instances-{kind}-labels.jsonl"
        bench.run("label", "judge", "--instances", file.name, "--base", f"instances-{kind}-none.jsonl", "--rag", f"instances-{kind}-given.jsonl",
                  "-o", name, "--quiet")
        gains = list(gain(bench.work / name, "es"))
        shares = [sum(map(test, gains)) / len(gains) for test in (lambda one: one > 0, lambda one: one == 0, lambda one: one < 0)]
        auc = sweep(bench, "--labels", name, "--policy", "never,learned-scored")["learned-scored"][0]
        yield [f"{kind}s", f"{len(gains):,}", *(f"{percent(share, 1)} %" for share in shares), auc]


TABLES = {
    "demonstration": demonstration, "evaluate": evaluate, "corpora": corpora, "copies": copies, "cuts": cuts, "retrievers": retrievers, "definitions": definitions,
    "aligned": aligned, "typescript": language("typescript", "typescript", "TypeScript"), "java": language("java", "java", "Java"),
    "csharp": language("csharp", "csharp", "C#"), "javascript": javascript, "policies": policies, "likelihood": likelihood, "instances": instances,
    "commits": commits, "heads": heads,
}

# The files of tables that have one together, without `.csv`.
FILES = {"evaluate": "corpora", "typescript": "languages", "java": "languages", "csharp": "languages"}

# The pages that show rows of tables.
PAGES = {"instances": "when-to-retrieve.md", **dict.fromkeys([
    "evaluate", "corpora", "cuts", "retrievers", "aligned", "typescript", "java", "csharp", "commits", "policies", "likelihood",
], "results.md")}
# Ends of the names of columns for a cell's numbers: one; a score and the percentage at which it is; a mean and its interval.
ENDS = [[], [""], ["", ": at (%)"], ["", ": low", ": high"]]

# Rows of README.md that have the numbers of a table's rows, by these names.
README_ROWS = {
    "demonstration": {"demonstration: lines, embedded model": "bundled tasks: lines"},
    "corpora": {"line": "seven repositories: lines", "API": "seven repositories: API calls"},
    "policies": {"learned-scored": "seven repositories: lines"},
}
README_HEAD = ["tasks", "n", *(f"{mode} EM / ES" for mode in MODES), "policy: ES, retrieval rate"]
DIGESTS = ["task file", "sha256"]


class Document:
    """A page with tables, or a CSV file with one."""

    def __init__(self, path):
        self.path, self.is_csv = path, path.suffix == ".csv"
        self.lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def update(self, head, rows):
        """Puts rows into the table with this head, each in place of the row with the same names, and returns the changed ones. A page
        may show some of the rows."""
        begin, end = 0, len(self.lines)
        if self.is_csv:
            rows = plain(head, rows)
        else:
            if line_of(head) not in self.lines:
                sys.exit(f"error: {self.path} lacks the table {line_of(head)}")
            begin = self.lines.index(line_of(head)) + 2
            end = next((at for at in range(begin, end) if not self.lines[at].startswith("|")), end)
        places = {name_of(self.cells(self.lines[at])): at for at in range(begin, end)}
        changed = []
        for cells in rows:
            line, at = (csv_line if self.is_csv else line_of)(cells), places.get(name_of(cells))
            if at is None and self.is_csv:
                at = len(self.lines)
                self.lines.append("")
            if at is not None and self.lines[at] != line:
                self.lines[at] = line
                changed.append(line)
        return changed

    def cells(self, line):
        return next(csv.reader([line])) if self.is_csv else [cell.strip() for cell in line.strip("|").split("|")]

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def line_of(cells):
    return re.sub(r"(?<=\|)  (?=\|)", " ", f"| {' | '.join(cells)} |")


def csv_line(cells):
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def plain(head, rows):
    """The head and the rows of a table for a CSV file: one number in each cell, without marks."""
    columns = []
    for name, cells in zip(head, zip(*rows)):
        name, *cells = (re.sub("[*`]", "", cell) for cell in (name, *cells))
        parts = [re.findall(r"-?[\d.]+", cell.replace(",", "")) if re.fullmatch(r"[-\d.,%/()[\] ]+", cell) else [cell] for cell in cells]
        first, _, second = name.partition(" / ")
        count = max(map(len, parts))
        names = [first, f"{first.rpartition(' ')[0]} {second}"] if second else [name + end for end in ENDS[count]]
        unit = " (%)" if any(cell.endswith(" %") for cell in cells) else ""
        columns += [[f"{names[at]}{unit}", *(one[at] if at < len(one) else "" for one in parts)] for at in range(count)]
    return [list(row) for row in zip(*columns)]


def name_of(cells):
    """The cells that name a row: at most two, before the first number or digest."""
    return tuple(cells[:1] + [cell for cell in cells[1:2] if not re.match(r"[-*\d`]|$|[\da-f]{64}", cell)])


def readme_rows(path, name, rows):
    """Rows of README.md with the numbers of a table's rows."""
    for row in rows:
        if label := README_ROWS.get(name, {}).get(row[0]):
            line = next(line for line in Document(path).lines if line.startswith(f"| {label} |"))
            _, n, *scores, policy = (cell.strip() for cell in line[1:-1].split("|"))
            if name == "policies":
                policy = f"{row[5].strip('*')}, {row[6]}"
            else:
                n, *scores = row[1:]
            yield [label, n, *scores, policy]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--program", type=Path, default=HERE.parent / "target/release/repoformer")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--check", action="store_true", help="fail if a row or a digest differs from README.md and docs/")
    ends.add_argument("--write", action="store_true", help="write rows and digests into README.md and docs/")
    given = parser.parse_intermixed_args()
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"unknown table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    bench = Bench(given.repositories.resolve(), given.program.resolve())
    root = HERE.parent
    differ = []
    for name in given.tables or TABLES:
        bench.digests = {}
        head, *rows = TABLES[name](bench)
        digests = [[f"`{file}`", f"`{digest}`"] for file, digest in bench.digests.items()]
        print(f"\n{name}\n", *map(line_of, digests), "", line_of(head), "|" + "---|" * len(head), *map(line_of, rows), sep="\n", flush=True)
        parts = [("README.md", README_HEAD, list(readme_rows(root / "README.md", name, rows)))]
        if name != "demonstration":
            parts += [("docs/results/task-files.csv", DIGESTS, digests), (f"docs/results/{FILES.get(name, name)}.csv", head, rows)]
        if name in PAGES:
            parts.append((f"docs/{PAGES[name]}", head, rows))
        for path, *table in parts:
            document = Document(root / path)
            differ += document.update(*table)
            if given.write:
                document.write()
    if given.check:
        print("", f"{len(differ)} rows and digests differ from README.md and docs/", *differ, sep="\n")
        sys.exit(bool(differ))


if __name__ == "__main__":
    main()
