#!/usr/bin/env python3
"""Compares near duplicates with datatrove's: the same clusters of the same texts, and how long each takes on one thread.

    cargo build --release --example near_duplicates
    python3 -m venv venv
    venv/bin/pip install datatrove==0.10.1 numpy==2.4.6 regex==2026.11.19 xxhash==3.8.2 tokenizers==0.23.3 orjson==3.13.0
    venv/bin/python tests/min_hash_agreement.py FOLDER...

A text is the files of a folder below FOLDER, one after another. Folders are also edited, so that there are near duplicates: in a copy
of each, every word of a share of the lines is another one. `--english` runs datatrove with its default words too (needs spacy) and
says how far the repositories that it drops are ours.

`--stack FOLDER`, of scripts/synthetic-stack.py (needs pyarrow), compares the repositories there instead: the clusters must be the
planted ones. `--ours` leaves datatrove out.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/fixtures/min_hash"))
import theirs  # noqa: E402

ENDS = {".py", ".pyi", ".java", ".ts", ".tsx", ".cs", ".go", ".js", ".c", ".h", ".cpp", ".rs"}


def texts_of(folders, most):
    """Texts of folders, then edited copies of them."""
    found, size = [], 0
    for folder in sorted({path.parent for below in folders for path in pathlib.Path(below).rglob("*") if path.suffix in ENDS}):
        files = sorted(path for path in folder.iterdir() if path.suffix in ENDS and path.is_file())
        text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
        found.append(text)
        size += len(text)
        if size > most:
            break
    draw = random.Random(1)
    copies = []
    for text in found:
        share = draw.choice([0, 0.01, 0.02, 0.05, 0.1, 0.2])
        lines = [f"line {draw.random()} of {number}" if draw.random() < share else line
                 for number, line in enumerate(text.split("\n"))]
        copies.append("\n".join(lines))
    return found + copies


def stack(folder):
    """Repositories of a synthetic stack: their texts, by name, and the clusters that were planted."""
    import pyarrow.parquet

    found = {}
    for path in sorted(pathlib.Path(folder).glob("data/*.parquet")):
        table = pyarrow.parquet.read_table(path, columns=["max_stars_repo_name", "max_stars_repo_path", "content"])
        for name, file, text in zip(*(column.to_pylist() for column in table.columns)):
            found.setdefault(name, []).append((file, text))
    names = sorted(found)
    texts = ["\n".join(text for _, text in sorted(found[name])) for name in names]
    truth = [json.loads(line) for line in pathlib.Path(folder, "truth.jsonl").read_text().splitlines()]
    planted = [sorted([names.index(one["repo_name"]), names.index(one["of"])]) for one in truth if "of" in one]
    return texts, sorted(planted), names


def dropped(clusters):
    """Which texts are dropped where the first of each cluster stays."""
    return {place for places in clusters for place in places[1:]}


def pairs(clusters):
    return {(one, other) for places in clusters for one in places for other in places if one < other}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=[str(ROOT / "data/repos")])
    parser.add_argument("--program", default=ROOT / "target/release/examples/near_duplicates")
    parser.add_argument("--most", type=int, default=20_000_000, help="characters of texts, without copies")
    parser.add_argument("--english", action="store_true")
    parser.add_argument("--stack")
    parser.add_argument("--ours", action="store_true")
    options = parser.parse_args()
    if options.stack:
        texts, planted, names = stack(options.stack)
    else:
        texts, planted, names = texts_of(options.folders, options.most), None, None
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")
        file.flush()
        run = subprocess.run([options.program, file.name], check=True, capture_output=True, text=True)
    ours = [json.loads(line) for line in run.stdout.splitlines()]
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts)} texts, {size:.1f} MB: {len(ours)} clusters, {len(dropped(ours))} texts to drop")
    wrong = 0
    if planted is not None:
        said = {True: "not found", False: "not planted"}
        for cluster in [one for one in ours + planted if (one in ours) != (one in planted)]:
            print(f"{said[cluster in planted]}: {', '.join(names[place] for place in cluster)}")
            wrong = 1
    if options.ours:
        return wrong
    step = theirs.signature_step()
    start = time.process_time()
    for text in texts:
        shingles = step.get_shingles(text)
        if shingles.size:
            step.get_signature(shingles)
    seconds = time.process_time() - start
    expected = theirs.clusters(texts)
    speed = float(run.stderr.split(", ")[1].split()[0])
    print(f"signatures: {speed:.1f} MB/s, datatrove {size / seconds:.2f} MB/s, {speed / (size / seconds):.0f} times")
    if options.english:
        start = time.process_time()
        english = theirs.clusters(texts, words="en")
        seconds = time.process_time() - start
        both, of_us, of_them = dropped(ours) & dropped(english), dropped(ours), dropped(english)
        print(f"datatrove with English words: {len(of_them)} to drop, {len(of_us)} ours, {len(both)} in both; "
              f"{len(pairs(ours) & pairs(english))} pairs in both, {len(pairs(ours) - pairs(english))} ours alone, "
              f"{len(pairs(english) - pairs(ours))} theirs alone; {size / seconds:.2f} MB/s")
    if ours != expected or not ours:
        print(f"other clusters: {[one for one in ours if one not in expected]} for {[one for one in expected if one not in ours]}")
        return 1
    print("the same clusters")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
