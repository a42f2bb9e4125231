"""Exact matches and edit similarities as RepoCoder's, Repoformer's and CrossCodeEval's programs compute them."""

import ast
import difflib
import keyword
import re

import numpy as np
from texts import filled


def levenshtein(one, other, substitution=1):
    """Levenshtein distance over characters."""
    if len(one) < len(other):
        one, other = other, one
    codes = np.array([ord(character) for character in other], dtype=np.int64)
    steps = np.arange(len(other) + 1)
    row = steps.copy()
    for character in one:
        least = np.empty_like(row)
        least[0] = row[0] + 1
        least[1:] = np.minimum(row[1:] + 1, row[:-1] + substitution * (codes != ord(character)))
        row = np.minimum.accumulate(least - steps) + steps
    return int(row[-1])


def similarity(one, other):
    return 1 - levenshtein(one, other) / max(len(one), len(other))


def fuzz_ratio(one, other):
    """`fuzz.ratio` with python-Levenshtein, from 0 to 1: only insertions and deletions, rounded to a whole percentage."""
    total = len(one) + len(other)
    ratio = 1 - levenshtein(one, other, 2) / total if total else 1.0
    return round(100 * ratio) / 100


def repocoder(target, prediction):
    wanted = [line.strip() for line in target.splitlines() if line.strip()]
    found = [line.strip() for line in prediction.splitlines() if line.strip()][: len(wanted)]
    one, other = "\n".join(wanted), "\n".join(found)
    return {"em": float(wanted == found), "es": similarity(one, other) if one or other else 1.0}


def code_tokens(text):
    text = re.sub(r"([^A-Za-z0-9_])", r" \1 ", text)
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return text.replace('"', "`").replace("'", "`").split()


def repoformer(target, prediction, ratio=fuzz_ratio):
    found = "\n".join(filled(prediction)[: len(filled(target))])
    one, other = target.strip(), found.strip()
    return {
        "em": float(code_tokens(target) == code_tokens(found)),
        "es": similarity(one, other) if one or other else 0.0,
        "es_fuzz": ratio(other, one),
    }


def difflib_ratio(one, other):
    """`fuzz.ratio` without python-Levenshtein: it depends on the order of the texts."""
    return round(100 * difflib.SequenceMatcher(None, one, other).ratio()) / 100


def chars(target, prediction):
    return {"em": float(target == prediction), "es": similarity(target, prediction) if target or prediction else 1.0}


class InDoubt(Exception):
    """Python's own parser refuses an indentation that CrossCodeEval's, tree-sitter, may accept."""


def parses(code):
    """True if the text has no syntax error. Empty blocks are filled first, because tree-sitter accepts them and Python does not."""
    filler, lines = " " * 200 + "pass", code.split("\n")
    for is_last, attempt in (False, [*lines, filler]), (True, lines):
        for _ in range(len(lines)):
            try:
                ast.parse("\n".join(attempt))
                return True
            except IndentationError as error:
                if "expected an indented block" in error.msg:
                    attempt = [*attempt[: error.lineno - 1], filler, *attempt[error.lineno - 1 :]]
                elif is_last:
                    raise InDoubt from error
                else:
                    break
            except (SyntaxError, ValueError):
                break
    return False


def first_statement(prompt, completion):
    """CrossCodeEval's cut of Python: before the first newline up to which the text parses, if anything but white space follows."""
    for place in range(len(completion) - 1):
        if completion[place + 1] == "\n" and completion[place + 1 :].strip() and parses(prompt + completion[: place + 1]):
            return completion[: place + 1].rstrip()
    return completion


STRINGS = re.compile(r'"([^"\\]*(\\.[^"\\]*)*)"|\'([^\'\\]*(\\.[^\'\\]*)*)\'')
KEYWORDS = set(keyword.kwlist) - {"True", "False"}


def identifiers(text):
    return [
        word
        for word in re.findall(r"\w+", STRINGS.sub("", text))
        if re.match(r"[_a-zA-Z][_a-zA-Z0-9]*", word) and word not in KEYWORDS
    ]


def without_comments(text):
    return re.sub(r"//.*", "", re.sub(r"#.*", "", text))


def crosscodeeval(target, prediction, prompt):
    found, wanted = without_comments(first_statement(prompt, prediction)), without_comments(target)
    lines = [[line.strip() for line in text.split("\n") if line.strip()] for text in (found, wanted)]
    found_ids, wanted_ids = identifiers(found), identifiers(wanted)
    both = len(set(found_ids) & set(wanted_ids))
    precision = both / len(set(found_ids)) if found_ids else 0.0
    recall = both / len(set(wanted_ids)) if wanted_ids else 0.0
    return {
        "em": float(lines[0] == lines[1]),
        "es": fuzz_ratio(found.strip(), wanted.strip()),
        "id_em": float(found_ids == wanted_ids),
        "id_precision": precision,
        "id_recall": recall,
        "id_f1": 2 * both / (len(set(found_ids)) + len(set(wanted_ids))) if both else 0.0,
    }
