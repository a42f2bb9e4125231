"""Writes a Llama that train.py trained as a GGUF file, which llama.cpp's server reads.

    python docs/to_gguf.py base.gguf model/epoch-2 trained.gguf

`base.gguf` is the file of the pretrained model: settings and tokenizer are taken from it, and the new tokens are added.
Needs the packages gguf, torch and transformers.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import quantize
from safetensors import safe_open

CONTROL = gguf.TokenType.CONTROL
TYPE = gguf.GGMLQuantizationType.Q8_0


def interleaved(weight, heads):
    """The rows of a projection in the order of GGUF, where the two halves of a head's rotation alternate."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_settings(writer, reader, tokens, layers):
    """Copies the settings of a file; `tokens` and `layers` are those of the model."""
    arrays = {"tokenizer.ggml.tokens": tokens}
    for name, filler in {"tokenizer.ggml.token_type": CONTROL, "tokenizer.ggml.scores": 0.0}.items():
        if field := reader.get_field(name):
            known = field.contents()
            arrays[name] = known + [filler] * (len(tokens) - len(known))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ["general.architecture", "general.file_type"]:
            continue
        value = arrays.get(name, field.contents())
        if name.endswith(".vocab_size"):
            value = len(tokens)
        if name.endswith(".block_count"):
            value = layers
        kind = field.types[0]
        writer.add_key_value(name, value, kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)


def write_tensors(writer, folder, config, tokens):
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    with safe_open(folder / "model.safetensors", "pt") as tensors:
        for name in tensors.keys():
            weight = tensors.get_tensor(name).float().numpy()
            if weight.ndim == 1:
                writer.add_tensor(names.get_name(name, [".weight"]), weight)
                continue
            layer = name.split(".")[-2]
            if layer in heads:
                weight = interleaved(weight, heads[layer])
            if layer in ["embed_tokens", "lm_head"]:
                weight = weight[: len(tokens)]
            writer.add_tensor(names.get_name(name, [".weight"]), quantize(weight, TYPE), raw_dtype=TYPE)


def main(base, folder, output):
    reader, folder = gguf.GGUFReader(base), Path(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "llama":
        sys.exit(f"{folder} is a {config['model_type']}: only a Llama is written")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = list(reader.get_field("tokenizer.ggml.tokens").contents())
    added = sorted(tokenizer["added_tokens"], key=lambda token: token["id"])
    for token in added:
        if token["id"] < len(tokens) and tokens[token["id"]] != token["content"] or token["id"] > len(tokens):
            sys.exit(f"{base} is not the file of this model: token {token['id']} is not {token['content']!r} there")
        if token["id"] == len(tokens):
            tokens.append(token["content"])
    writer = gguf.GGUFWriter(output, "llama")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    write_settings(writer, reader, tokens, config["num_hidden_layers"])
    write_tensors(writer, folder, config, tokens)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
