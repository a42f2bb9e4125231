"""Fragments, queries, ranks and prompts: RepoCoder's windows, and Repoformer's chunks."""

import dataclasses
import os
import pathlib

import numpy as np
from rankers import jaccard
from texts import filled, read_source, words

HEAD = "# Here are some relevant code fragments from other files of the repo:"
FOUND_IN = "# the below code fragment can be found in:"
RULE = "# " + "-" * 50


@dataclasses.dataclass(frozen=True)
class Place:
    """A range of lines of a file. `line` is the line that the window was cut for, or the chunk's number."""

    path: tuple
    line: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class WindowSettings:
    """Settings of RepoCoder's method. If `strict`, a prompt never shows lines of its own hole."""

    size: int = 20
    slice_size: int = 2
    top_k: int = 20
    budget: int = 2000
    blocks: int = 10
    strict: bool = True


@dataclasses.dataclass
class Repository:
    """The Python files of a folder, by the path from the folder's name on, in the order of the joined paths."""

    name: str
    texts: dict
    files: dict  # path to the file behind its links

    @classmethod
    def read(cls, folder):
        texts, real = {}, {}
        for root, folders, files in os.walk(folder, followlinks=True):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                path = pathlib.Path(root, name)
                if name.endswith(".py") and not name.startswith(".") and path.is_file():
                    text = read_source(path)
                    if text is not None:
                        parts = (folder.name, *path.relative_to(folder).parts)
                        texts[parts], real[parts] = text, path.resolve()
        return cls(folder.name, dict(sorted(texts.items(), key=lambda item: "/".join(item[0]))), real)

    def lines(self, path):
        return self.texts[path].splitlines()

    def shows(self, place, task, strict):
        """True if the place is in another file than the task's, or ends before the part of the file that the prompt shows.
        If `strict`, a link to the task's file is the same file."""
        path = tuple(task["fpath_tuple"])
        same = self.files[place.path] == self.files[path] if strict else place.path == path
        return not same or place.end <= task["context_start_lineno"]


def windows(repository, size, slice_size):
    """Overlapping windows as a list of (text, places). Windows with the same text are merged."""
    step, before = max(1, size // slice_size), size // 2
    places = {}
    for path in repository.texts:
        lines = repository.lines(path)
        for line in range(0, len(lines), step):
            start, end = max(0, line - before), min(len(lines), line + size - before)
            if start < end:
                places.setdefault("\n".join(lines[start:end]), []).append(Place(path, line, start, end))
    return list(places.items())


def window_query(repository, task, mode, size, prediction=None):
    """The query of a mode, as (text, first line, end), or None if the query has no line."""
    path, line, first = tuple(task["fpath_tuple"]), task["line_no"], task["context_start_lineno"]
    lines, before = repository.lines(path), size // 2
    if mode == "rg1":
        start, end = max(first, line - size), line
    else:
        start, end = max(first, line - before), line + size - before
        if mode == "rg-rg":
            lines = lines[:line] + [text for text in prediction.splitlines() if text.strip()]
        end = min(len(lines), end)
    chosen = lines[start:end]
    if mode == "rg-rg":
        chosen = [text for text in chosen if text.strip()]
        if not chosen:
            return None
    return "\n".join(chosen), start, end


class TermSets:
    """Sets of terms, and the Jaccard similarity of each with another set."""

    def __init__(self, sets):
        self.numbers = {}
        rows, columns = [], []
        for row, terms in enumerate(sets):
            for term in terms:
                rows.append(row)
                columns.append(self.numbers.setdefault(term, len(self.numbers)))
        self.matrix = np.zeros((len(sets), len(self.numbers)), dtype=np.int32)
        self.matrix[rows, columns] = 1
        self.sizes = self.matrix.sum(axis=1)

    def similarities(self, terms):
        query = np.zeros(len(self.numbers), dtype=np.int32)
        query[[self.numbers[term] for term in terms if term in self.numbers]] = 1
        both = self.matrix @ query
        either = self.sizes + len(terms) - both
        return np.divide(both, either, out=np.zeros(len(both)), where=either > 0)


def search_windows(repository, fragments, index, terms, task, settings):
    """The most similar windows that the task may see, as (number, score), best first. Of equal scores the later window is first."""
    scores = index.similarities(terms)
    allowed = [
        number
        for number, (_, places) in enumerate(fragments)
        if any(repository.shows(place, task, settings.strict) for place in places)
    ]
    allowed.sort(key=lambda number: (-scores[number], -number))
    return [(number, scores[number]) for number in allowed[: settings.top_k]]


@dataclasses.dataclass
class Prompt:
    text: str
    chosen: list  # numbers of its fragments, best first


def window_prompt(repository, fragments, ranking, task, prompt, mode, tokens, settings):
    """RepoCoder's prompt: blocks of comments, the best next to the code."""
    path, first = tuple(task["fpath_tuple"]), task["context_start_lineno"]
    blocks, chosen, used = [], [], 20
    for number, _ in ranking:
        if len(chosen) == settings.blocks:
            break
        text, places = fragments[number]
        if settings.strict:
            places = [place for place in places if repository.shows(place, task, True)]
        lines = text.splitlines()
        if mode == "rg1":
            place = places[0]
            source = repository.lines(place.path)
            own = repository.files[place.path] == repository.files[path]
            last = first if settings.strict and own else len(source)
            end = min(place.end + settings.size // settings.slice_size, last)
            lines = source[max(0, end - settings.size) : end]
        names = ["# " + "/".join(place.path[1:]) for place in places]
        block = "\n".join([FOUND_IN, *names, RULE, *("# " + line for line in lines), RULE]) + "\n"
        length = len(tokens.encode(block))
        if used + length < settings.budget:
            used += length
            blocks.insert(0, block)
            chosen.append(number)
    return Prompt("".join([HEAD, "\n", RULE, "\n", *blocks, "\n", prompt]), chosen)


def path_distance(one, other):
    """Number of separators in both paths behind their common folder."""
    common = 0
    while common < min(len(one), len(other)) - 1 and one[common] == other[common]:
        common += 1
    return len(one) - common - 1 + len(other) - common - 1


def chunks(repository, size, stride):
    """Chunks of lines that are not blank, as {path: [text]}. A chunk without a word is left out and gets no number."""
    cut = {}
    for path, text in repository.texts.items():
        lines = filled(text)
        texts = ["\n".join(lines[start : start + size]) for start in range(0, len(lines), stride)]
        cut[path] = [text for text in texts if words(text)]
    return cut


def search_chunks(repository, cut, path, query, top_k, score=jaccard):
    """The most similar chunks of other files, as (path, number, score), best first. Of equal scores, the chunk of the nearer file
    is first."""
    others = [other for other in cut if repository.files[other] != repository.files[path]]
    files = sorted(others, key=lambda other: (path_distance(path[1:], other[1:]), "/".join(other[1:])))
    candidates = [(other, number) for other in files for number in range(len(cut[other]))]
    scores = score(query, [cut[other][number] for other, number in candidates])
    order = np.argsort(-scores, kind="stable")[:top_k]
    return [(*candidates[place], scores[place]) for place in order]


def last_lines(text, count):
    """The last lines of a text that are not blank."""
    return "\n".join(filled(text)[-count:])


def cross_file_text(cut, ranking):
    """The cross-file context: for each retrieved chunk the next one of its file, or itself if it is the last, as comments.
    Each text is shown once."""
    shown = {}
    for path, number, _ in ranking:
        shown.setdefault(cut[path][min(number + 1, len(cut[path]) - 1)], path)
    parts = [
        "\n".join([FOUND_IN, "# " + "/".join(path[1:]), *("# " + line for line in text.strip("\n").splitlines())]) + "\n\n"
        for text, path in shown.items()
    ]
    return HEAD + "\n\n" + "".join(parts)


def starcoder_prompt(left, right, cross_file, tokens, budgets):
    """The paper's prompt: the end of the left context, the beginning of the right one, the beginning of the cross-file context."""
    left_budget, right_budget, cross_file_budget = budgets
    left = tokens.decode(tokens.encode(left)[-left_budget:])
    right = tokens.decode(tokens.encode(right)[:right_budget])
    cross_file = tokens.decode(tokens.encode("\n\n" + cross_file)[:cross_file_budget]) if cross_file else ""
    return f"<fim_prefix>{left}<fim_suffix>{right}{cross_file}<fim_middle>"


def plain_prompt(left, cross_file, tokens, budget, cross_file_budget):
    """The cross-file context and as much of the left context's end as the budget of the whole prompt allows."""
    before = tokens.decode(tokens.encode(cross_file)[:cross_file_budget]) + "\n" if cross_file else ""
    ids = tokens.encode(left)
    for kept in range(len(ids), 0, -1):
        prompt = before + tokens.decode(ids[-kept:])
        if len(tokens.encode(prompt)) <= budget:
            return prompt
    return before
