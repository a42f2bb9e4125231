#!/usr/bin/env python3
"""Wall seconds, CPU seconds and peak memory of the commands that large corpora and large benchmarks need, on data that is there.

    cargo build --release
    benches/scale.py group STACK... [--workers 1,2]       # of scripts/synthetic-stack.py; also draws instances, see --draw
    benches/scale.py label INSTANCES TOKENIZER.JSON       # what a data set takes from instances to training sequences
    benches/scale.py evaluate REPOS TASKS                 # each stage from windows to the report
    benches/scale.py model --nodes 1,8,64                 # a data set's cost, from what was measured and what you say of GPUs
    benches/scale.py --folder /dev/shm/scale growth --runs 5 --csv docs/results/growth.csv --svg docs/growth.svg    # each input up to 100 times as large

Each command is a run of the real program, and its memory the largest that the kernel saw (`ru_maxrss`). Of several processes the CPU
seconds are added, and the greatest memory is that of one. Prompts are completed by a server that answers at once, with the prompt's
last line that is not blank; it listens on 127.0.0.1 alone.

`growth` takes its text from Python's standard library, and prints the table of docs/growth.md. Its folder should be in memory, where
no disk makes times longer. `benches/growth.py` counts how instructions grow with hostile input.
"""
import argparse
import asyncio
import csv
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


# Linux gives a process at least the peak memory of the one that it was made from: a small one starts the program.
STARTER = """
import os, sys, time
log, *command = sys.argv[1:]
file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
begin = time.monotonic()
process = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, file, 1), (os.POSIX_SPAWN_DUP2, file, 2)])
_, status, usage = os.wait4(process, 0)
print(begin, time.monotonic(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status))
"""


def start(command, log):
    """A process that starts another, and says what that one took."""
    words = [sys.executable, "-I", "-S", "-c", STARTER, log, *command]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)


def measure(commands, logs):
    """Runs commands at once. Returns what they took together: wall seconds, CPU seconds, bytes of memory; and the exit status."""
    processes = [start(command, log) for command, log in zip(commands, logs)]
    begins, ends, cpu, peaks, statuses = zip(*(map(float, process.communicate()[0].split()) for process in processes))
    return max(ends) - min(begins), sum(cpu), max(peaks), int(max(statuses))


def run(name, commands, folder):
    """Runs commands at once, and prints what they took together."""
    logs = [folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}-{at}.log" for at in range(len(commands))]
    wall, cpu, peak, status = measure(commands, logs)
    last = logs[0].read_text(errors="replace").strip().splitlines()[-1:]
    print(f"{name:24} {wall:8.1f} {cpu:8.1f} {peak / 1e6:9.0f} {status:3}  {''.join(last)[:90]}", flush=True)
    return status


class Answers(asyncio.Protocol):
    """Completions API, with and without streams."""

    def connection_made(self, transport):
        self.transport, self.waiting = transport, b""

    def data_received(self, data):
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"(?i)content-length: *(\d+)", self.waiting[:end])
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.waiting) < whole:
                return
            body, self.waiting = self.waiting[end + 4:whole], self.waiting[whole:]
            self.answer(json.loads(body) if body else {})

    def answer(self, asked):
        lines = [line for line in asked.get("prompt", "")[-2000:].split("\n") if line.strip()]
        choice = {"index": 0, "text": (lines or ["pass"])[-1] + "\n", "finish_reason": "stop"}
        text, kind = json.dumps({"choices": [choice], "data": []}), "application/json"
        if asked.get("stream"):
            text, kind = f"data: {text}\n\ndata: [DONE]\n\n", "text/event-stream"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n"
        self.transport.write((head + text).encode())


def serve():
    """Address of a server in a process of its own, and that process."""
    out, into = os.pipe()
    process = os.fork()
    if process:
        os.close(into)
        return f"http://127.0.0.1:{int(os.read(out, 16))}", process

    async def listen():
        server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
        os.write(into, str(server.sockets[0].getsockname()[1]).encode())
        await server.serve_forever()

    asyncio.run(listen())


def evaluate(options, folder):
    program = options.program
    data = ["--cache-dir", folder / "cache", "--repos-dir", options.repos, "--tasks", options.task_file]
    stages = [(stage, stage, data) for stage in ("window", "vectorize", "search")]
    stages += [(f"prompt {mode}", "prompt", [*data, "--mode", mode]) for mode in ("none", "rg1")]
    address, server = serve()
    model = [*data, "--model", "last-line"]
    asked = [*model, "--endpoint", address, "--concurrency", "16"]
    stages += [(f"complete {mode}", "complete", [*asked, "--mode", mode]) for mode in ("none", "rg1")]
    scores = {mode: folder / f"{mode}.json" for mode in ("none", "rg1")}
    stages += [(f"eval {mode}", "eval", [*model, "--mode", mode, "--per-task", "-o", path]) for mode, path in scores.items()]
    stages += [("eval both, table", "eval", [*model, "--mode", "none,rg1"])]
    stages += [("compare", "compare", [scores["none"], scores["rg1"]])]
    stages += [("report", "report", [*model, "--mode", "none,rg1", "-o", folder / "report"])]
    try:
        for name, command, flags in stages:
            if options.only and name.split()[0] not in options.only.split(","):
                continue
            run(name, [[program, command, *flags]], folder)
    finally:
        os.kill(server, 9)
        os.waitpid(server, 0)
    page = folder / "report/index.html"
    if page.exists():
        print(f"page: {page.stat().st_size / 1e6:.1f} MB")


def label(options, folder):
    program, instances = options.program, options.instances
    data = ["--tasks", instances, "--benchmark", "instances", "--cache-dir", folder / "cache", "--prompt-style", "starcoder"]
    address, server = serve()
    asked = [*data, "--model", "last-line", "--endpoint", address, "--concurrency", "16"]
    base, rag = (folder / f"cache/predictions/instances/{mode}-starcoder-last-line.jsonl" for mode in ("none", "given"))
    try:
        for mode in ("none", "given"):
            run(f"prompt {mode}", [[program, "prompt", "--mode", mode, *data]], folder)
        for mode in ("none", "given"):
            run(f"complete {mode}", [[program, "complete", "--mode", mode, *asked]], folder)
    finally:
        os.kill(server, 9)
        os.waitpid(server, 0)
    judged = ["label", "judge", "--instances", instances, "--base", base, "--rag", rag, "-o", folder / "labels.jsonl"]
    run("label judge", [[program, *judged]], folder)
    sequences = ["--labels", folder / "labels.jsonl", "--tokenizer", options.tokenizer, "-o", folder / "sequences"]
    run("label verbalize", [[program, "label", "verbalize", *sequences]], folder)


def group(options, folder):
    program, draw = options.program, ["label", "sample", "--kind", "chunk", "--max-candidates", "1000"]
    for stack in options.stacks:
        for dedup in options.dedup.split(","):
            grouped = folder / "grouped"
            shutil.rmtree(grouped, ignore_errors=True)
            command = [program, "group", stack / "data", "--dedup", dedup, "--shards", options.shards, "-o", grouped]
            run(f"group {stack.name} {dedup}", [[*command, "--threads", options.threads]], folder)
        if not options.draw:
            continue
        for workers in map(int, options.workers.split(",")):
            shards = [f"{at}/{workers}" for at in range(1, workers + 1)]
            own = [[program, *draw, "--raw", grouped, "--shard", shard, "--threads", "1", "-o", folder / f"drawn-{workers}-{at}.jsonl"]
                   for at, shard in enumerate(shards)]
            run(f"draw {stack.name} {workers}", own, folder)


# Measured: `group` of 18,000 repositories, and `draw` and `label` on the output of `group`.
CPU_MS_A_REPOSITORY = {"group": 6.4}
CPU_MS_AN_INSTANCE = {"label sample": 0.60, "prompt": 0.58, "complete": 2.2, "label judge": 0.29, "label verbalize": 8.7}
KB_A_REPOSITORY = {"shards": 37}
KB_AN_INSTANCE = {"instances": 22.5, "prompts": 16.9, "answers": 14.3, "labels": 22.7, "sequences": 40.2}


def model(options, _):
    repositories, instances = options.repositories, options.instances
    cpu = (sum(CPU_MS_A_REPOSITORY.values()) * repositories + sum(CPU_MS_AN_INSTANCE.values()) * instances) / 3.6e6
    prompt, written = options.prompt_tokens * instances, options.written_tokens * instances
    gpu = (prompt / options.read_speed + written / options.write_speed) / 3600
    disk = (sum(KB_A_REPOSITORY.values()) * repositories + sum(KB_AN_INSTANCE.values()) * instances) / 1e6
    print(f"{repositories:,} repositories, {instances:,} instances: {prompt / 1e6:,.0f} million tokens read and {written / 1e6:,.0f} written")
    print(f"{cpu:.2f} CPU hours, {gpu:.1f} GPU hours, {disk:.0f} GB")
    for nodes in map(int, options.nodes.split(",")):
        cores, gpus = nodes * options.cores, nodes * options.gpus
        print(f"{nodes:3} nodes: {cpu / cores * 60:8.2f} minutes of {cores} cores, {gpu / gpus * 60:8.1f} minutes of {gpus} GPUs")


FACTORS = (1, 3, 10, 30, 100)
# Exponents are those of the larger inputs; starting the program takes much of the time of smaller ones.
FITTED = 10
# In commands, stands for the folder that a run makes.
RUN = "run"


def library(size):
    """Texts of at most `size` lines, each whole functions, classes and what stands between them, of the standard library; again and again."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    own = [path for path in sorted(root.rglob("*.py")) if not {"site-packages", "dist-packages", "test", "tests"} & {*path.relative_to(root).parts}]
    while True:
        parts, lines = [], 0
        for path in own:
            for part in re.split(r"\n\n\n(?=\S)", path.read_text(encoding="utf-8", errors="replace").strip("\n")):
                more = part.count("\n") + 3
                if more > size:
                    continue
                if lines + more > size:
                    yield "\n\n\n".join(parts) + "\n"
                    parts, lines = [], 0
                parts.append(part)
                lines += more


def write_repositories(folder, count, lines, size):
    """Repositories of about `lines` lines, in files of at most `size` lines."""
    texts = library(size)
    for number in range(count):
        written = 0
        for at in itertools.count():
            text = next(texts)
            path = folder / f"repository-{number:04}/part_{at:03}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written += text.count("\n")
            if written >= lines - size / 2:
                break
    return folder


def draw(options, repos, kind, per_repository, path, most=None):
    """Draws tasks, `most` of them at most, into a file."""
    command = [options.program, "sample", "--kind", kind, "--per-repo", per_repository, "--repos-dir", repos, "-o", path, "--quiet"]
    if subprocess.run([str(word) for word in command]).returncode > 1:
        raise SystemExit(f"sample {repos}: failed")
    with open(path, encoding="utf-8") as file:
        tasks = list(itertools.islice(file, most))
    path.write_text("".join(tasks), encoding="utf-8")
    return tasks


def write_predictions(path, tasks, texts):
    ids = (json.loads(task)["metadata"]["task_id"] for task in tasks)
    path.write_text("".join(json.dumps({"task_id": name, "pred": text}) + "\n" for name, text in zip(ids, texts)))
    return path


def stages(options, folder, repos, tasks):
    data = ["--repos-dir", repos, "--tasks", tasks, "--mode", "rg1", "--cache-dir", folder / RUN]
    return [[options.program, stage, *data] for stage in ("window", "vectorize", "search", "prompt")]


def growing_windows(options, folder, factor):
    repos = write_repositories(folder / "repos", 1, 2000 * factor, 1000)
    draw(options, repos, "line", 20, folder / "tasks.jsonl")
    return stages(options, folder, repos, folder / "tasks.jsonl")


def growing_tasks(options, folder, factor):
    repos = write_repositories(folder / "repos", 1, 20_000, 1000)
    draw(options, repos, "line", 50 * factor, folder / "tasks.jsonl")
    return stages(options, folder, repos, folder / "tasks.jsonl")


def growing_repositories(options, folder, factor):
    repos = write_repositories(folder / "repos", 10 * factor, 200, 100)
    draw(options, repos, "line", 1, folder / "tasks.jsonl")
    return stages(options, folder, repos, folder / "tasks.jsonl")


def growing_predictions(options, folder, factor, is_one_body):
    """Bodies of other functions, one after the other: as one body, or as a body of ten lines and the functions below it."""
    repos = write_repositories(folder / "repos", 1, 20_000, 1000)
    drawn = draw(options, repos, "function", 1_000_000, folder / "tasks.jsonl")
    targets = [json.loads(task)["metadata"]["ground_truth"] for task in drawn]
    step, texts = len(drawn) // 20, []
    for at in range(0, 20 * step, step):
        indentation = re.match(r" *", targets[at])[0]
        bodies = (textwrap.indent(textwrap.dedent(targets[(at + more) % len(targets)]), indentation).split("\n") for more in itertools.count(1))
        lines = []
        while len(lines) < 10 * factor:
            if lines and len(lines) >= 10 and not is_one_body:
                lines += ["", f"{indentation[4:]}def function_{len(lines)}(self, *args):"]
            lines += next(bodies)
        texts.append("\n".join(lines) + "\n")
    tasks = drawn[:20 * step:step]
    (folder / "tasks.jsonl").write_text("".join(tasks), encoding="utf-8")
    predictions = write_predictions(folder / "predictions.jsonl", tasks, texts)
    return [[options.program, "eval", "--repos-dir", repos, "--tasks", folder / "tasks.jsonl", "--predictions", predictions]]


def growing_report(options, folder, factor):
    """Without retrieval the line above the hole is predicted again; with it, each second target is found."""
    repos = write_repositories(folder / "repos", 5 * factor, 1000, 1000)
    tasks = draw(options, repos, "line", 250, folder / "tasks.jsonl", 1000 * factor)
    if len(tasks) < 1000 * factor:
        raise SystemExit(f"report: only {len(tasks)} tasks")
    records = [json.loads(task) for task in tasks]
    above = [([line for line in record["prompt"][-2000:].split("\n") if line.strip()] or ["pass"])[-1] for record in records]
    found = [record["metadata"]["ground_truth"] if at % 2 else above[at] for at, record in enumerate(records)]
    files = {name: write_predictions(folder / f"{name}.jsonl", tasks, texts) for name, texts in (("none", above), ("rg1", found))}
    shown = [word for name, path in files.items() for word in ("--predictions", f"{name}={path}")]
    return [[options.program, "report", "--tasks", folder / "tasks.jsonl", *shown, "-o", folder / RUN]]


# For each curve: its base input, what the figure's axis counts, and the commands on a larger input.
GROWTH = {
    "windows": ("one repository of 2,000 lines, 20 line tasks", "2,000 lines", growing_windows),
    "tasks": ("50 line tasks, one repository of 20,000 lines", "50 tasks", growing_tasks),
    "repositories": ("10 repositories of 200 lines, a line task each", "10 repositories", growing_repositories),
    "prediction, one body": ("20 predictions of 10 lines, each one function body", "10 lines", lambda *of: growing_predictions(*of, True)),
    "prediction, functions": ("20 predictions of 10 lines: a body, and from 3 × on, functions below it", "10 lines", lambda *of: growing_predictions(*of, False)),
    "report": ("1,000 line tasks, two prediction files", "1,000 tasks", growing_report),
}


def growth(options, folder):
    folder, rows = folder / "growth", []
    shutil.rmtree(folder, ignore_errors=True)
    for curve, (_, _, inputs) in GROWTH.items():
        if options.only and curve.split(",")[0] not in options.only.split(","):
            continue
        for factor in FACTORS:
            # All files stay until the end: ext4 without a journal is slow to make files where many were just deleted.
            own = folder / f"{re.sub(r'[^a-z]+', '-', curve)}-{factor}"
            own.mkdir(parents=True)
            commands, runs, pages = inputs(options, own, factor), [], []
            for number in range(options.runs):
                made = own / f"{RUN}-{number}"
                took = [measure([[made if word == own / RUN else word for word in command]], [own / "log"]) for command in commands]
                if any(status for *_, status in took):
                    raise SystemExit(f"{curve}, {factor}: {(own / 'log').read_text()}")
                wall, cpu, peak, _ = zip(*took)
                runs.append((sum(wall), sum(cpu), max(peak) / 1e6))
                pages += [page.stat().st_size / 1e6 for page in made.glob("index.html")]
            page = pages[0] if pages else None
            rows.append((curve, factor, *map(min, zip(*runs)), page))
            shown = f"page: {page:.1f} MB" if pages else ""
            print(f"{f'{curve} {factor}':24} {rows[-1][2]:8.2f} {rows[-1][3]:8.2f} {rows[-1][4]:9.0f} {0:3}  {shown}".rstrip(), flush=True)
    shutil.rmtree(folder)
    print("\n| curve | base input | CPU seconds at 1 × | at 100 × | exponent | MB of memory at 1 × | at 100 × | exponent |\n|---|---|---|---|---|---|---|---|")
    for curve, of_curve in by_curve(rows):
        cells = [text for column in (3, 4) for text in (*[significant(row[column]) for row in (of_curve[0], of_curve[-1])], f"{exponent(of_curve, column):.2f}")]
        print(f"| {curve} | {GROWTH[curve][0]} | {' | '.join(cells)} |")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["curve", "base input", "times", "wall s", "CPU s", "peak MB", "page MB"])
            for curve, factor, wall, cpu, peak, page in rows:
                table.writerow([curve, GROWTH[curve][0], factor, f"{wall:.3f}", f"{cpu:.3f}", f"{peak:.1f}", "" if page is None else f"{page:.2f}"])
    if options.svg:
        options.svg.write_text(figure(rows), encoding="utf-8")


def by_curve(rows):
    return [(curve, list(of_curve)) for curve, of_curve in itertools.groupby(rows, key=lambda row: row[0])]


def significant(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def exponent(rows, column):
    """Slope of the line of least squares through the logarithms."""
    points = [(math.log(row[1]), math.log(row[column])) for row in rows if row[1] >= FITTED]
    x, y = (sum(values) / len(points) for values in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


STYLE = """
  text { font: 12px sans-serif; fill: #1f2328 } .back { fill: #fff } .name { font-weight: bold }
  .grid { stroke: #d8dee4 } .equal { stroke: #818b98; stroke-dasharray: 2 3; fill: none }
  .cpu { stroke: #0757b3; fill: #0757b3 } .wall { stroke: #b04a00; fill: #b04a00 } .memory { stroke: #1a7f37; fill: #1a7f37 }
  polyline { fill: none !important; stroke-width: 2 } .wall { stroke-dasharray: 6 3 } circle { stroke: none !important }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .back { fill: #0d1117 } .grid { stroke: #30363d } .equal { stroke: #8b949e }
    .cpu { stroke: #6cb0ff; fill: #6cb0ff } .wall { stroke: #ffa657; fill: #ffa657 } .memory { stroke: #56d364; fill: #56d364 }
  }
"""
PANEL_WIDTH, PANEL_HEIGHT, GAP, LEFT = 180, 110, 20, 64


def figure(rows):
    """A column of two panels for each curve, three columns beside one another; all panels of a measure have one scale."""
    curves, out = by_curve(rows), []
    height = 30 + -(-len(curves) // 3) * (2 * PANEL_HEIGHT + GAP + 80)
    out.append(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 750 {height}" width="750" height="{height}" role="img">')
    out.append(f"<title>Time and memory by size of the input, on logarithmic axes</title>\n<style>{STYLE}</style>")
    out.append('<rect class="back" width="100%" height="100%"/>')
    for x, name, label in ((64, "cpu", "CPU seconds"), (194, "wall", "wall seconds"), (330, "memory", "peak memory"), (460, "equal", "proportional to the input")):
        out.append(f'<polyline class="{name}" points="{x},16 {x + 26},16"/><text x="{x + 32}" y="20">{label}</text>')
    for at, (curve, of_curve) in enumerate(curves):
        left, top = LEFT + at % 3 * 246, 30 + at // 3 * (2 * PANEL_HEIGHT + GAP + 80)
        out.append(f'<text class="name" x="{left}" y="{top + 18}">{curve}</text>')
        for part, columns in enumerate((((2, "wall"), (3, "cpu")), ((4, "memory"),))):
            above = top + 28 + part * (PANEL_HEIGHT + GAP)
            scale = [row[column] for row in rows for column, _ in columns]
            panel(out, of_curve, columns, left, above, (math.floor(math.log10(min(scale))), math.ceil(math.log10(max(scale)))))
            out.append(f'<text transform="translate({left - 50} {above + PANEL_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{("seconds", "MB")[part]}</text>')
        below = top + 28 + 2 * PANEL_HEIGHT + GAP
        out += [f'<text x="{left + math.log10(factor) / 2 * PANEL_WIDTH:.1f}" y="{below + 16}" text-anchor="middle">{factor}</text>' for factor in FACTORS]
        out.append(f'<text x="{left + PANEL_WIDTH / 2}" y="{below + 34}" text-anchor="middle">× {GROWTH[curve][1]}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def panel(out, rows, columns, left, top, decades):
    x = lambda factor: left + math.log10(factor) / 2 * PANEL_WIDTH
    y = lambda value: top + (decades[1] - math.log10(value)) / (decades[1] - decades[0]) * PANEL_HEIGHT
    for factor in FACTORS:
        out.append(f'<path class="grid" d="M{x(factor):.1f} {top}v{PANEL_HEIGHT}"/>')
    for decade in range(decades[0], decades[1] + 1):
        out.append(f'<path class="grid" d="M{left} {y(10 ** decade):.1f}h{PANEL_WIDTH}"/>')
        out.append(f'<text x="{left - 6}" y="{y(10 ** decade) + 4:.1f}" text-anchor="end">{10 ** decade:,g}</text>')
    # Through the last point, as far as the panel reaches.
    last, low = rows[-1][columns[-1][0]], 10 ** decades[0]
    begin = max(1, 100 * low / last)
    out.append(f'<polyline class="equal" points="{x(begin):.1f},{y(last * begin / 100):.1f} {x(100):.1f},{y(last):.1f}"/>')
    for column, name in columns:
        points = [(x(row[1]), y(row[column])) for row in rows]
        out.append(f'<polyline class="{name}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
        out += [f'<circle class="{name}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in points]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "target/release/repoformer", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("scale"), help="where files are made, and stay")
    kinds = parser.add_subparsers(required=True)
    of_group = kinds.add_parser("group")
    of_group.add_argument("stacks", nargs="+", type=pathlib.Path)
    of_group.add_argument("--dedup", default="exact,near", help="kinds of duplicates; instances are drawn of what the last leaves")
    of_group.add_argument("--shards", default="64")
    of_group.add_argument("--threads", default="2", help="of group; a worker that draws has one")
    of_group.add_argument("--workers", default="1,2")
    of_group.add_argument("--draw", action="store_true", help="also draw instances (label sample)")
    of_group.set_defaults(does=group)
    of_label = kinds.add_parser("label")
    of_label.add_argument("instances", type=pathlib.Path)
    of_label.add_argument("tokenizer", type=pathlib.Path)
    of_label.set_defaults(does=label)
    of_evaluation = kinds.add_parser("evaluate")
    of_evaluation.add_argument("repos", type=pathlib.Path)
    of_evaluation.add_argument("task_file", type=pathlib.Path)
    of_evaluation.add_argument("--only", default="", help="commands, separated by commas")
    of_evaluation.set_defaults(does=evaluate)
    of_model = kinds.add_parser("model")
    of_model.add_argument("--repositories", type=int, default=18_000, help="that group reads")
    of_model.add_argument("--instances", type=int, default=360_000, help="the paper's: 240,000 chunks and 120,000 functions")
    of_model.add_argument("--prompt-tokens", type=float, default=3_275, help="of an instance's two prompts (measured, p50k_base)")
    of_model.add_argument("--written-tokens", type=float, default=79, help="of its two completions: twice the target's (measured)")
    of_model.add_argument("--read-speed", type=float, default=20_000, help="tokens of prompts a second and GPU: an assumption, set yours")
    of_model.add_argument("--write-speed", type=float, default=2_000, help="tokens of completions a second and GPU: an assumption, set yours")
    of_model.add_argument("--cores", type=int, default=32, help="of a node: an assumption")
    of_model.add_argument("--gpus", type=int, default=8, help="of a node: an assumption")
    of_model.add_argument("--nodes", default="1,8,64")
    of_model.set_defaults(does=model)
    of_growth = kinds.add_parser("growth")
    of_growth.add_argument("--csv", type=pathlib.Path, help="file for the measurements")
    of_growth.add_argument("--svg", type=pathlib.Path, help="file for the figure")
    of_growth.add_argument("--runs", type=int, default=2, help="of each input; the least of each measure counts")
    of_growth.add_argument("--only", default="", help="curves, separated by commas: the names up to a comma")
    of_growth.set_defaults(does=growth)
    options = parser.parse_args()
    if options.does is not model:
        options.folder.mkdir(parents=True, exist_ok=True)
        print("command                      wall      CPU   peak MB exit")
    options.does(options, options.folder)


main()
