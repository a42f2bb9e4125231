"""Documents and scores of lm-evaluation-harness tasks, written by repoformer (`convert --to lm-eval`).

The scores equal those of `repoformer eval` to the bit: formulas, cuts and the order of sums are the same. Needs lm-eval
0.4.10 or newer, and no other package.
"""

import json
import re
from pathlib import Path

import datasets


def documents(documents_file, **_):
    """Reads the documents of a task: a file of JSON lines beside this one."""
    path = Path(__file__).with_name(documents_file)
    with path.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return datasets.DatasetDict(test=datasets.Dataset.from_list(records))


def score(doc, results):
    """Scores the answer to a document by the metrics that it names."""
    prediction = restore(doc["withheld"], results[0])
    values = {}
    for metric in doc["metrics"]:
        for name, value in METRICS[metric](doc["target"], prediction).items():
            values[f"{metric}.{name}"] = value
    # lm-eval also puts an empty text where the server gave none.
    values["empty"] = float(prediction == "")
    return values


def mean(values):
    """Mean of values, added one after the other: `sum` of Python 3.12 and newer corrects its rounding."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


def repocoder(target, prediction):
    """RepoCoder's scores: stripped non-blank lines, as many as the target has."""
    target = stripped_lines(target)
    prediction = stripped_lines(prediction)[: len(target)]
    return {
        "em": float(prediction == target),
        "es": similarity("\n".join(target), "\n".join(prediction)),
    }


def repoformer(target, prediction):
    """Repoformer's scores: non-blank lines, as many as the target has; code tokens decide the exact match."""
    count = sum(1 for line in target.split("\n") if line.strip())
    lines = [line for line in prediction.split("\n") if line.strip()]
    prediction = "\n".join(lines[:count])
    em = code_tokens(prediction) == code_tokens(target)
    target, prediction = target.strip(), prediction.strip()
    total = len(target) + len(prediction)
    indel = 1.0 - (total - 2 * common(target, prediction)) / total if total else 1.0
    return {
        "em": float(em),
        "es": similarity(target, prediction) if total else 0.0,
        "es_fuzz": round(100.0 * indel) / 100.0,
    }


def chars(target, prediction):
    """Scores of the texts as they are."""
    return {"em": float(prediction == target), "es": similarity(target, prediction)}


METRICS = {"repocoder": repocoder, "repoformer": repoformer, "chars": chars}


def stripped_lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def code_tokens(text):
    """Words, split between a small and a capital letter, and other characters; both quotes are the same token."""
    tokens = re.findall(r"(?:[A-Z0-9_]|[a-z](?![A-Z]))*[A-Za-z0-9_]|\S", text)
    return ["`" if token in ('"', "'") else token for token in tokens]


def similarity(a, b):
    """1 - edit distance / length of the longer text; 1 for two empty texts."""
    longest = max(len(a), len(b))
    return 1.0 - distance(a, b) / longest if longest else 1.0


def distance(a, b):
    """Levenshtein distance by Myers' bit vectors in Hyyrö's form: a column of the table is two whole numbers."""
    if len(a) < len(b):
        a, b = b, a
    if not b:
        return len(a)
    places = places_of(a)
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    rises, falls, found = full, 0, len(a)
    for c in b:
        equal = places.get(c, 0)
        same = (((equal & rises) + rises) ^ rises) | equal | falls
        right = falls | (full & ~(same | rises))
        left = same & rises
        if right & last:
            found += 1
        elif left & last:
            found -= 1
        right = (right << 1) | 1
        rises = full & ((left << 1) | ~(same | right))
        falls = full & right & same
    return found


def common(a, b):
    """Length of the longest common subsequence, by Hyyrö's bit vectors."""
    places = places_of(a)
    full = (1 << len(a)) - 1
    row = full
    for c in b:
        found = row & places.get(c, 0)
        row = full & ((row + found) | (row - found))
    return len(a) - bin(row).count("1")


def places_of(text):
    """The places of each character as bits of a whole number."""
    places = {}
    for place, c in enumerate(text):
        places[c] = places.get(c, 0) | 1 << place
    return places


def restore(withheld, written):
    """The answer behind the white space at the end of the prompt that was not sent."""
    *lines, indentation = withheld.split("\n")
    for number in range(len(lines)):
        line, end, rest = written.partition("\n")
        if number == 0 and not end:
            return ""
        # Behind the first line end, only blank lines are those that were withheld.
        if not end or (number > 0 and line.strip(" \t\r")):
            break
        written = rest
    same = 0
    while same < min(len(written), len(indentation)) and written[same] == indentation[same]:
        same += 1
    return written[same:]
