"""Writes the model of a GGUF file as a folder that train.py and vLLM read: weights in float32, settings and tokenizer.

    python docs/from_gguf.py model.gguf folder [LAYERS]

LAYERS keeps so many of the first layers alone, for a trial. Needs the packages gguf, torch and transformers.
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
    if layers:
        config.num_hidden_layers = int(layers)
    model = AutoModelForCausalLM.from_config(config)
    known = model.state_dict()
    model.load_state_dict({name: weight for name, weight in read.state_dict().items() if name in known})
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
