"""Scores of predictions, means, intervals and comparisons."""

import json

import decisions
import numpy as np
import scores
from comparison import Between, Near, Part
from damages import halve, narrow, nudge, nudge_more
from program import PROJECT, REPOSITORIES, only, read, write

METRICS = "repocoder,repoformer,repoformer-difflib,crosscodeeval,chars"


def score(task, prediction, found):
    """A task's scores by each metric, and whether CrossCodeEval's scores are in doubt. Scores in doubt are copied from `found`."""
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
    """Means over all tasks and over each repository, and the bounds of the intervals' ends."""
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
    """The same values in the output of `eval --format json`."""
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
        predictions = {
            record["metadata"]["row"]: record for record in read(only(cache, f"predictions/{kind}/{mode}-*-in-context.jsonl"))
        }
        file = program.folder / f"{kind}-{mode}-scores.jsonl"
        program("eval", *shared, "--mode", mode, "--metrics", METRICS, "--per-task", "--format", "jsonl", "-o", file)
        found = read(file)
        results, doubts = zip(*(score(task, predictions[row]["choices"][0]["text"], found[row]) for row, task in enumerate(tasks)))
        assert sum(doubts) <= len(tasks) / 10, f"{sum(doubts)} cuts of statements are in doubt"
        sides.append(results)
        compared = lambda row, metric, doubts=doubts: not (metric == "crosscodeeval" and doubts[row])
        yield Part(
            f"{kind}, {mode}: scores of tasks"
            + (f" ({sum(doubts)} cut by tree-sitter alone, not compared)" if any(doubts) else ""),
            found,
            lambda records, compared=compared: {
                (record["row"], metric, value): number
                for record in records
                for metric in results[0]
                if compared(record["row"], metric)
                for value, number in record[metric].items()
            },
            {
                (row, metric, value): number
                for row, result in enumerate(results)
                for metric, fields in result.items()
                if compared(row, metric)
                for value, number in fields.items()
            },
            {
                "an edit similarity": lambda records: nudge(records[4]["repocoder"], "es"),
                "an exact match": lambda records: records[8]["repoformer"].update(em=1 - records[8]["repoformer"]["em"]),
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
            (record["measure"], *name): value
            for record in records
            for name, value in {
                ("a",): record["a"]["mean"],
                ("b",): record["b"]["mean"],
                ("difference",): record["difference"]["mean"],
                ("low",): record["difference"]["low"],
                ("high",): record["difference"]["high"],
                ("p", "tasks"): record["p"]["tasks"]["p"],
                ("p", "repositories"): record["p"]["repositories"]["p"],
                ("tasks",): (record["better"], record["same"], record["worse"]),
            }.items()
        },
        comparison(tasks, *sides),
        {
            "a difference": lambda records: nudge_more(records[1]["difference"], "mean"),
            "half of a p": lambda records: halve(records[1]["p"]["repositories"]),
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
                (name, "a"): mean(before),
                (name, "b"): mean(after),
                (name, "difference"): mean(differences),
                (name, "low"): Between(*low),
                (name, "high"): Between(*high),
                (name, "tasks"): tuple(
                    sum(of(difference) for difference in differences) for of in (lambda d: d > 0, lambda d: d == 0, lambda d: d < 0)
                ),
            }
            for unit, numbers in ("tasks", differences), ("repositories", [sum(group) for group in groups.values()]):
                p = decisions.sign_flips(numbers)
                expected[name, "p", unit] = Between(*p) if isinstance(p, tuple) else Near(p)
    return expected


def interval_parts(program):
    """Intervals over 20 groups of unequal sizes, over the tasks of one repository, and over 2,100 tasks."""
    template = read(PROJECT / "data/tasks/line.jsonl")
    chance = np.random.default_rng(7)
    sizes = {"groups": [3 + 2 * group for group in range(20)], "tasks": [45], "many tasks": [2100]}
    for name, counts in sizes.items():
        records, results = [], []
        for group, count in enumerate(counts):
            for number in range(count):
                task = template[int(chance.integers(len(template)))]
                target = task["metadata"]["ground_truth"]
                # Larger groups predict shorter parts of the target, so the mean of the groups' means differs from the mean over tasks.
                text = target[: int(len(target) * chance.beta(2, 1 + group / 2))] if chance.random() < 0.8 else target
                metadata = task["metadata"] | {"task_id": f"g{group}/{number}", "fpath_tuple": [f"g{group}", "a.py"]}
                records.append({"prompt": task["prompt"], "metadata": metadata, "choices": [{"text": text}]})
                results.append({"repocoder": scores.repocoder(target, text)})
        path = write(program.folder / f"interval-{name.replace(' ', '-')}.jsonl", records)
        tasks = write(
            program.folder / f"interval-{name.replace(' ', '-')}-tasks.jsonl",
            [{key: record[key] for key in ("prompt", "metadata")} for record in records],
        )
        found = json.loads(program("eval", "--tasks", tasks, "--predictions", path, "--metrics", "repocoder", "--format", "json"))
        yield Part(
            f"intervals, {name}: {len(records)} tasks",
            found,
            summary_values,
            summary(records, results, 10_000),
            {"an interval of 90 %": lambda record: narrow(record["intervals"]["repocoder"]["es"])},
        )
