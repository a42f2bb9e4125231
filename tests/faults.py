#!/usr/bin/env python3
"""Fails each call of the program for files in turn, and kills the program at random moments.

    tests/faults.py calls [--every K] [--only NAME,…]     fails call 1, 2, 3, … of each command until one passes
    tests/faults.py kills [--rounds N] [--only NAME,…]    kills each command N times in all, at random moments
    tests/faults.py list                                  names the commands

A command that met a fault must have said so and named a file, or have done its work all the same. The run after it must
give the bytes of an undisturbed run, and leave no temporary file, process or mount. `calls` needs a debug build, where
FAULTY_CALL=KIND:NUMBER fails a call (crates/store/src/files.rs); `kills` takes any. Linux; Python 3.9 or newer alone.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ["--repos-dir", "repos", "--tasks", "tasks.jsonl", "--cache-dir", "cache"]
STAGES = [["window", *DATA], ["vectorize", *DATA], ["search", *DATA], ["prompt", *DATA]]
DENSE = ["--unit", "chunks", "--vectorizer", "dense", "--chunk-size", "5", "--chunk-stride", "5", "--query-lines", "5",
         "--endpoint", "URL", "--embedding-model", "letters", "--mode", "rg1", *DATA]
SERVER = ["complete", "--mode", "none", "--model", "tiny", "--endpoint", "URL", "--max-tokens", "8", "--concurrency", "1", *DATA]
EXEC = ["eval", "--exec", "--test-cmd", "sh run.sh", "--predictions", "p.jsonl", "--missing", "skip", "--repos-dir", "calc",
        "--tasks", "calc.jsonl", "--cache-dir", "cache", "-o", "exec.json"]
LABEL = ["label", "all", "--repos-dir", "samples", "--no-filter", "--kind", "function", "--tokenizer",
         "tokenizer.json", "--ratio", "0.1", "--validation", "0", "--test", "0", "-o", "labels"]

SHARDS = ["1/2", "2/2"]
DRAW = ["label", "sample", "--repos-dir", "samples", "--no-filter"]

# Name, commands before it, the command.
COMMANDS = [
    ("window", [], STAGES[0]),
    ("vectorize", STAGES[:1], STAGES[1]),
    ("search", STAGES[:2], STAGES[2]),
    ("prompt", STAGES[:3], STAGES[3]),
    ("complete", STAGES, ["complete", *DATA]),
    ("rg-rg", [*STAGES, ["complete", *DATA]], ["rg-rg", *DATA]),
    ("server", STAGES, SERVER),
    ("embed", [["window", *DENSE]], ["vectorize", *DENSE]),
    ("run", [], ["run", "--report", "-o", "scores.json", "--format", "json", *DATA]),
    ("label", [], LABEL),
    ("repos", [["convert", "--to", "raw", "--repos-dir", "repos", "-o", "raw.jsonl"]],
     ["convert", "--to", "repos", "raw.jsonl", "-o", "written"]),
    ("convert", [], ["convert", "--to", "crosscodeeval", "--repos-dir", "repos", "tasks.jsonl", "-o", "tasks.jsonl.gz"]),
    ("prune", [["run", *DATA]], ["cache", "prune", "--cache-dir", "cache", "--stage", "window,vector,report", "--yes"]),
    ("exec", [], EXEC),
    ("merge", [[*stage, "--shard", shard] for shard in SHARDS for stage in [*STAGES, ["complete", *DATA]]],
     ["merge", "--shards", "2", *DATA]),
    ("merge-files", [[*DRAW, "--shard", shard, "-o", f"part-{shard[0]}.jsonl"] for shard in SHARDS],
     ["merge", "part-1.jsonl", "part-2.jsonl", "-o", "merged.jsonl"]),
]
# Calls of the program's guards are not counted.
WITHOUT_CALLS = {"exec"}

# Variable of every process of this script.
MARK = "FAULTS_ROUND"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def task(name, path, text, begin, line):
    lines = text.splitlines()
    metadata = {"task_id": name, "ground_truth": lines[line], "fpath_tuple": path.split("/"),
                "context_start_lineno": begin, "line_no": line}
    return json.dumps({"prompt": "".join(one + "\n" for one in lines[begin:line]), "metadata": metadata}) + "\n"


def make_base(folder):
    """Two small repositories with three tasks, one whose tests are run, and a sample of the project's."""
    source = lambda name, count: "".join(f"{name}_{n} = {name}({n})\n" for n in range(count))
    texts = {"alpha/store.py": source("store", 25), "alpha/view.py": source("view", 30),
             "beta/main.py": source("main", 40), "beta/pkg/help.py": source("help", 10)}
    for path, text in texts.items():
        write(folder / "repos" / path, text)
    tasks = [("alpha/0", "alpha/store.py", 10, 12), ("alpha/1", "alpha/view.py", 0, 20), ("beta/0", "beta/main.py", 0, 30)]
    write(folder / "tasks.jsonl", "".join(task(name, path, texts[path], *at) for name, path, *at in tasks))
    calc = "def add(a, b):\n    return a + b\n\n\n# done\ndef twice(x):\n    return x + x\n"
    write(folder / "calc/demo/calc.py", calc)
    write(folder / "calc/demo/run.sh", "text=$(cat calc.py)\ncase \"$text\" in *planted*|*WRONG*) exit 1;; esac\nsleep 0.05\n")
    write(folder / "calc.jsonl", task("demo/0", "demo/calc.py", calc, 0, 1) + task("demo/1", "demo/calc.py", calc, 0, 6))
    predictions = [{"task_id": "demo/0", "pred": ["    return 'WRONG'", "    return b + a", "    return 'WRONG'"]},
                   {"task_id": "demo/1", "pred": ["    return 2 * x"]}]
    write(folder / "p.jsonl", "".join(json.dumps(one) + "\n" for one in predictions))
    shutil.copytree(ROOT / "data/repos/quillpad", folder / "samples/quillpad")
    shutil.copy(ROOT / "tests/fixtures/tokenizers/starcoder.json", folder / "tokenizer.json")


class Handler(http.server.BaseHTTPRequestHandler):
    """A model that completes and embeds; equal texts get equal answers."""

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            pass  # whoever asked was killed

    def do_GET(self):
        self.answer(404, {"error": {"message": "no such page"}})

    def do_POST(self):
        text, length = b"", int(self.headers["Content-Length"])
        try:
            text = self.rfile.read(length)
        except OSError:
            pass
        if len(text) < length:
            return  # whoever asked was killed
        body = json.loads(text)
        if self.path.endswith("/embeddings"):
            vector = lambda text: [1 + text.count(letter) for letter in "aemnrstv"]
            data = [{"index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
            return self.answer(200, {"data": data})
        time.sleep(0.005)
        text = "\nx_%d = 1" % (int(hashlib.sha256(body["prompt"].encode()).hexdigest(), 16) % 1000)
        logprobs = {"content": [{"id": 3, "token": text, "logprob": -0.5}]}
        choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": logprobs}
        return self.answer(200, {"choices": [choice]})


def start_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Bench:
    """The program, a server, and a prepared folder for each command."""

    def __init__(self, binary, folder):
        self.folder = pathlib.Path(folder)
        # A name of its own tells which processes are this script's.
        self.binary = self.folder / "program"
        shutil.copy(binary, self.binary)
        self.url = start_server()
        make_base(self.folder / "base")
        self.prepared = {}

    def start(self, arguments, folder, threads="1", **environment):
        environment = {"PATH": os.environ["PATH"], "REPOFORMER_THREADS": threads, MARK: "1", **environment}
        arguments = [self.url if one == "URL" else one for one in arguments]
        # A shell that ignores interruptions would hand that on.
        default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen([str(self.binary), *arguments], cwd=folder, env=environment, preexec_fn=default,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def run(self, arguments, folder, threads="1", **environment):
        program = self.start(arguments, folder, threads, **environment)
        try:
            _, said = program.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            program.kill()
            return None, "still runs after 120 s"
        return program.returncode, said

    def prepare(self, name, before, command):
        """The folder before the command, what an undisturbed run makes of it, its exit code and how long it takes."""
        place = self.folder / f"before-{name}"
        shutil.copytree(self.folder / "base", place)
        for one in before:
            code, said = self.run(one, place)
            assert code in (0, 1), f"{name}: {one}: {said}"
        wanted = self.folder / f"wanted-{name}"
        shutil.copytree(place, wanted)
        begin = time.monotonic()
        code, said = self.run(command, wanted)
        took = time.monotonic() - begin
        assert code in (0, 1), f"{name}: {command}: {said}"
        # What a further run makes is a part of it: known answers are read back.
        files, temporary = content(wanted)
        assert not temporary, f"{name}: an undisturbed run leaves {temporary}"
        shutil.rmtree(wanted)
        self.prepared[name] = (place, files, code, took)
        return self.prepared[name]

    def processes(self):
        """Processes of the program."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.readlink(entry / "exe").startswith(str(self.binary)):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found


def unmeasured(text):
    """Lines of a journal or of test results without what was measured, in any order."""
    # The checksum of a line is that of all in it.
    measured = {"seconds", "at_once", "cpu_seconds", "peak_memory_mb", "record_checksum"}
    return sorted(json.dumps({key: value for key, value in json.loads(line).items() if key not in measured})
                  for line in text.decode().splitlines())


def content(folder):
    """Every file without those that depend on the clock, and the temporary ones."""
    files, temporary = {}, []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if ".writing-" in name:
            temporary.append(name)
        elif not path.is_file() or path.is_symlink() or "latency" in path.parts or "copies" in path.parts:
            continue
        elif name.endswith(".time.json") or name.endswith(".times.jsonl"):
            continue
        elif path.name == "results.jsonl" or "journal" in path.parts:
            files[name] = unmeasured(path.read_bytes())
        else:
            # Scores say what searches took.
            text = re.sub(rb'"retrieval_ms": *[0-9.e-]+', b'"retrieval_ms": 0', path.read_bytes())
            files[name] = re.sub(rb'"record_checksum": *"[0-9a-f]+"', b"", text)
    return files, temporary


def difference(files, wanted):
    """Names the first difference."""
    for name in sorted(set(files) | set(wanted)):
        if name not in files:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name} is too many"
        if files[name] != wanted[name]:
            one, other = (part if isinstance(part, bytes) else str(part).encode() for part in (files[name], wanted[name]))
            at = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
            begin = max(0, at - 60)
            return f"{name} differs at byte {at}: {one[begin:at + 60]!r} instead of {other[begin:at + 60]!r}"
    return None


def compare(folder, wanted):
    files, temporary = content(folder)
    return difference(files, wanted) or (f"left: {temporary[0]}" if temporary else None)


FAULT = re.compile(r"^fault \d+: (\w+) in (.*?) of (.*)$", re.M)
KINDS = ["enospc", "enospc+", "eio", "eintr", "short", "kill"]


def names_file(said, path):
    """Whether a message names a file of the fault: itself, its artifact, or the folder that it was to lie in."""
    said = FAULT.sub("", said)
    path = pathlib.PurePath(path)
    names = {f"{path}:", path.name.strip("."), path.stem.strip(".").split(".")[0], path.parent.name}
    return any(name and name in said for name in names)


def fail_call(bench, name, command, kind, number):
    """One fault. Returns whether it came, and what is wrong."""
    place, wanted, code, _ = bench.prepared[name]
    with tempfile.TemporaryDirectory(dir=bench.folder) as work:
        folder = pathlib.Path(work) / "w"
        shutil.copytree(place, folder)
        lasts = "+" if kind.endswith("+") else ""
        ended, said = bench.run(command, folder, FAULTY_CALL=f"{kind.rstrip('+')}:{number}{lasts}")
        fault = FAULT.search(said)
        if not fault:
            wrong = compare(folder, wanted) or (None if ended == code else f"exit code {ended}")
            return False, wrong and f"without a fault: {wrong}"
        where = fault.group(0)
        if kind == "kill":
            wrong = None if ended == 137 else f"exit code {ended}"
        elif ended == code:
            # A temporary file that could not be removed, or whose lock does not tell that it is abandoned, goes at the next start.
            is_removal = fault.group(2).startswith(("remove", "lock")) and ".writing-" in fault.group(3)
            wrong = difference(content(folder)[0], wanted) if is_removal else compare(folder, wanted)
            if wrong and "warning:" in said and names_file(said, fault.group(3)):
                wrong = None
            wrong = wrong and f"done, but {wrong}"
        elif kind in ("eintr", "short"):
            wrong = f"exit code {ended}"
        elif ended in (1, 2):
            says = "error:" in said or "warning:" in said or "problem" in said
            # Of several faults, the last may be the one that is told.
            named = any(names_file(said, one.group(3)) for one in FAULT.finditer(said))
            wrong = None if says and named else f"exit code {ended}, no file named"
        else:
            wrong = f"exit code {ended}"
        if wrong is None:
            ended, again = bench.run(command, folder)
            said += f"-- again:\n{again}"
            wrong = compare(folder, wanted) or (None if ended == code else f"exit code {ended}")
            wrong = wrong and f"afterwards: {wrong}"
        return True, wrong and f"{name} {kind}:{number}: {wrong}\n  {where}\n  " + said.strip().replace("\n", "\n  ")


def calls(bench, arguments, chosen):
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, before, command in chosen:
            if name in WITHOUT_CALLS:
                continue
            bench.prepare(name, before, command)
            for kind in arguments.kinds:
                number, came = arguments.first, True
                while came:
                    numbers = range(number, number + arguments.jobs * arguments.every, arguments.every)
                    tried = list(pool.map(lambda n: fail_call(bench, name, command, kind, n), numbers))
                    for hit, problem in tried:
                        counts[name, kind] += hit
                        if problem:
                            wrong.append(problem)
                            print(problem, flush=True)
                    came = all(hit for hit, _ in tried)
                    number = numbers[-1] + arguments.every
            print(name, *(f"{kind} {counts[name, kind]}" for kind in arguments.kinds), flush=True)
    print(f"{sum(counts.values())} faults, {len(wrong)} wrong")
    return wrong


def kill(bench, name, command, chance):
    """One round: kills a command once or twice, then lets it end. Returns the signals, and what is wrong."""
    place, wanted, code, took = bench.prepared[name]
    signals = []
    with tempfile.TemporaryDirectory(dir=bench.folder, ignore_cleanup_errors=True) as work:
        folder = pathlib.Path(work) / "w"
        shutil.copytree(place, folder)
        said = ""
        for _ in range(chance.choice([1, 1, 2])):
            program = bench.start(command, folder, threads="2")
            time.sleep(chance.uniform(0, 1.1 * took))
            sent = chance.choice([[signal.SIGKILL], [signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT], [signal.SIGINT] * 2])
            is_alive = program.poll() is None
            for one in sent:
                program.send_signal(one)
            try:
                said += program.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                program.kill()
                return signals, f"{name}: still runs 60 s after {sent}"
            if not is_alive or program.returncode == code:
                break
            signals.append("+".join(one.name for one in sent))
            if "panicked" in said:
                return signals, f"{name}: {said}"
        # What has ended by itself is not run again: it may have nothing left to do.
        ended, again = (code, "") if program.returncode == code else bench.run(command, folder, "2")
        wrong = compare(folder, wanted) or (None if ended == code else f"exit code {ended}")
        mounts = pathlib.Path("/proc/self/mounts").read_text()
        wrong = wrong or (f"a mount below {folder}" if str(folder) in mounts else None)
        return signals, wrong and f"{name} after {signals}: {wrong}\n  " + (said + again).strip().replace("\n", "\n  ")


def kills(bench, arguments, chosen):
    chance = random.Random(arguments.seed)
    counts, wrong = collections.Counter(), []
    for name, before, command in chosen:
        bench.prepare(name, before, command)
    for number in range(arguments.rounds):
        name, _, command = chosen[number % len(chosen)]
        signals, problem = kill(bench, name, command, chance)
        counts.update((name, one) for one in signals)
        left = bench.processes()
        if left:
            time.sleep(2)
            left = bench.processes()
        if left:
            problem = (problem or name) + f"\n  processes left after {signals}: {left}"
            for one in left:
                os.kill(one, signal.SIGKILL)
        if problem:
            wrong.append(problem)
            print(problem, flush=True)
    for name, _, _ in chosen:
        print(name, *(f"{one} {count}" for (of, one), count in sorted(counts.items()) if of == name))
    print(f"{arguments.rounds} rounds, {sum(counts.values())} kills, {len(wrong)} wrong")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["calls", "kills", "list"])
    parser.add_argument("--binary", default=ROOT / "target/debug/repoformer", type=pathlib.Path)
    parser.add_argument("--only", default="", help="commands, separated by commas")
    parser.add_argument("--without", default="", help="commands, separated by commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of faults, separated by commas")
    parser.add_argument("--first", type=int, default=1, help="number of the first call that fails")
    parser.add_argument("--every", type=int, default=1, help="fail only each K-th call")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.action == "list":
        return print(*(f"{name:10} {' '.join(command)}" for name, _, command in COMMANDS), sep="\n")
    split = lambda names: [name for name in names.split(",") if name]
    arguments.kinds = split(arguments.kinds)
    only, without = split(arguments.only), split(arguments.without)
    unknown = set(only + without) - {name for name, _, _ in COMMANDS} | set(arguments.kinds) - set(KINDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [one for one in COMMANDS if (not only or one[0] in only) and one[0] not in without]
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        wrong = {"calls": calls, "kills": kills}[arguments.action](Bench(arguments.binary, folder), arguments, chosen)
    sys.exit(1 if wrong else 0)


main()
