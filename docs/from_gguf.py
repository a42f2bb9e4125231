"""Writes the model of a GGUF file as a folder that train.py and vLLM read: weights in float32, settings and tokenizer.

    python docs/from_gguf.py model.gguf folder [LAYERS]

With LAYERS only that many of the first layers are kept, for a trial. Needs the packages gguf, torch and transformers.
"""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer


def main(file, folder, layers=None):
    file = Path(file)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    # The model that was read says that it is quantized, and is not written.
    config = type(read.config)(**{name: value for name, value in read.config.to_dict().items() if name != "quantization_config"})
    weights = read.state_dict()
    if layers:
        config.num_hidden_layers = int(layers)
        # Names of a layer's weights have its number: `model.layers.12.mlp.up_proj.weight`.
        is_left_out = lambda name: name.startswith("model.layers.") and int(name.split(".")[2]) >= int(layers)
        weights = {name: weight for name, weight in weights.items() if not is_left_out(name)}
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(weights)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
