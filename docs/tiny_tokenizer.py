"""Trains a small byte-level BPE tokenizer with StarCoder's special tokens on the contexts of labels.

    python tiny_tokenizer.py labels.jsonl… tokenizer.json
"""

import json
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

*labels, output = sys.argv[1:]
records = [json.loads(line) for path in labels for line in open(path, encoding="utf-8")]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=4096,
    special_tokens=["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
)
tokenizer.train_from_iterator((record["prompt"] + record["groundtruth"] for record in records), trainer)
tokenizer.save(output)
