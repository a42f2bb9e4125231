#!/usr/bin/env python3
"""Tells how much memory and time each stage takes as tasks and fragments grow, on repositories and tasks that it makes.

Each stage is a run of the real program. Its memory is the largest that the kernel saw (`ru_maxrss`); the memory of a task is
what more tasks added, divided by their number.

    benches/long_runs.py [--program PROGRAM] [--tasks 10000,100000] [--fragments 50000,500000] [--only STAGES]
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

REPOSITORIES = 20
LINES = 50  # of a file; a window of 20 lines begins at each second one
DATA = "--cache-dir cache --repos-dir repos --tasks tasks.jsonl --window-size 20 --slice-size 10 --top-k 10 --max-tokens 8"
ALL = sys.maxsize


def line(repository, file, number):
    """A line that shares words with others of its repository."""
    return f"    value_{(file * 7 + number * 3) % 101} = call_{number % 17}(name_{repository}, item_{(file + number) % 53}, {number})\n"


def text(repository, file):
    return "".join(line(repository, file, number) for number in range(LINES))


def write_repositories(folder, fragments):
    """Repositories with about so many windows."""
    files = max(1, fragments // (REPOSITORIES * LINES // 2))
    for repository in range(REPOSITORIES):
        place = folder / "repos" / f"r{repository:02}"
        place.mkdir(parents=True)
        for file in range(files):
            (place / f"f{file:05}.py").write_text(text(repository, file))
    return files


def write_tasks(folder, tasks, files):
    """Tasks of RepoEval's format: each has ten lines of its file as its prompt."""
    texts = {}
    names = "tasks.jsonl", "predictions.jsonl", "others.jsonl"
    out, *predicted = [open(folder / name, "w") for name in names]
    with out, predicted[0], predicted[1]:
        for task in range(tasks):
            repository, file = task % REPOSITORIES, (task // REPOSITORIES) % files
            number = 10 + (task // (REPOSITORIES * files)) % (LINES - 11)
            place = repository, file
            if place not in texts:
                texts[place] = text(*place).splitlines(True)
            lines, path = texts[place], [f"r{repository:02}", f"f{file:05}.py"]
            metadata = {"task_id": f"r{repository:02}/{task}", "ground_truth": lines[number], "fpath_tuple": path}
            metadata |= {"context_start_lineno": number - 10, "line_no": number}
            out.write(json.dumps({"prompt": "".join(lines[number - 10 : number]), "metadata": metadata}) + "\n")
            for text_of, to in zip((number - 1, number), predicted):
                prediction = {"prompt": "", "metadata": metadata | {"row": task}, "choices": [{"text": lines[text_of]}]}
                to.write(json.dumps(prediction) + "\n")


# Name, arguments, and maximum number of tasks; each run may need the results of the earlier ones.
STAGES = [
    ("validate", "validate tasks.jsonl predictions.jsonl", ALL),
    ("stats", "stats tasks.jsonl", ALL),
    ("convert", "convert tasks.jsonl --to repoformer --repos-dir repos -o converted.jsonl", ALL),
    ("eval", f"eval --predictions predictions.jsonl -o scores.json {DATA}", ALL),
    ("label judge", "label judge --instances tasks.jsonl --base predictions.jsonl --rag others.jsonl -o labels.jsonl", ALL),
    ("window", f"window --mode none,rg1 {DATA}", ALL),
    ("vectorize", f"vectorize --mode none,rg1 {DATA}", ALL),
    ("search", f"search --mode rg1 {DATA}", ALL),
    ("prompt none", f"prompt --mode none {DATA}", ALL),
    ("prompt rg1", f"prompt --mode rg1 {DATA}", 100_000),
    ("rg-rg", f"rg-rg --predictions predictions.jsonl {DATA}", 100_000),
    ("complete none", f"complete --mode none {DATA}", 20_000),
    ("complete rg1", f"complete --mode rg1 {DATA}", 20_000),
]


def run(program, arguments, folder):
    """Exit status, peak memory in bytes, processor seconds."""
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)]
        back = os.getcwd()
        os.chdir(folder)
        process = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=actions)
        os.chdir(back)
        _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def measure(arguments, tasks, fragments):
    """Peak memory of each stage."""
    peaks = {}
    with tempfile.TemporaryDirectory(prefix="long-runs-", dir=arguments.folder) as place:
        folder = pathlib.Path(place)
        write_tasks(folder, tasks, write_repositories(folder, fragments))
        for name, command, most in STAGES:
            if tasks > most or arguments.only and name not in arguments.only.split(","):
                continue
            status, peak, seconds = run(arguments.program, command.split(), folder)
            peaks[name] = peak
            said = (folder / "stderr").read_text()[-300:].strip() if status else ""
            print(f"{name:14} {tasks:8} {fragments:9} {peak / 1e6:9.1f} {seconds:8.1f} {said}", flush=True)
    return peaks


def table(name, counts, peaks):
    """Memory that one more of what is counted takes, from the smallest count to the largest of a stage."""
    if len(counts) < 2:
        return
    print(f"\nstage          bytes a {name} more")
    for stage, least in peaks[counts[0]].items():
        most = max(count for count in counts if stage in peaks[count])
        if most > counts[0]:
            print(f"{stage:14} {(peaks[most][stage] - least) / (most - counts[0]):8.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/repoformer", type=lambda path: str(pathlib.Path(path).resolve()))
    numbers = lambda text: [int(number) for number in text.split(",") if number]
    parser.add_argument("--tasks", default="10000,100000", type=numbers, help="numbers of tasks")
    parser.add_argument("--fragments", default="", type=numbers, help="numbers of fragments, each with 1,000 tasks")
    parser.add_argument("--only", default="", help="stages, separated by commas")
    parser.add_argument("--folder", help="where the files are made")
    arguments = parser.parse_args()
    print("stage             tasks fragments   peak MB   CPU s")
    table("task", arguments.tasks, {tasks: measure(arguments, tasks, 10_000) for tasks in arguments.tasks})
    fragments = arguments.fragments
    table("fragment", fragments, {count: measure(arguments, 1_000, count) for count in fragments})


main()
