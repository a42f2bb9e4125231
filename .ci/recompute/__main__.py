"""Recomputes what the program makes of the sample repositories, and compares value by value.

python .ci/recompute PROGRAM FOLDER

Windows, ranks, prompts, scores, intervals, policies and training sequences are computed as the papers of RepoCoder and
Repoformer, their released programs and docs/ describe them, and not by the program's code. At last an error is planted in
each kind of result, one after the other, and each must be noticed.
"""

import gzip
import json
import math
import pathlib
import subprocess
import sys
import tarfile
import time

import numpy as np

import decisions
import labels
import retrieval
import scores
from comparison import Between, Near, Part
from rankers import RANKERS
from texts import HuggingFace, P50kBase, filled

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
    """The program, with a cache of its own for each set of settings."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def __call__(self, *arguments, skips=False):
        done = subprocess.run([self.binary, *map(str, arguments), "--quiet"], cwd=PROJECT, capture_output=True, text=True)
        if done.returncode != int(skips):
            sys.exit(f"repoformer {' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    def inspect(self, path):
        done = subprocess.run([self.binary, "inspect", path, "--format", "jsonl", "--context"], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.split("\n") if line]


def only(folder, pattern):
    [path] = folder.glob(pattern)
    return path


def sample_tasks(path, kind, counts):
    """Tasks of the sample, not equally many of each repository; every second prompt shows only the last 20 lines."""
    tasks = []
    for task in read(PROJECT / f"data/tasks/{kind}.jsonl"):
        metadata = task["metadata"]
        if counts.get(metadata["fpath_tuple"][0], 0):
            counts[metadata["fpath_tuple"][0]] -= 1
            if len(tasks) % 2:
                lines = task["prompt"].splitlines(keepends=True)
                cut = max(0, metadata["line_no"] - 20 - metadata["context_start_lineno"])
                task["prompt"] = "".join(lines[cut:])
                metadata["context_start_lineno"] += cut
            tasks.append(task)
    write(path, tasks)
    return tasks


def place_of(place):
    return (tuple(place["fpath_tuple"]), place["line_no"], place["start_line_no"], place["end_line_no"])


def places_of(places):
    return [(place.path, place.line, place.start, place.end) for place in places]


def window_parts(program, corpus, repositories, tokens, tasks, path, name, settings, arguments, skips=False):
    """Windows, ranks and prompts of the three modes."""
    cache = program.folder / name
    program("run", *arguments, "--repos-dir", corpus, "--tasks", path, "--mode", "none,rg1,rg-rg,gt", "--cache-dir", cache, skips=skips)
    fragments = {name: retrieval.windows(repository, settings.size, settings.slice_size) for name, repository in repositories.items()}
    indexes = {
        name: retrieval.TermSets([frozenset(tokens.encode(text)) for text, _ in windows]) for name, windows in fragments.items()
    }
    cut = f"ws{settings.size}_slice{settings.slice_size}"
    of_all = lambda folder: [record for repository in repositories for record in program.inspect(only(cache, f"{folder}/{repository}_{cut}*.bin"))]
    some = list(repositories)[0]
    yield Part(
        f"{name}: windows of repositories",
        {repository: program.inspect(cache / f"window/repos/{repository}_{cut}.bin") for repository in repositories},
        lambda records: {
            (repository, number): (record["context"], [place_of(place) for place in record["metadata"]])
            for repository in records for number, record in enumerate(records[repository])
        },
        {
            (repository, number): (text, places_of(places))
            for repository in fragments for number, (text, places) in enumerate(fragments[repository])
        },
        {
            "a line of a window": lambda records: change_line(records[some][40]),
            "a window left out": lambda records: records[some].pop(),
            "a window's place": lambda records: move(records[some][3]["metadata"][0]),
        },
    )
    predictions = {
        record["metadata"]["row"]: record["choices"][0]["text"]
        for record in read(only(cache, f"predictions/{path.stem}/rg1-*-in-context.jsonl"))
    }
    for mode in ("rg1", "gt", "rg-rg"):
        queries, ranks, prompts = {}, {}, {}
        for row, task in enumerate(tasks):
            metadata = task["metadata"]
            repository = repositories[metadata["fpath_tuple"][0]]
            windows = fragments[repository.name]
            query = retrieval.window_query(repository, metadata, mode, settings.size, predictions[row])
            if query is None:
                continue
            terms = frozenset(tokens.encode(query[0]))
            ranking = retrieval.search_windows(repository, windows, indexes[repository.name], terms, metadata, settings)
            prompt = retrieval.window_prompt(repository, windows, ranking, metadata, task["prompt"], mode, tokens, settings)
            queries[row] = query
            for rank, (number, similarity) in enumerate(ranking):
                ranks[row, rank] = (windows[number][0], similarity)
            prompts[row] = (prompt.text, [windows[number][0] for number in prompt.chosen], len(tokens.encode(prompt.text)))
        yield Part(
            f"{name}, {mode}: queries",
            of_all(f"window/{path.stem}/{mode}"),
            lambda records: {
                record["metadata"]["row"]: (record["context"], record["metadata"]["start_line_no"], record["metadata"]["end_line_no"])
                for record in records
            },
            queries,
            {"a line of a query": lambda records: change_line(records[7])},
        )
        yield Part(
            f"{name}, {mode}: top {settings.top_k}",
            of_all(f"retrieval/{path.stem}/{mode}"),
            lambda records: {
                (record["row"], rank): (fragment["context"], fragment["sim_score"])
                for record in records for rank, fragment in enumerate(record["top_k_context"])
            },
            ranks,
            {
                "two fragments exchanged": lambda records: exchange(records[3]["top_k_context"]),
                "the last digit of a score": lambda records: nudge(records[5]["top_k_context"][-1], "sim_score"),
            },
        )
        yield Part(
            f"{name}, {mode}: prompts",
            read(only(cache, f"prompts/{path.stem}/{mode}-*.jsonl")),
            lambda records: {
                record["metadata"]["row"]: (
                    record["prompt"],
                    [fragment["context"] for fragment in record["metadata"]["top_k_context"]],
                    record["metadata"]["prompt_tokens"],
                )
                for record in records
            },
            prompts,
            {"a blank in a prompt": lambda records: records[2].update(prompt=records[2]["prompt"].replace("# ", "#", 1))},
        )


def odd_file_parts(program, tokens):
    """A repository of odd files: links, other line breaks, byte-order marks, equal files; and settings that divide unevenly."""
    corpus = program.folder / "odd"
    with tarfile.open(FIXTURES / "edge_cases.tar.gz") as archive:
        archive.extractall(corpus)
    repositories = {"edge_cases": retrieval.Repository.read(corpus / "edge_cases")}
    path = program.folder / "edge_cases.jsonl"
    path.write_bytes(gzip.open(FIXTURES / "repocoder/edge_cases.tasks.jsonl.gz").read())
    tasks = read(path)
    yield from window_parts(program, corpus, repositories, tokens, tasks, path, "odd files", retrieval.WindowSettings(), [], skips=True)
    uneven = retrieval.WindowSettings(size=15, slice_size=4, top_k=7, budget=900, blocks=3)
    arguments = ["--window-size", 15, "--slice-size", 4, "--top-k", 7, "--max-prompt-tokens", 900, "--max-blocks", 3]
    yield from window_parts(program, corpus, repositories, tokens, tasks, path, "odd files, uneven", uneven, arguments, skips=True)


def change_line(record):
    lines = record["context"].split("\n")
    lines[len(lines) // 2] += " "
    record["context"] = "\n".join(lines)


def move(place):
    place["end_line_no"] += 1


def exchange(fragments):
    fragments[0], fragments[1] = fragments[1], fragments[0]


def nudge(record, key):
    record[key] += 1e-15 * (1 if record[key] < 1 else -1)


METRICS = "repocoder,repoformer,repoformer-difflib,crosscodeeval,chars"


def score(task, prediction, found):
    """A task's scores by each metric, and whether CrossCodeEval's are in doubt: these are then what was found."""
    target = task["metadata"]["ground_truth"]
    result = {
        "repocoder": scores.repocoder(target, prediction),
        "repoformer": scores.repoformer(target, prediction),
        "repoformer-difflib": scores.repoformer(target, prediction, scores.difflib_ratio),
        "chars": scores.chars(target, prediction),
    }
    try:
        return result | {"crosscodeeval": scores.crosscodeeval(target, prediction, task["prompt"])}, False
    except scores.InDoubt:
        return result | {"crosscodeeval": found["crosscodeeval"]}, True


def mean(numbers):
    return Near(sum(numbers) / len(numbers))


def summary(tasks, results, resamples):
    """Means, those of each repository, and where the ends of the intervals must lie."""
    groups, expected = {}, {}
    for task, result in zip(tasks, results):
        groups.setdefault(task["metadata"]["fpath_tuple"][0], []).append(result)
    units = list(groups.values()) if len(groups) > 1 else [[result] for result in results]
    for metric in results[0]:
        for value in results[0][metric]:
            of = lambda members: [result[metric][value] for result in members]
            expected["all", metric, value] = mean(of(results))
            for repository, members in groups.items():
                expected[repository, metric, value] = mean(of(members))
            if len(groups) == 1 and len(results) >= 2000:
                low, high = ((end - 1e-9, end + 1e-9) for end in decisions.limit_of_interval(of(results)))
            else:
                low, high = decisions.bounds_of_interval([of(members) for members in units], resamples)
            expected["low", metric, value], expected["high", metric, value] = Between(*low), Between(*high)
    expected["unit"] = ("repositories" if len(groups) > 1 else "tasks", len(units))
    return expected


def summary_values(record):
    """The same of what `eval --format json` printed."""
    values = {"unit": (record["intervals"]["unit"], record["intervals"]["units"])}
    for name, means in [("all", record["all"]), *record["repositories"].items()]:
        for metric, fields in means.items():
            if isinstance(fields, dict):
                values |= {(name, metric, value): number for value, number in fields.items()}
    for metric, fields in record["intervals"].items():
        if isinstance(fields, dict):
            for value, (low, high) in fields.items():
                values["low", metric, value], values["high", metric, value] = low, high
    return values


def score_parts(program, kind):
    """Scores of each task in two modes, their means and intervals, and the comparison of the modes."""
    path = PROJECT / f"data/tasks/{kind}.jsonl"
    tasks, cache, sides = read(path), program.folder / "default", []
    shared = ["--repos-dir", REPOSITORIES, "--tasks", path, "--cache-dir", cache]
    program("run", *shared, "--mode", "none,rg1")
    for mode in ("none", "rg1"):
        predictions = {record["metadata"]["row"]: record for record in read(only(cache, f"predictions/{kind}/{mode}-*-in-context.jsonl"))}
        file = program.folder / f"{kind}-{mode}-scores.jsonl"
        program("eval", *shared, "--mode", mode, "--metrics", METRICS, "--per-task", "--format", "jsonl", "-o", file)
        found = read(file)
        results, doubts = zip(*(score(task, predictions[row]["choices"][0]["text"], found[row]) for row, task in enumerate(tasks)))
        assert sum(doubts) <= len(tasks) / 10, f"{sum(doubts)} cuts of statements are in doubt"
        sides.append(results)
        compared = lambda row, metric, doubts=doubts: not (metric == "crosscodeeval" and doubts[row])
        yield Part(
            f"{kind}, {mode}: scores of tasks" + (f" ({sum(doubts)} cut by tree-sitter alone, not compared)" if any(doubts) else ""),
            found,
            lambda records, compared=compared: {
                (record["row"], metric, value): number for record in records for metric in results[0] if compared(record["row"], metric)
                for value, number in record[metric].items()
            },
            {
                (row, metric, value): number for row, result in enumerate(results) for metric, fields in result.items()
                if compared(row, metric) for value, number in fields.items()
            },
            {
                "an edit similarity": lambda records: nudge(records[4]["repocoder"], "es"),
                "an exact match": lambda records: records[8]["crosscodeeval"].update(em=1 - records[8]["crosscodeeval"]["em"]),
            },
        )
        yield Part(
            f"{kind}, {mode}: means and intervals over repositories",
            json.loads(program("eval", *shared, "--mode", mode, "--metrics", METRICS, "--format", "json")),
            summary_values,
            summary(tasks, results, 10_000),
            {
                "a mean": lambda record: nudge_more(record["all"]["repocoder"], "es"),
                "the mean of a repository": lambda record: nudge_more(record["repositories"]["quillpad"]["repoformer"], "es_fuzz"),
                "the ends of an interval exchanged": lambda record: record["intervals"]["repocoder"]["es"].reverse(),
            },
        )
    yield Part(
        f"{kind}: comparison of the modes",
        json.loads(program("compare", "none", "rg1", *shared, "--metrics", METRICS, "--format", "json"))["measures"],
        lambda records: {
            (record["measure"], *name): value for record in records for name, value in {
                ("a",): record["a"]["mean"], ("b",): record["b"]["mean"], ("difference",): record["difference"]["mean"],
                ("low",): record["difference"]["low"], ("high",): record["difference"]["high"],
                ("p", "tasks"): record["p"]["tasks"]["p"], ("p", "repositories"): record["p"]["repositories"]["p"],
                ("tasks",): (record["better"], record["same"], record["worse"]),
            }.items()
        },
        comparison(tasks, *sides),
        {
            "a difference": lambda records: nudge_more(records[1]["difference"], "mean"),
            "half of a p": lambda records: halve(records[1]["p"]["tasks"]),
        },
    )


def comparison(tasks, one, other):
    expected = {}
    for metric in one[0]:
        for value in one[0][metric]:
            before, after = ([result[metric][value] for result in side] for side in (one, other))
            differences = [b - a for a, b in zip(before, after)]
            groups = {}
            for task, difference in zip(tasks, differences):
                groups.setdefault(task["metadata"]["fpath_tuple"][0], []).append(difference)
            low, high = decisions.bounds_of_interval(list(groups.values()), 10_000)
            name = f"{metric}.{value}"
            expected |= {
                (name, "a"): mean(before), (name, "b"): mean(after), (name, "difference"): mean(differences),
                (name, "low"): Between(*low), (name, "high"): Between(*high),
                (name, "tasks"): tuple(sum(of(difference) for difference in differences) for of in (lambda d: d > 0, lambda d: d == 0, lambda d: d < 0)),
            }
            for unit, numbers in ("tasks", differences), ("repositories", [sum(group) for group in groups.values()]):
                p = decisions.sign_flips(numbers)
                expected[name, "p", unit] = Between(*p) if isinstance(p, tuple) else Near(p)
    return expected


def halve(record):
    record["p"] /= 2


def interval_parts(program):
    """Intervals of 20 groups of unequal sizes, of one repository's tasks, and of very many tasks, for a few tasks' predictions."""
    template = read(PROJECT / "data/tasks/line.jsonl")
    chance = np.random.default_rng(7)
    sizes = {"groups": [3 + 2 * group for group in range(20)], "tasks": [45], "many tasks": [2100]}
    for name, counts in sizes.items():
        records, results = [], []
        for group, count in enumerate(counts):
            for number in range(count):
                task = template[int(chance.integers(len(template)))]
                target = task["metadata"]["ground_truth"]
                # Part of the target, the less the larger the group is: a mean of the groups' means would be another.
                text = target[: int(len(target) * chance.beta(2, 1 + group / 2))] if chance.random() < 0.8 else target
                metadata = task["metadata"] | {"task_id": f"g{group}/{number}", "fpath_tuple": [f"g{group}", "a.py"]}
                records.append({"prompt": task["prompt"], "metadata": metadata, "choices": [{"text": text}]})
                results.append({"repocoder": scores.repocoder(target, text)})
        path = write(program.folder / f"interval-{name.replace(' ', '-')}.jsonl", records)
        tasks = write(program.folder / f"interval-{name.replace(' ', '-')}-tasks.jsonl", [{key: record[key] for key in ("prompt", "metadata")} for record in records])
        found = json.loads(program("eval", "--tasks", tasks, "--predictions", path, "--metrics", "repocoder", "--format", "json"))
        yield Part(
            f"intervals, {name}: {len(records)} tasks",
            found,
            summary_values,
            summary(records, results, 10_000),
            {"an interval of 90 %": lambda record: narrow(record["intervals"]["repocoder"]["es"])},
        )


def narrow(interval):
    """From 95 % to 90 % of a normal distribution."""
    middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2 * 1.645 / 1.96
    interval[:] = middle - half, middle + half


def nudge_more(record, key):
    record[key] += 1e-9


def chunk_parts(program, repositories, tokens, kind, size, budgets):
    """Repoformer's chunks, ranks and prompts, as in its paper's appendix A."""
    path = PROJECT / f"data/tasks/{kind}.jsonl"
    tasks, cache, stride = read(path), program.folder / f"paper-{kind}", size // 2
    # The three budgets fit side by side.
    shared = ["--profile", "repoformer-paper", "--max-prompt-tokens", 4096, "--repos-dir", REPOSITORIES, "--tasks", path]
    shared += ["--mode", "none,rg1", "--cache-dir", cache]
    for stage in ("window", "vectorize", "search", "prompt"):
        program(stage, *shared)
    cut = {name: retrieval.chunks(repository, size, stride) for name, repository in repositories.items()}
    yield Part(
        f"paper, {kind}: chunks of repositories",
        {name: program.inspect(cache / f"window/repos/{name}_chunk{size}_stride{stride}.bin") for name in repositories},
        lambda records: {
            (name, tuple(place["fpath_tuple"]), place["chunk"]): record["context"]
            for name in records for record in records[name] for place in record["metadata"]
        },
        {(name, path, number): text for name in cut for path in cut[name] for number, text in enumerate(cut[name][path])},
        {"a line of a chunk": lambda records: change_line(records["quillpad"][40])},
    )
    ranks, prompts = {}, {}
    for row, task in enumerate(tasks):
        file = tuple(task["metadata"]["fpath_tuple"])
        source = repositories[file[0]].texts[file]
        ranking = retrieval.search_chunks(repositories[file[0]], cut[file[0]], file, retrieval.last_lines(task["prompt"], size), 10)
        for rank, (other, number, similarity) in enumerate(ranking):
            ranks[row, rank, "chunk"], ranks[row, rank, "score"] = (other, number), similarity
        left, target = task["prompt"], task["metadata"]["ground_truth"]
        assert source.startswith(left + target), task["metadata"]["task_id"]
        right = source[len(left + target) :]
        for mode, shown in ("none", ""), ("rg1", retrieval.cross_file_text(cut[file[0]], ranking)):
            prompts[row, mode] = retrieval.starcoder_prompt(left, right, shown, tokens, budgets)
    yield Part(
        f"paper, {kind}: top 10",
        [record for name in repositories for record in program.inspect(only(cache, f"retrieval/{kind}/rg1/{name}_*.bin"))],
        chunk_ranks,
        ranks,
        {"two fragments exchanged": lambda records: exchange(records[3]["top_k_context"])},
    )
    yield Part(
        f"paper, {kind}: prompts",
        {mode: read(only(cache, f"prompts/{kind}/{mode}-*.jsonl")) for mode in ("none", "rg1")},
        lambda records: {(record["metadata"]["row"], mode): record["prompt"] for mode in records for record in records[mode]},
        prompts,
        {"a blank in a prompt": lambda records: records["rg1"][2].update(prompt=records["rg1"][2]["prompt"].replace("# ", "#", 1))},
    )


def ranker_parts(program, repositories, tokens, tasks, path):
    """Chunks with the default settings, a small budget and each ranker of words."""
    cut = {name: retrieval.chunks(repository, 20, 10) for name, repository in repositories.items()}
    for ranker, score_chunks in RANKERS.items():
        cache = program.folder / f"ranker-{ranker}"
        shared = ["--unit", "chunks", "--ranker", ranker, "--max-prompt-tokens", 700, "--max-cross-file-tokens", 300]
        shared += ["--repos-dir", REPOSITORIES, "--tasks", path, "--mode", "rg1", "--cache-dir", cache]
        for stage in ("window", "vectorize", "search", "prompt"):
            program(stage, *shared)
        ranks, prompts = {}, {}
        for row, task in enumerate(tasks):
            file = tuple(task["metadata"]["fpath_tuple"])
            query = retrieval.last_lines(task["prompt"], 20)
            ranking = retrieval.search_chunks(repositories[file[0]], cut[file[0]], file, query, 20, score_chunks)
            for rank, (other, number, similarity) in enumerate(ranking):
                ranks[row, rank, "chunk"], ranks[row, rank, "score"] = (other, number), Near(float(similarity))
            shown = retrieval.cross_file_text(cut[file[0]], ranking[:10])
            prompts[row] = retrieval.plain_prompt(task["prompt"], shown, tokens, 700, 300)
        yield Part(
            f"{ranker}: top 20",
            [record for name in repositories for record in program.inspect(only(cache, f"retrieval/{path.stem}/rg1/{name}_*.bin"))],
            chunk_ranks,
            ranks,
            {"two fragments exchanged": lambda records: exchange(records[3]["top_k_context"])},
        )
        yield Part(
            f"{ranker}: prompts",
            read(only(cache, f"prompts/{path.stem}/rg1-*.jsonl")),
            lambda records: {record["metadata"]["row"]: record["prompt"] for record in records},
            prompts,
            {"a blank in a prompt": lambda records: records[2].update(prompt=records[2]["prompt"].replace("# ", "#", 1))},
        )


def chunk_ranks(records):
    ranks = {}
    for record in records:
        for rank, fragment in enumerate(record["top_k_context"]):
            place = fragment["metadata"][0]
            ranks[record["row"], rank, "chunk"] = (tuple(place["fpath_tuple"]), place["chunk"])
            ranks[record["row"], rank, "score"] = fragment["sim_score"]
    return ranks


def instance_parts(program, repositories):
    """Instances of `label sample`: their contexts, and the chunks of the paper's algorithms 1 and 2."""
    for kind in ("chunk", "function"):
        path = program.folder / f"instances-{kind}.jsonl"
        program("label", "sample", "--repos-dir", REPOSITORIES, "--no-filter", "--kind", kind, "-o", path)
        instances, expected = read(path), {}
        for number, instance in enumerate(instances):
            file = tuple(instance["metadata"]["filename"].split("/"))
            repository = repositories[file[0]]
            before, target, behind = (filled(instance[key]) for key in ("prompt", "groundtruth", "right_context"))
            around = 5 * len(target) if kind == "chunk" else 20
            query = before[-around:] + (target if instance["metadata"]["query_has_target"] else []) + behind[:around]
            cut = retrieval.chunks(repository, 10 * len(target), 5 * len(target))
            ranking = retrieval.search_chunks(repository, cut, file, "\n".join(query), 3)
            expected[number] = (
                repository.texts[file], [("/".join(other[1:]), cut[other][chunk], score) for other, chunk, score in ranking]
            )
        yield Part(
            f"instances of {kind}s",
            instances,
            lambda records: {
                number: (
                    record["prompt"] + record["groundtruth"] + record["right_context"],
                    [(chunk["filename"], chunk["retrieved_chunk"], chunk["score"]) for chunk in record["crossfile_context"]["list"]],
                )
                for number, record in enumerate(records)
            },
            expected,
            {"two chunks exchanged": lambda records: exchange(records[1]["crossfile_context"]["list"])},
        )


RETRIEVAL_MS, GENERATION_MS, DECISION_MS = 700, 500, 40
# A policy's score, and when it is known: at once, after a decision of the model's, after retrieval, after generation.
POLICIES = {
    "never": (lambda label: 0.0, 0),
    "always": (lambda label: 0.0, 0),
    "oracle": (lambda label: label["es_rg1"] - label["es_infile"], 0),
    "self": (lambda label: label["cc_probability"], DECISION_MS),
    "trial-retrieval": (lambda label: label["crossfile_context"]["list"][0]["score"], RETRIEVAL_MS),
    "trial-generation": (lambda label: 1 - math.exp(label["min_logprob"]), GENERATION_MS),
    "entropy": (lambda label: label["entropy"], GENERATION_MS),
}


def point(policy, threshold, chosen):
    """What a policy comes to at a threshold."""
    signal, known = POLICIES[policy]
    signals, helps = [signal(label) for label in chosen], [label["label"] for label in chosen]
    retrieves = [policy == "always" or policy != "never" and value > threshold for value in signals]
    abstained = [label for label, retrieved in zip(chosen, retrieves) if not retrieved]
    side = lambda name: [label[name + ("_rg1" if retrieved else "_infile")] for label, retrieved in zip(chosen, retrieves)]
    times = [RETRIEVAL_MS + GENERATION_MS if retrieved else max(known, GENERATION_MS) for retrieved in retrieves]
    latency = sum(times) / len(times)
    right = [label["em_infile"] == 1 for label in abstained]
    useless = [label["label"] is False for label in abstained]
    share = lambda members: Near(sum(members) / len(members)) if members else None
    return {
        "n": len(chosen),
        "rag_rate": share(retrieves),
        "em": share(side("em")),
        "es": share(side("es")),
        "latency_ms": Near(latency),
        "speedup": Between(*(1 - latency / (RETRIEVAL_MS + GENERATION_MS) + slack for slack in (-1e-9, 1e-9))),
        "abstention_precision": share([one or other for one, other in zip(right, useless)]),
        "abstained_right": share(right),
        "abstained_harmed": share([not (one or other) for one, other in zip(right, useless)]),
        "auc": Near(decisions.auc(signals, helps)),
        "calibration_error": Near(decisions.calibration_error(signals, helps)) if policy == "self" else None,
    }


def sweep_parts(program, path):
    """Policies on the labels, to which a model's probabilities are added."""
    chance = np.random.default_rng(20261127)
    chosen = [label for label in read(path) if not label["metadata"]["query_has_target"]]
    for label in chosen:
        # Coarse, so that scores tie; a little better than chance.
        label["cc_probability"] = round(float(chance.beta(2 + label["label"], 3)), 2)
        label["entropy"] = round(float(chance.gamma(2)), 1)
        label["metadata"].pop("record_checksum", None)
    labelled = write(program.folder / "labels-with-signals.jsonl", chosen)
    thresholds = [0.05, 0.2, 0.35, 0.5, 0.8]
    points = program(
        "policy", "sweep", "--labels", labelled, "--policy", ",".join(POLICIES), "--threshold", ",".join(map(str, thresholds)),
        "--retrieval-ms", RETRIEVAL_MS, "--generation-ms", GENERATION_MS, "--decision-ms", DECISION_MS, "--format", "jsonl",
    )
    fields = list(point("never", None, chosen))
    yield Part(
        "policies",
        [json.loads(line) for line in points.splitlines()],
        lambda records: {
            (record["policy"], record["threshold"], field): record.get(field) for record in records for field in fields
        },
        {
            (policy, threshold, field): value
            for policy in POLICIES for threshold in ([None] if policy in ("never", "always") else thresholds)
            for field, value in point(policy, threshold, chosen).items()
        },
        {
            "an AUC": lambda records: nudge_more(records[-1], "auc"),
            "a calibration error": lambda records: nudge_more(next(record for record in records if record["policy"] == "self"), "calibration_error"),
            "a share of retrievals": lambda records: nudge_more(records[5], "rag_rate"),
        },
    )


def label_parts(program):
    """Labels of the embedded model's completions, and the sequences that they become."""
    folder = program.folder / "labels"
    program("label", "all", "--repos-dir", REPOSITORIES, "--no-filter", "--kind", "chunk", "--tokenizer", TOKENIZERS / "starcoder.json", "-o", folder)
    chosen = read(folder / "labels.jsonl")
    predictions = {
        mode: {record["metadata"]["task_id"]: record["choices"][0]["text"] for record in read(only(folder, f"**/predictions/*/{mode}-*.jsonl"))}
        for mode in ("none", "given")
    }
    expected = {}
    for label in chosen:
        name = label["metadata"]["task_id"]
        without, with_it = (scores.repoformer(label["groundtruth"], predictions[mode][name]) for mode in ("none", "given"))
        expected[name] = (without["es"], with_it["es"], without["em"], with_it["em"], with_it["es"] - without["es"] > 0)
    yield Part(
        "labels",
        chosen,
        lambda records: {
            record["metadata"]["task_id"]: tuple(record[key] for key in ("es_infile", "es_rg1", "em_infile", "em_rg1", "label"))
            for record in records
        },
        expected,
        {"a label": lambda records: records[6].update(label=not records[6]["label"])},
    )
    starcoder, qwen = ("fim_prefix", "fim_suffix", "fim_middle"), ("|fim_prefix|", "|fim_suffix|", "|fim_middle|")
    for tokenizer, style, markers, most, most_cross_file in (
        ("starcoder", "starcoder", starcoder, 2048, 512),
        ("starcoder", "starcoder", starcoder, 400, 100),
        ("qwen", "qwen2.5-coder", qwen, 600, 128),
    ):
        markers = [f"<{name}>" for name in markers]
        path = TOKENIZERS / f"{tokenizer}.json"
        sequences = program.folder / f"sequences-{tokenizer}-{most}"
        program(
            "label", "verbalize", "--labels", folder / "labels.jsonl", "--tokenizer", path, "--max-sequence-tokens", most,
            "--max-cc-tokens", most_cross_file, "--lambda", 2, "--prompt-style", style, "-o", sequences,
        )
        tokens = HuggingFace(path)
        # Any ten do; the whole would take a minute longer.
        some = chosen[:: max(1, len(chosen) // 10)][:10]
        names = {label["metadata"]["task_id"] for label in some}
        yield Part(
            f"sequences, {tokenizer}, {most} tokens",
            [record for split in ("train", "validation") for record in read(sequences / f"{split}.jsonl")],
            lambda records: {
                (record["task_id"], field): record[field] if field != "loss_weights" else [float(np.float32(weight)) for weight in record[field]]
                for record in records if record["task_id"] in names
                for field in ("input_ids", "attention_mask", "labels", "eval_mask", "gen_mask", "loss_weights", "positive")
            },
            {
                (label["metadata"]["task_id"], field): value
                for label in some for field, value in labels.sequence(label, tokens, markers, most, most_cross_file, 2).items()
            },
            {
                "a token": lambda records: next(record for record in records if record["task_id"] in names)["input_ids"].__setitem__(5, 70),
                "a mask": lambda records: next(record for record in records if record["task_id"] in names)["eval_mask"].__setitem__(-1, 1),
            },
        )


def main():
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True)
    program = Program(binary, folder)
    tokens = P50kBase(PROJECT / "data/p50k_base.tiktoken")
    repositories = {path.name: retrieval.Repository.read(path) for path in sorted(REPOSITORIES.iterdir())}
    started, passed, counted, missed = time.monotonic(), True, 0, []
    for part in parts(program, repositories, tokens):
        passed &= part.compare()
        counted += len(part.expected)
        missed += part.undetected()
    print(f"{counted} values in {time.monotonic() - started:.0f} s")
    for name in missed:
        print(f"a planted error is not noticed: {name}")
    sys.exit(not passed or bool(missed))


def parts(program, repositories, tokens):
    path = program.folder / "holes.jsonl"
    tasks = sample_tasks(path, "line", {"parcelflow": 60, "quillpad": 45, "tidewatch": 30})
    default, reference = retrieval.WindowSettings(), retrieval.WindowSettings(strict=False)
    yield from window_parts(program, REPOSITORIES, repositories, tokens, tasks, path, "default", default, [])
    yield from window_parts(program, REPOSITORIES, repositories, tokens, tasks, path, "repocoder", reference, ["--profile", "repocoder"])
    yield from odd_file_parts(program, tokens)
    for kind in ("line", "api", "chunk"):
        yield from score_parts(program, kind)
    yield from interval_parts(program)
    yield from chunk_parts(program, repositories, tokens, "line", 20, (1024, 512, 512))
    yield from chunk_parts(program, repositories, tokens, "function", 50, (1024, 512, 512))
    some = write(program.folder / "some.jsonl", tasks[::3])
    yield from ranker_parts(program, repositories, tokens, tasks[::3], some)
    yield from instance_parts(program, repositories)
    yield from label_parts(program)
    yield from sweep_parts(program, program.folder / "labels/labels.jsonl")


main()
