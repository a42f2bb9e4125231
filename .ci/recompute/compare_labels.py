"""Labels, training sequences and policies."""

import json
import math

import decisions
import labels
import numpy as np
import scores
from comparison import Between, Near, Part
from damages import nudge_more
from program import REPOSITORIES, TOKENIZERS, only, read, write
from texts import HuggingFace

RETRIEVAL_MS, GENERATION_MS, DECISION_MS = 700, 500, 40
# For each policy, its score and the time that it waits for: nothing, a decision of the model, a retrieval, a generation.
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
    """The columns of `policy sweep` for a policy at a threshold."""
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
    """Sweeps of policies on the labels, with made-up probabilities of a model."""
    chance = np.random.default_rng(20261127)
    chosen = [label for label in read(path) if not label["metadata"]["query_has_target"]]
    for number, label in enumerate(chosen):
        # The embedded model has hardly an exact match.
        if number % 7 == 0:
            label |= {"em_infile": 1, "es_infile": 1.0, "label": False}
        elif number % 5 == 0:
            label |= {"em_rg1": 1, "es_rg1": 1.0, "label": label["es_infile"] < 1}
        # Coarse, so that scores tie; a little better than chance.
        label["cc_probability"] = round(float(chance.beta(2 + label["label"], 3)), 2)
        label["entropy"] = round(float(chance.gamma(2)), 1)
        label["metadata"].pop("record_checksum", None)
    labelled = write(program.folder / "labels-with-signals.jsonl", chosen)
    shared = ["policy", "sweep", "--labels", labelled, "--retrieval-ms", RETRIEVAL_MS, "--generation-ms", GENERATION_MS]
    shared += ["--decision-ms", DECISION_MS, "--format", "jsonl"]
    thresholds = {policy: [0.05, 0.2, 0.35, 0.5, 0.8] for policy in POLICIES} | {"never": [None], "always": [None]}
    shares = {policy: share_threshold(policy, 30, chosen) for policy in ("oracle", "self", "trial-retrieval", "entropy")}
    fields = list(point("never", None, chosen))
    for name, given, of in (
        ("thresholds", "0.05,0.2,0.35,0.5,0.8", thresholds),
        ("shares of tasks", "30%", {policy: [threshold] for policy, threshold in shares.items()}),
    ):
        points = program(*shared, "--policy", ",".join(of), "--threshold", given)
        yield Part(
            f"policies, {name}",
            [json.loads(line) for line in points.splitlines()],
            lambda records: {
                (record["policy"], record["threshold"], field): record.get(field) for record in records for field in fields
            },
            {
                (policy, threshold, field): value
                for policy in of
                for threshold in of[policy]
                for field, value in point(policy, threshold, chosen).items()
            },
            {
                "an AUC": lambda records: nudge_more(records[-1], "auc"),
                "a calibration error": lambda records: nudge_more(
                    next(record for record in records if record["policy"] == "self"), "calibration_error"
                ),
                "a share of retrievals": lambda records: nudge_more(records[-1], "rag_rate"),
            },
        )


def share_threshold(policy, percent, chosen):
    """The threshold with which at most a share of the labels is retrieved for: the highest score of the others."""
    signals = sorted(map(POLICIES[policy][0], chosen), reverse=True)
    return signals[percent * len(signals) // 100]


def label_parts(program):
    """Labels of the embedded model's completions, and their training sequences."""
    folder = program.folder / "labels"
    program(
        "label",
        "all",
        "--repos-dir",
        REPOSITORIES,
        "--no-filter",
        "--kind",
        "chunk",
        "--tokenizer",
        TOKENIZERS / "starcoder.json",
        "-o",
        folder,
    )
    chosen = read(folder / "labels.jsonl")
    predictions = {
        mode: {
            record["metadata"]["task_id"]: record["choices"][0]["text"]
            for record in read(only(folder, f"**/predictions/*/{mode}-*.jsonl"))
        }
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
            "label",
            "verbalize",
            "--labels",
            folder / "labels.jsonl",
            "--tokenizer",
            path,
            "--max-sequence-tokens",
            most,
            "--max-cc-tokens",
            most_cross_file,
            "--lambda",
            2,
            "--prompt-style",
            style,
            "-o",
            sequences,
        )
        tokens = HuggingFace(path)
        # Any ten will do; all would take a minute longer.
        some = chosen[:: max(1, len(chosen) // 10)][:10]
        names = {label["metadata"]["task_id"] for label in some}
        yield Part(
            f"sequences, {tokenizer}, {most} tokens",
            [record for split in ("train", "validation") for record in read(sequences / f"{split}.jsonl")],
            lambda records: {
                (record["task_id"], field): record[field]
                if field != "loss_weights"
                else [float(np.float32(weight)) for weight in record[field]]
                for record in records
                if record["task_id"] in names
                for field in ("input_ids", "attention_mask", "labels", "eval_mask", "gen_mask", "loss_weights", "positive")
            },
            {
                (label["metadata"]["task_id"], field): value
                for label in some
                for field, value in labels.sequence(label, tokens, markers, most, most_cross_file, 2).items()
            },
            {
                "a token": lambda records: next(record for record in records if record["task_id"] in names)[
                    "input_ids"
                ].__setitem__(5, 70),
                "a mask": lambda records: next(record for record in records if record["task_id"] in names)["eval_mask"].__setitem__(
                    -1, 1
                ),
            },
        )
