"""Trains a tiny model on the two losses of Repoformer, from the files of `repoformer label verbalize`.

    python train_tiny.py sequences model
"""

import sys

import torch
from datasets import load_dataset
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed

LAMBDA = 1.0
sequences, output = sys.argv[1:]
set_seed(0)

files = {split: f"{sequences}/{split}.parquet" for split in ["train", "validation"]}
data = load_dataset("parquet", data_files=files)  # or "json", and .jsonl
tokenizer = PreTrainedTokenizerFast(
    tokenizer_file=f"{sequences}/tokenizer.json", eos_token="<|endoftext|>", pad_token="<fim_pad>"
)
# Of a pretrained model instead: AutoModelForCausalLM.from_pretrained(name), then model.resize_token_embeddings(len(tokenizer)).
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=2048, tie_word_embeddings=True,
    )
)

COLUMNS = ["input_ids", "attention_mask", "labels", "eval_mask", "gen_mask"]
PADDING = {"input_ids": tokenizer.pad_token_id, "labels": -100}


def collate(rows):
    """Pads to the right, as the reference does, so that the decision's position says nothing of the label."""
    longest = max(len(row["input_ids"]) for row in rows)
    pad = lambda row, name: row[name] + [PADDING.get(name, 0)] * (longest - len(row[name]))
    return {name: torch.tensor([pad(row, name) for row in rows]) for name in COLUMNS}


class TwoLosses(Trainer):
    """λ·L_eval + L_gen, each a mean over its tokens of the batch."""

    seen = {True: [], False: []}

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        # The token at a position is predicted by the one before it.
        logits, labels = outputs.logits[:, :-1].transpose(1, 2), inputs["labels"][:, 1:]
        nll = cross_entropy(logits, labels, ignore_index=-100, reduction="none")
        masks = inputs["eval_mask"][:, 1:], inputs["gen_mask"][:, 1:]
        l_eval, l_gen = ((nll * mask).sum() / mask.sum() for mask in masks)
        self.seen[model.training].append((l_eval.item(), l_gen.item()))
        loss = LAMBDA * l_eval + l_gen
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        """Reports the two losses beside their sum."""
        for training, prefix in [(True, ""), (False, "validation_")]:
            if ("loss" if training else "eval_loss") in logs:
                parts = zip(["L_eval", "L_gen"], zip(*self.seen[training]))
                logs |= {prefix + name: round(sum(values) / len(values), 3) for name, values in parts}
                self.seen[training].clear()
        super().log(logs, *args, **kwargs)


trainer = TwoLosses(
    model=model,
    train_dataset=data["train"],
    eval_dataset=data["validation"],
    data_collator=collate,
    args=TrainingArguments(
        output_dir=output, num_train_epochs=4, per_device_train_batch_size=8, learning_rate=1e-3, warmup_steps=20,
        logging_steps=50, eval_strategy="epoch", save_strategy="no", remove_unused_columns=False, report_to=[], use_cpu=True,
        disable_tqdm=True,
    ),
)
trainer.train()
trainer.save_model(output)
tokenizer.save_pretrained(output)
