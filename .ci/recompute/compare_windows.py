"""Windows, ranks and prompts of RepoCoder's method."""

import gzip
import tarfile

import retrieval
from comparison import Part
from damages import change_line, exchange, move, nudge
from program import FIXTURES, PROJECT, only, read, write


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
    program(
        "run", *arguments, "--repos-dir", corpus, "--tasks", path, "--mode", "none,rg1,rg-rg,gt", "--cache-dir", cache, skips=skips
    )
    fragments = {
        name: retrieval.windows(repository, settings.size, settings.slice_size) for name, repository in repositories.items()
    }
    indexes = {
        name: retrieval.TermSets([frozenset(tokens.encode(text)) for text, _ in windows]) for name, windows in fragments.items()
    }
    cut = f"ws{settings.size}_slice{settings.slice_size}"
    of_all = lambda folder: [
        record for repository in repositories for record in program.inspect(only(cache, f"{folder}/{repository}_{cut}*.bin"))
    ]
    some = list(repositories)[0]
    yield Part(
        f"{name}: windows of repositories",
        {repository: program.inspect(cache / f"window/repos/{repository}_{cut}.bin") for repository in repositories},
        lambda records: {
            (repository, number): (record["context"], [place_of(place) for place in record["metadata"]])
            for repository in records
            for number, record in enumerate(records[repository])
        },
        {
            (repository, number): (text, places_of(places))
            for repository in fragments
            for number, (text, places) in enumerate(fragments[repository])
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
                record["metadata"]["row"]: (
                    record["context"],
                    record["metadata"]["start_line_no"],
                    record["metadata"]["end_line_no"],
                )
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
                for record in records
                for rank, fragment in enumerate(record["top_k_context"])
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
    yield from window_parts(
        program, corpus, repositories, tokens, tasks, path, "odd files", retrieval.WindowSettings(), [], skips=True
    )
    uneven = retrieval.WindowSettings(size=15, slice_size=4, top_k=7, budget=900, blocks=3)
    arguments = ["--window-size", 15, "--slice-size", 4, "--top-k", 7, "--max-prompt-tokens", 900, "--max-blocks", 3]
    yield from window_parts(program, corpus, repositories, tokens, tasks, path, "odd files, uneven", uneven, arguments, skips=True)
