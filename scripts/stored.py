#!/usr/bin/env python3
"""Keeps models and labels of scripts/trained.py, which take a GPU or hours, in `data/trained`, and brings them back.

    work/venv/bin/python scripts/stored.py keep work m0 labels      # after scripts/trained.py work --size full --anew --until labels
    other/venv/bin/python scripts/stored.py keep other m1           # after scripts/trained.py other --size full --until m1

m1 learns from the kept m0, so in a folder without `--anew`, and once `data/trained/m1*` is removed: what is kept is not trained.

Adapters are kept in 6 bits a weight, labels as their numbers alone: sequences and instances are drawn again, and have to be the same.
"""

import argparse
import hashlib
import io
import json
import lzma
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "data/trained"
sys.path.insert(0, str(HERE.parent / "docs"))

# Models, each with the one that its adapters are of, and the sequences that it learned from.
MODELS = {"m0": ("base", "middle"), "m1": ("m0", "labels/sequences")}
# Numbers of a label, in the order of its fields.
NUMBERS = ["es_infile", "es_rg1", "em_infile", "em_rg1", "min_logprob"]
# The largest whole number of 6 bits.
LARGEST = 31


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compressed(data):
    return lzma.compress(data, preset=9)


# ---- adapters


def in_six_bits(tensor):
    """Whole numbers of 6 bits, and the scale of each row."""
    import torch

    scale = (tensor.abs().amax(1, keepdim=True) / LARGEST).half().clamp(min=1e-7)
    return (tensor / scale.float()).round().clamp(-LARGEST, LARGEST).to(torch.int8), scale


def pack(adapter):
    """Tensors of adapters as bytes: of both matrices a scale for each of the ranks."""
    from safetensors.torch import save

    tensors = {}
    for name, tensor in adapter.items():
        if "lora_" in name:
            tensors[name], tensors[name + ".scale"] = in_six_bits(tensor.float() if ".lora_A." in name else tensor.float().T.contiguous())
        else:
            tensors[name] = tensor.half()
    return compressed(save(tensors))


def unpack(data):
    """Tensors of adapters in float32."""
    from safetensors.torch import load

    kept, adapter = load(lzma.decompress(data)), {}
    for name, tensor in kept.items():
        if name.endswith(".scale"):
            continue
        tensor = tensor.float() * kept.get(name + ".scale", kept[name].new_ones(1)).float()
        adapter[name] = tensor.T.contiguous() if ".lora_B." in name else tensor
    return adapter


def keep_model(work, name):
    """Keeps the adapters of a model, its log and its settings."""
    from safetensors.torch import load_file
    from train import digest

    training, (base, sequences) = work / name / "training", MODELS[name]
    if base in MODELS and not is_kept(work, base):
        sys.exit(f"{work}/{base} is not the kept one: {name} has to learn from that")
    result = json.loads((training / "result.json").read_text(encoding="utf-8"))
    result["settings"] |= {"sequences": digest(work / sequences), "model": f"{base}/model"}
    if base in MODELS:
        result["base"] = digest_of(KEPT / f"{base}.safetensors.xz")
    (KEPT / f"{name}.safetensors.xz").write_bytes(pack(load_file(training / result["last"] / "adapter/adapter_model.safetensors")))
    (KEPT / f"{name}-log.jsonl.xz").write_bytes(compressed((training / "log.jsonl").read_bytes()))
    (KEPT / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def is_kept(work, name):
    """Whether a model in a folder was brought back: training leaves its adapters there."""
    last = json.loads((work / name / "training/result.json").read_text(encoding="utf-8"))["last"]
    return not (work / name / "training" / last / "adapter").exists()


def bring_model(work, name):
    """Writes a model as train.py does, but for its state."""
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from train import adapted, digest, pretrained

    result, (base, sequences) = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8")), MODELS[name]
    if digest(work / sequences) != result["settings"]["sequences"]:
        sys.exit(f"{KEPT}: {name} learned from other sequences than {work}/{sequences}; --anew trains it")
    if base in MODELS and digest_of(KEPT / f"{base}.safetensors.xz") != result["base"]:
        sys.exit(f"{KEPT}: {name} learned from another {base} than the kept one; train it again, and keep it")
    training, last = work / name / "training", result["last"]
    model, tokenizer = pretrained(work / base / "model", work / sequences / "tokenizer.json")
    model = adapted(model, result["settings"]["lora"], sorted(tokenizer.added_tokens_decoder))
    adapter, wanted = unpack((KEPT / f"{name}.safetensors.xz").read_bytes()), get_peft_model_state_dict(model)
    if other := {name for name in wanted if "lora_" in name} ^ {name for name in adapter if "lora_" in name}:
        sys.exit(f"{KEPT}: the kept adapters and those of the model differ: {min(other)}")
    set_peft_model_state_dict(model, adapter)
    model.merge_and_unload().save_pretrained(training / last)
    tokenizer.save_pretrained(training / last)
    (training / "log.jsonl").write_bytes(lzma.decompress((KEPT / f"{name}-log.jsonl.xz").read_bytes()))
    (training / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


# ---- labels


def keep_labels(work):
    """Keeps the numbers of the labels, and what is the same in all."""
    import numpy

    columns, same = {name: [] for name in NUMBERS}, None
    with open(work / "labels/instances-labels.jsonl", encoding="utf-8") as file:
        for line in file:
            label = json.loads(line)
            for name, values in columns.items():
                values.append(label.get(name))
            same = {name: label[name] for name in ["metric", "generation_model", "threshold"]}
    buffer = io.BytesIO()
    numpy.savez(buffer, **{name: numpy.array(values, dtype=float) for name, values in columns.items()})
    (KEPT / "labels.npz.xz").write_bytes(compressed(buffer.getvalue()))
    same["instances"] = digest_of(work / "drawn/instances.jsonl")
    (KEPT / "labels.json").write_text(json.dumps(same, indent=1) + "\n", encoding="utf-8")


def bring_labels(work, metric, gain):
    """Writes the labels of the instances, which are by this metric and least gain."""
    import numpy

    same = json.loads((KEPT / "labels.json").read_text(encoding="utf-8"))
    if digest_of(work / "drawn/instances.jsonl") != same.pop("instances"):
        sys.exit(f"{KEPT}: the labels are of other instances than {work}/drawn; --anew makes them")
    if (metric, float(gain)) != (same["metric"], same["threshold"]):
        sys.exit(f"{KEPT}: the labels are by {same['metric']}, above {same['threshold']}, and not by {metric}, above {gain}; --anew makes them")
    columns = numpy.load(io.BytesIO(lzma.decompress((KEPT / "labels.npz.xz").read_bytes())))
    rows = zip(*(columns[name].tolist() for name in NUMBERS), strict=True)
    with open(work / "drawn/instances.jsonl", encoding="utf-8") as instances, open(work / "labels/instances-labels.jsonl", "w", encoding="utf-8") as file:
        for line, row in zip(instances, rows, strict=True):
            numbers = {name: value for name, value in zip(NUMBERS, row) if value == value}
            label = numbers | same | {"label": numbers["es_rg1"] - numbers["es_infile"] > same["threshold"]}
            file.write(line.rstrip()[:-1] + "," + json.dumps(label)[1:] + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Keeps models and labels in data/trained, or brings one of them back.")
    parser.add_argument("action", choices=["keep", "bring"])
    parser.add_argument("work", type=Path, help="folder of scripts/trained.py")
    parser.add_argument("names", nargs="+", help="m0, m1, labels; labels are brought with their metric and least gain")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in [*MODELS, "labels"]]
    if unknown and not (args.action == "bring" and args.names[0] == "labels"):
        parser.error(f"unknown name '{unknown[0]}'; known: {', '.join([*MODELS, 'labels'])}")
    if args.action == "keep":
        KEPT.mkdir(exist_ok=True)
        for name in args.names:
            keep_labels(args.work) if name == "labels" else keep_model(args.work, name)
    elif args.names[0] == "labels":
        if len(args.names) != 3:
            parser.error("labels are brought with their metric and least gain")
        bring_labels(args.work, *args.names[1:])
    else:
        for name in args.names:
            bring_model(args.work, name)
