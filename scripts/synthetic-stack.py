#!/usr/bin/env python3
"""Makes Parquet files as The Stack has them, out of packages: a row a file, in no order, with what grouping has to find.

    pip install pyarrow==26.0.1
    scripts/synthetic-stack.py --to stack                            # 18,000 repositories, about 3 GB of text
    scripts/synthetic-stack.py --to stack --repositories 300         # half a minute, with its downloads

Packages are the wheels named in synthetic-stack.txt beside this file; pip fetches them once and checks their digests. Their Python files of 200 to
40,000 bytes are cut, package by package and in the order of their paths, into repositories, so that most imports between
neighbours stay within one. When all files are used they are used again, cut elsewhere and with other names: a cipher of
letters, another each time, that leaves Python's own words, the standard library's and strings without letters as they
are, so that imports still lead to their files and no two repositories are alike.

Sizes: the paper of The Stack (https://arxiv.org/abs/2211.15533) counts 51.76 billion files in 137.36 million repositories, of which 5.28
billion are different ones, 38 a repository, of all languages and before licences are looked at. It has no distribution, and nothing for
Python alone; the paper of Repoformer says of its 18,000 repositories that each has at least five Python files, and no more. So the number of
files here is an assumption: log-normal with median 12 and sigma 1.2, whose mean is 25, at least 2 and at most 1,000. With a few GB
in all, it stays within what one machine has. Sizes of files are those of real ones. Columns are those of `bigcode/the-stack-dedup`.

Planted, and listed in truth.jsonl beside the folder data of the Parquet files:

- `exact-duplicate`: 2 % of repositories are copies of others, with fewer stars;
- `near-duplicate`: 4 % are forks, with at most one line of 200 changed, and a file of their own;
- `leak`: a file of 1 % holds a target of the tasks (--tasks), with the ten lines before it, as it is or with another indent;
- `benchmark`: 0.2 %, and at least one, have the name of a repository of the tasks.

The same arguments give the same bytes with the same pyarrow, whatever --jobs is. Python 3.9 or newer.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import math
import multiprocessing
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
WHEELS = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64",
          "--platform=manylinux_2_17_x86_64", "--platform=manylinux_2_28_x86_64", "--platform=any"]
SMALLEST, LARGEST = 200, 40_000
MEDIAN, SIGMA, FEWEST, MOST = 12, 1.2, 2, 1_000
EXACT, NEAR, LEAKS, BENCHMARKS = 0.02, 0.04, 0.01, 0.002
ROWS_AT_ONCE = 1_000

# Words that keep their letters: Python's, and names of the standard library.
KEPT = frozenset("""
False None True and as assert async await break class continue def del elif else except finally for from global if import in is
lambda nonlocal not or pass raise return try while with yield match case self cls args kwargs py
abs all any bool bytes bytearray callable chr classmethod complex dict dir divmod enumerate eval exec filter float format frozenset getattr
globals hasattr hash hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow
print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip
Exception ValueError TypeError KeyError IndexError AttributeError NotImplementedError RuntimeError OSError ImportError StopIteration
abc argparse ast asyncio base64 bisect calendar collections concurrent configparser contextlib copy csv ctypes dataclasses datetime decimal
difflib email enum errno fnmatch functools gc getpass glob gzip heapq hmac html http importlib inspect io ipaddress itertools json logging
math mimetypes multiprocessing numbers operator os pathlib pickle platform pprint queue random re secrets select shlex shutil signal socket
sqlite3 ssl stat statistics string struct subprocess sys tarfile tempfile textwrap threading time timeit traceback types typing unicodedata
unittest urllib uuid warnings weakref xml zipfile zlib
""".split())
WORD = re.compile(r"[A-Za-z_]\w*")


def drawn(draw, count):
    """A number below count; the same in every Python."""
    return int(draw.random() * count)


def shuffle(draw, items):
    for at in range(len(items) - 1, 0, -1):
        other = drawn(draw, at + 1)
        items[at], items[other] = items[other], items[at]


def letters(number):
    """The cipher of a round: vowels for vowels, consonants for consonants. The first is none."""
    if number == 0:
        return None
    draw, table = random.Random(f"letters {number}"), {}
    for alphabet in ("aeiou", "bcdfghjklmnpqrstvwxyz"):
        others = list(alphabet)
        shuffle(draw, others)
        for one, other in zip(alphabet, others):
            table[ord(one)], table[ord(one.upper())] = other, other.upper()
    return table


def renamed(text, table, known):
    """A text in a round's names; `known` remembers words."""
    if table is None:
        return text

    def other(match):
        word = match.group()
        new = known.get(word)
        if new is None:
            own = word in KEPT or word.startswith("__") and word.endswith("__")
            new = word if own else word.translate(table)
            # On past words that are kept: a name that became one of them could be there twice. At the latest it is itself again.
            while new in KEPT and not own:
                new = new.translate(table)
            if len(known) < 50_000:
                known[word] = new
        return new

    return WORD.sub(other, text)


def wheels(cache):
    """Each package and its wheel, in the order of the list; fetched where it is not there."""
    cache.mkdir(parents=True, exist_ok=True)
    for line in (HERE / "synthetic-stack.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        package, digest = line.split(" --hash=sha256:")
        folder = cache / package
        if not any(folder.glob("*.whl")):
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
                wanted.write(line + "\n")
                wanted.flush()
                subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--require-hashes",
                                *WHEELS, "-d", str(folder), "-r", wanted.name], check=True)
        wheel = next(folder.glob("*.whl"))
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != digest:
            sys.exit(f"error: {wheel} is not the file of synthetic-stack.txt; remove it")
        yield package.split("==")[0], wheel


def files_of(wheel, seen):
    """Python files of a wheel that no wheel before it had: their paths and texts, by path."""
    with zipfile.ZipFile(wheel) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if not info.filename.endswith(".py") or not SMALLEST <= info.file_size <= LARGEST:
                continue
            content = archive.read(info)
            digest = hashlib.sha256(content).digest()
            try:
                text = content.decode()
            except UnicodeDecodeError:
                continue
            if digest not in seen and "\0" not in text:
                seen.add(digest)
                yield info.filename, text


class Repository:
    """Files of one package in one round, and what was done to them."""

    def __init__(self, name, number, files, stars):
        self.name, self.round, self.files, self.stars = name, number, files, stars
        self.edit = None  # ("near", seed) or ("leak", place of the file, text)


def cut(packages, number, draw):
    """The repositories of a round, without names: slices of neighbours."""
    found = []
    for package, places in packages:
        at = drawn(draw, 5)
        while at < len(places):
            wanted = round(MEDIAN * math.exp(SIGMA * draw.gauss(0, 1)))
            slice_of = places[at:at + min(max(wanted, FEWEST), MOST)]
            at += len(slice_of)
            if len(slice_of) >= FEWEST:
                found.append((package, number, slice_of))
    shuffle(draw, found)
    return found


def stars(draw):
    """Most repositories have few."""
    return int(3 / (1 - draw.random()) ** 0.8) - 3


def leaks(paths):
    """Each target with the ten lines before it, its task, and the file of tasks."""
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            task = json.loads(line)
            target = task["metadata"].get("ground_truth", task.get("groundtruth", ""))
            before = "".join(task["prompt"].splitlines(True)[-10:])
            # A few words are no leak: every program has them.
            if len(set(re.findall(r"\w+", before + target))) >= 8 and len(re.findall(r"\w+", before + target)) >= 20:
                yield before + target, task["metadata"]["task_id"], path, task["metadata"].get("fpath_tuple", [""])[0]


def plan(options, packages, texts):
    """The repositories, and the truth about those that are planted."""
    draw = random.Random(f"plan {options.seed}")
    counts = [max(1, round(options.repositories * share)) for share in (EXACT, NEAR, LEAKS, BENCHMARKS)]
    targets = list(leaks(options.tasks))
    if not targets:
        counts[2:] = [0, 0]
    wanted, size, found = options.repositories - counts[0] - counts[1], 0, []
    slices, rounds = [], itertools.count()
    while len(found) < wanted and size < options.max_bytes:
        if not slices:
            number = next(rounds)
            slices = cut(packages, number, random.Random(f"cut {options.seed} {number}"))
        package, number, files = slices.pop()
        folder = pathlib.PurePosixPath(texts[files[0]][0]).parent.name or package
        owner = f"owner{drawn(draw, 10_000):04}"
        name = f"{owner}/{package.lower()}-{renamed(folder, letters(number), {}).strip('_')}-{len(found)}"
        found.append(Repository(name, number, files, stars(draw)))
        size += sum(len(texts[file][1]) for file in files)

    # Those that others are made of have enough lines and stars, and are made of once.
    def lines(repository):
        return sum(texts[file][1].count("\n") for file in repository.files)

    truth, order = [], [at for at, repository in enumerate(found) if lines(repository) >= 400]
    shuffle(draw, order)
    originals, copies = iter(order), []
    for kind, count in (("exact-duplicate", counts[0]), ("near-duplicate", counts[1])):
        for number, at in zip(range(count), originals):
            of = found[at]
            of.stars += 1
            copy = Repository(f"fork{len(copies):05}/{of.name.split('/')[1]}", of.round, of.files, drawn(draw, of.stars))
            if kind == "near-duplicate":
                copy.edit = ("near", f"{options.seed} {number}")
            copies.append(copy)
            truth.append({"kind": kind, "repo_name": copy.name, "of": of.name})
    for number, at in zip(range(counts[2]), originals):
        text, task, tasks, _ = targets[drawn(draw, len(targets))]
        indent = "        " * (number % 2)
        text = "".join(indent + line for line in text.splitlines(True))
        place = drawn(draw, len(found[at].files))
        found[at].edit = ("leak", place, text)
        path = renamed(texts[found[at].files[place]][0], letters(found[at].round), {})
        truth.append({"kind": "leak", "repo_name": found[at].name, "path": path, "task": task, "tasks": pathlib.Path(tasks).name})
    folders = sorted({folder for *_, folder in targets if folder})
    for number, at in zip(range(counts[3]), originals):
        found[at].name = f"owner{number}/{folders[number % len(folders)]}"
        truth.append({"kind": "benchmark", "repo_name": found[at].name, "repository": folders[number % len(folders)]})
    return found + copies, truth


def edited(repository, at, text):
    """A file's text after its repository's edits."""
    if repository.edit is None:
        return text
    kind, what, *rest = repository.edit
    lines = text.splitlines(True)
    if kind == "near":
        draw = random.Random(f"near {what} {at}")
        for _ in range(len(lines) // 200):
            line = drawn(draw, len(lines))
            lines[line] = f"changed = {drawn(draw, 10**9)}  # by a fork\n"
    elif at == what:
        middle = len(lines) // 2
        # Behind a whole line, whatever it is in the middle of.
        lines.insert(middle, rest[0] + "\n")
    return "".join(lines)


def rows(places, repositories, texts):
    """Rows of files, by where they are: the number of the repository, then that of its file, or -1 for a fork's own."""
    known = {}
    for number, at in places:
        repository = repositories[number]
        if at < 0:
            path, text = "FORK.py", f'"""Notes of {repository.name}."""\n\nNUMBER = {number}\nREASON = "a change of our own"\n'
        else:
            path, text = texts[repository.files[at]]
            table = letters(repository.round)
            path = renamed(path, table, known.setdefault(repository.round, {}))
            text = edited(repository, at, renamed(text, table, known[repository.round]))
        yield row(repository, path, text)


def row(repository, path, text):
    content = text.encode()
    head = hashlib.sha1(repository.name.encode()).hexdigest()
    lengths = [len(line) for line in text.splitlines()]
    said = {
        "hexsha": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), "size": len(content), "ext": "py", "lang": "Python",
    }
    for of, count in (("stars", repository.stars), ("issues", None), ("forks", None)):
        said.update({
            f"max_{of}_repo_path": path, f"max_{of}_repo_name": repository.name, f"max_{of}_repo_head_hexsha": head,
            f"max_{of}_repo_licenses": ["MIT"], f"max_{of}_count": count or None,
            f"max_{of}_repo_{of}_event_min_datetime": None, f"max_{of}_repo_{of}_event_max_datetime": None,
        })
    return {
        **said, "content": text, "avg_line_length": sum(lengths) / max(len(lengths), 1), "max_line_length": max(lengths, default=0),
        "alphanum_fraction": sum(map(str.isalnum, text)) / max(len(text), 1),
    }


def schema():
    text, number = pa.string(), pa.int64()
    fields = [("hexsha", text), ("size", number), ("ext", text), ("lang", text)]
    for of in ("stars", "issues", "forks"):
        fields += [(f"max_{of}_repo_path", text), (f"max_{of}_repo_name", text), (f"max_{of}_repo_head_hexsha", text),
                   (f"max_{of}_repo_licenses", pa.list_(text)), (f"max_{of}_count", number),
                   (f"max_{of}_repo_{of}_event_min_datetime", text), (f"max_{of}_repo_{of}_event_max_datetime", text)]
    fields += [("content", text), ("avg_line_length", pa.float64()), ("max_line_length", number), ("alphanum_fraction", pa.float64())]
    return pa.schema(fields)


WORK = None  # of every process: places, repositories and texts


def write(number):
    """One Parquet file; its rows and its bytes of text."""
    to, count, places, repositories, texts = WORK
    path, size, waiting = to / f"data/data-{number:05}-of-{count:05}.parquet", 0, []
    with pq.ParquetWriter(path, schema(), compression="snappy") as writer:
        def flush():
            writer.write_table(pa.Table.from_pylist(waiting, schema()), row_group_size=ROWS_AT_ONCE)
            waiting.clear()

        for one in rows(places[number::count], repositories, texts):
            size += one["size"]
            waiting.append(one)
            if len(waiting) == ROWS_AT_ONCE:
                flush()
        if waiting:
            flush()
    return size


def main():
    global WORK
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, required=True, help="folder for data/*.parquet and truth.jsonl")
    parser.add_argument("--repositories", type=int, default=18_000)
    parser.add_argument("--max-bytes", type=int, default=4_000_000_000, help="of text: with more, there are fewer repositories")
    parser.add_argument("--tasks", nargs="*", default=sorted(map(str, (HERE.parent / "data/tasks").glob("*.jsonl"))))
    parser.add_argument("--files", type=int, help="Parquet files [default: one for 2,000 repositories, and at least three]")
    parser.add_argument("--packages", type=pathlib.Path, default=HERE.parent / "target/synthetic-stack", help="folder of the wheels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()

    seen, texts, packages = set(), [], []
    for package, wheel in wheels(options.packages):
        first = len(texts)
        texts += files_of(wheel, seen)
        packages.append((package, range(first, len(texts))))
        # Names are as they were while there are files enough; of the log-normal distribution, this is the mean.
        if len(texts) >= options.repositories * MEDIAN * math.exp(SIGMA**2 / 2):
            break
    repositories, truth = plan(options, packages, texts)
    places = [(number, at) for number, repository in enumerate(repositories)
              for at in range(-1 if (repository.edit or "x")[0] == "near" else 0, len(repository.files))]
    shuffle(random.Random(f"rows {options.seed}"), places)

    (options.to / "data").mkdir(parents=True, exist_ok=True)
    count = options.files or max(3, options.repositories // 2_000)
    WORK = (options.to, count, places, repositories, texts)
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        size = sum(pool.map(write, range(count)))
    with open(options.to / "truth.jsonl", "w") as file:
        file.writelines(json.dumps(one) + "\n" for one in truth)
    kinds = [one["kind"] for one in truth]
    planted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{len(repositories):,} repositories, {len(places):,} files, {size / 1e6:,.0f} MB of text in {count} Parquet files, "
          f"{1 + max(repository.round for repository in repositories)} rounds of {len(texts):,} files of {len(packages)} packages; planted: {planted}")


if __name__ == "__main__":
    main()
