"""Chunks, ranks and prompts of Repoformer's method."""

import retrieval
from comparison import Near, Part
from damages import change_line, exchange
from program import PROJECT, REPOSITORIES, only, read
from rankers import RANKERS
from texts import filled

STAGES = ("window", "vectorize", "search", "prompt")


def chunk_parts(program, repositories, tokens, kind, size, budgets):
    """Repoformer's chunks, ranks and prompts, as in its paper's appendix A."""
    path = PROJECT / f"data/tasks/{kind}.jsonl"
    tasks, cache, stride = read(path), program.folder / f"paper-{kind}", size // 2
    # The three budgets fit side by side.
    shared = ["--profile", "repoformer-paper", "--max-prompt-tokens", 4096, "--repos-dir", REPOSITORIES, "--tasks", path]
    shared += ["--mode", "none,rg1", "--cache-dir", cache]
    for stage in STAGES:
        program(stage, *shared)
    cut = {name: retrieval.chunks(repository, size, stride) for name, repository in repositories.items()}
    yield Part(
        f"paper, {kind}: chunks of repositories",
        {name: program.inspect(cache / f"window/repos/{name}_chunk{size}_stride{stride}.bin") for name in repositories},
        lambda records: {
            (name, tuple(place["fpath_tuple"]), place["chunk"]): record["context"]
            for name in records
            for record in records[name]
            for place in record["metadata"]
        },
        {(name, path, number): text for name in cut for path in cut[name] for number, text in enumerate(cut[name][path])},
        {"a line of a chunk": lambda records: change_line(records["quillpad"][40])},
    )
    rankings, prompts = {}, {}
    for row, task in enumerate(tasks):
        file = tuple(task["metadata"]["fpath_tuple"])
        repository, chunks = repositories[file[0]], cut[file[0]]
        query = retrieval.last_lines(task["prompt"], size)
        rankings[row] = retrieval.search_chunks(repository, chunks, file, query, 10)
        source, left, target = repository.texts[file], task["prompt"], task["metadata"]["ground_truth"]
        assert source.startswith(left + target), task["metadata"]["task_id"]
        right = source[len(left + target) :]
        for mode, shown in ("none", ""), ("rg1", retrieval.cross_file_text(chunks, rankings[row])):
            prompts[row, mode] = retrieval.starcoder_prompt(left, right, shown, tokens, budgets)
    yield from rank_and_prompt_parts(program, f"paper, {kind}", repositories, cache, kind, 10, rankings, prompts)


def ranker_parts(program, repositories, tokens, tasks, path):
    """Chunks with the default settings, a small budget and each ranker of words."""
    cut = {name: retrieval.chunks(repository, 20, 10) for name, repository in repositories.items()}
    for ranker, score_chunks in RANKERS.items():
        cache = program.folder / f"ranker-{ranker}"
        shared = ["--unit", "chunks", "--ranker", ranker, "--max-prompt-tokens", 700, "--max-cross-file-tokens", 300]
        shared += ["--repos-dir", REPOSITORIES, "--tasks", path, "--mode", "rg1", "--cache-dir", cache]
        for stage in STAGES:
            program(stage, *shared)
        rankings, prompts = {}, {}
        for row, task in enumerate(tasks):
            file = tuple(task["metadata"]["fpath_tuple"])
            repository, chunks = repositories[file[0]], cut[file[0]]
            query = retrieval.last_lines(task["prompt"], 20)
            ranking = retrieval.search_chunks(repository, chunks, file, query, 20, score_chunks)
            rankings[row] = [(other, number, Near(float(score))) for other, number, score in ranking]
            shown = retrieval.cross_file_text(chunks, ranking[:10])
            prompts[row, "rg1"] = retrieval.plain_prompt(task["prompt"], shown, tokens, 700, 300)
        yield from rank_and_prompt_parts(program, ranker, repositories, cache, path.stem, 20, rankings, prompts)


def rank_and_prompt_parts(program, name, repositories, cache, benchmark, top_k, rankings, prompts):
    """Compares the ranks of mode rg1, and the prompts of every mode in `prompts`, whose keys are row and mode."""
    yield Part(
        f"{name}: top {top_k}",
        [
            record
            for repository in repositories
            for record in program.inspect(only(cache, f"retrieval/{benchmark}/rg1/{repository}_*.bin"))
        ],
        chunk_ranks,
        {
            (row, rank, key): value
            for row, ranking in rankings.items()
            for rank, (file, number, score) in enumerate(ranking)
            for key, value in (("chunk", (file, number)), ("score", score))
        },
        {"two fragments exchanged": lambda records: exchange(records[3]["top_k_context"])},
    )
    yield Part(
        f"{name}: prompts",
        {mode: read(only(cache, f"prompts/{benchmark}/{mode}-*.jsonl")) for mode in sorted({mode for _, mode in prompts})},
        lambda records: {(record["metadata"]["row"], mode): record["prompt"] for mode in records for record in records[mode]},
        prompts,
        {"a blank in a prompt": lambda records: records["rg1"][2].update(prompt=records["rg1"][2]["prompt"].replace("# ", "#", 1))},
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
                repository.texts[file],
                [("/".join(other[1:]), cut[other][chunk], score) for other, chunk, score in ranking],
            )
        yield Part(
            f"instances of {kind}s",
            instances,
            lambda records: {
                number: (
                    record["prompt"] + record["groundtruth"] + record["right_context"],
                    [
                        (chunk["filename"], chunk["retrieved_chunk"], chunk["score"])
                        for chunk in record["crossfile_context"]["list"]
                    ],
                )
                for number, record in enumerate(records)
            },
            expected,
            {"two chunks exchanged": lambda records: exchange(records[1]["crossfile_context"]["list"])},
        )
