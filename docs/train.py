"""Trains a model on the two losses of Repoformer (section 3.3), from the files of `repoformer label verbalize`.

    accelerate launch docs/train.py sequences output --model bigcode/starcoderbase-1b
    python docs/train.py sequences output --tiny --batch 8 --lr 1e-3 --warmup 20 --epochs 4
"""

import argparse
import copy
import functools
import hashlib
import json
import math
import os
import random
import shutil
from contextlib import nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, gather_object, parse_flag_from_env
from datasets import load_dataset
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MASKS = ["eval_mask", "gen_mask"]
COLUMNS = ["input_ids", *MASKS]
# Fills up a batch: nothing of it is supervised.
FILLER = {name: torch.zeros(1, dtype=torch.long) for name in COLUMNS}
CLIP = 1.0


class Refused(SystemExit):
    """Ends the program with a reason."""


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description="Trains a model on the two losses of Repoformer.", allow_abbrev=False
    )
    parser.add_argument("sequences", type=Path, help="folder that `repoformer label verbalize` wrote")
    parser.add_argument("output", type=Path, help="folder for the models, log.jsonl and result.json")
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", help="pretrained model: a name or a folder")
    model.add_argument("--tiny", action="store_true", help="a Llama of two layers from scratch")
    parser.add_argument("--lambda", type=float, help="weight of L_eval [default: the λ written to the sequences]")
    parser.add_argument("--ablation", choices=["A1", "A2", "A3"], help="ablation of the paper's section 6")
    parser.add_argument("--lr", type=float, default=2e-5, help="learning rate after the warm-up [%(default)s]")
    parser.add_argument("--epochs", type=int, default=2, help="[%(default)s]")
    parser.add_argument("--warmup", type=int, default=50, help="steps of warm-up [%(default)s]")
    parser.add_argument("--batch", type=int, default=512, help="sequences of a step, on all devices [%(default)s]")
    parser.add_argument("--per-device", type=int, default=8, help="sequences on one device at once [%(default)s]")
    parser.add_argument("--gradient-checkpointing", action="store_true", help="less memory, more time")
    parser.add_argument("--lora", type=int, metavar="RANK", help="train adapters of this rank and the rows of special tokens alone")
    parser.add_argument("--compile", action="store_true", help="compile the layers first: takes a minute, and pays on a GPU")
    parser.add_argument("--bf16", action="store_true", help="bf16 on a CPU, too; GPUs that have it take it anyway")
    parser.add_argument("--seed", type=int, default=0, help="[%(default)s]")
    parser.add_argument("--save-steps", type=int, help="save the state after so many steps too, not only each epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the last state in the output folder")
    return parser.parse_args(arguments)


def settings_of(args):
    """Settings that a run's result depends on. The digest of the sequences stands for their path."""
    settings = {name: value for name, value in vars(args).items() if name not in ["output", "resume", "save_steps"]}
    return settings | {"sequences": digest(args.sequences)}


@functools.cache
def digest(sequences):
    """Digest of the files that are read."""
    digests = hashlib.sha256()
    for name in ["train.parquet", "validation.parquet", "tokenizer.json"]:
        path = sequences / name
        if not path.exists():
            raise Refused(f"{path} is missing: `repoformer label verbalize` writes it, unless --validation is 0")
        with open(path, "rb") as file:
            digests.update(hashlib.file_digest(file, "sha256").digest())
    return digests.hexdigest()


def differences(then, now):
    """Settings that are not what they were."""
    # A flag that there was not yet was not given.
    is_same = lambda name, value: then[name] == value if name in then else not value
    return [f"{name} was {then.get(name)} and is {value}" for name, value in now.items() if not is_same(name, value)]


# ---- the objective


def lambda_in_force(given, written, ablation):
    """Returns λ, `None` where one mean is taken over all tokens, and says where it comes from."""
    if ablation and given is not None:
        raise Refused(f"{ablation} has no λ: leave out --lambda")
    if ablation == "A1":
        return None, "one cross-entropy over all supervised tokens, without λ"
    if ablation:
        return 0.0, "L_gen alone" + ", without cross-file contexts" * (ablation == "A3")
    if given is None:
        return written, f"λ {written:g}, as written to the sequences"
    if not 0 <= given < math.inf:
        raise Refused(f"--lambda {given}: a weight is not negative")
    if given == written:
        return given, f"λ {given:g}"
    return given, f"λ {given:g}, as given; λ {written:g} in the sequences' loss_weights is not used"


def written_decision(split):
    """The λ in the column `loss_weights`, and the id of `<cc>`: weight and token of a positive sequence's decision."""
    row = next((row for row in split if row["positive"]), None)
    if row is None:
        raise Refused("no sequence for training is positive: nothing says when retrieval helps")
    at = row["eval_mask"].argmax()
    # Written with 32 bits: the shortest decimal that gives the same ones.
    return float(str(row["loss_weights"][at].numpy())), row["input_ids"][at].item()


def weights(decision, completion, counts, lam):
    """Weight of each token's cross-entropy, so that the weighted sum over the whole batch is its loss.

    `counts` are the tokens of L_eval, of L_gen, and of either, in all micro-batches on all devices.
    """
    of_eval, of_gen, of_either = counts.clamp(min=1)
    if lam is None:
        return (decision | completion) / of_either
    return lam * decision / of_eval + completion / of_gen


def token_losses(model, batch):
    """Cross-entropy of the supervised tokens of a batch, one after another, and which of them belong to L_eval and L_gen.

    Other positions get no logits, which would take more time and memory than the layers of a small model.
    """
    # The token at a position is predicted by the one before it.
    targets, decision, completion = (batch[name][:, 1:] for name in COLUMNS)
    decision, completion = decision.bool(), completion.bool()
    at = decision | completion
    last = getattr(model, "module", model).get_output_embeddings()
    with last.register_forward_pre_hook(lambda _, hidden: hidden[0][:, :-1][at][None]):
        outputs = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False)
    logits = outputs.logits[0].float()
    return logits, cross_entropy(logits, targets[at], reduction="none"), decision[at], completion[at]


def rate(step, steps, warmup):
    """Share of the learning rate at a step, counted from 0: linear warm-up, linear decay."""
    return min((step + 1) / max(warmup, 1), (steps - step) / (steps - warmup))


# ---- the sequences


def without_context(row):
    """Removes `<cc>` and the context after it, and the decision (A3)."""
    decision, middle = row["eval_mask"].argmax().item(), row["gen_mask"].argmax().item() - 1
    if middle < decision:
        raise Refused("A3 removes what stands between the decision and the completion; here the completion comes first")
    kept = {name: torch.cat([row[name][:decision], row[name][middle:]]) for name in ["input_ids", "gen_mask"]}
    return row | kept | {"eval_mask": torch.zeros_like(kept["gen_mask"])}


def collate(rows, device):
    """Pads to the right, as the reference does, so that the decision's position says nothing of the label.

    The token of the padding does not matter: no other token attends to it, and it is not supervised.
    """
    batch = {name: pad_sequence([row[name] for row in rows], batch_first=True) for name in COLUMNS}
    batch["attention_mask"] = pad_sequence([torch.ones_like(row["input_ids"]) for row in rows], batch_first=True)
    return {name: tensor.to(device) for name, tensor in batch.items()}


def micro_batches(rows, per_device, process, processes):
    """The part of a batch that a process takes. Each takes as many micro-batches, filled up with `None`."""
    filled = rows + [None] * (-len(rows) % (per_device * processes))
    mine = filled[process::processes]
    return [mine[start : start + per_device] for start in range(0, len(mine), per_device)]


def order(count, seed, epoch):
    """The order of the sequences in an epoch."""
    indices = list(range(count))
    random.Random(f"{seed} {epoch}").shuffle(indices)
    return indices


# ---- the model


def pretrained(name, tokenizer_file):
    """A pretrained model whose embeddings have a row for each token of the sequences, new ones the mean of the others.

    Returns its tokenizer, too.
    """
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    base = AutoTokenizer.from_pretrained(name)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file), **base.special_tokens_map)
    ids, known = tokenizer.get_vocab(), base.get_vocab()
    other = next((token for token, id in known.items() if ids.get(token, id) != id), None)
    if other is not None:
        raise Refused(
            f"{tokenizer_file} is not the tokenizer of {name}: {other!r} is {ids[other]} and not {known[other]}; "
            "verbalize with the model's tokenizer.json"
        )
    added = sorted(id for token, id in ids.items() if token not in known)
    # Sorted: the order of a vocabulary differs between runs, and so would the last bits of the mean.
    old = sorted(id for id in known.values() if id < model.get_input_embeddings().num_embeddings)
    model.resize_token_embeddings(max(len(tokenizer), model.get_input_embeddings().num_embeddings), mean_resizing=False)
    with torch.no_grad():
        # Where the two are tied, the second finds the same mean.
        for layer in [model.get_input_embeddings(), model.get_output_embeddings()]:
            layer.weight[added] = layer.weight[old].mean(0)
    return model, tokenizer


def adapted(model, rank, special):
    """A model of which low-rank adapters of every linear layer, and the embeddings of special tokens, are trained alone."""
    from peft import LoraConfig, get_peft_model

    layers = [model.get_input_embeddings()]
    if not model.config.tie_word_embeddings:
        layers.append(model.get_output_embeddings())
    rows = {name: special for name, layer in model.named_modules() if any(layer is one for one in layers)}
    config = LoraConfig(
        task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank, target_modules="all-linear", trainable_token_indices=rows
    )
    return get_peft_model(model, config)


def compile_layers(model):
    """Compiles the layers of a model where they are, for sequences of any length: equal layers share what is compiled."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList):
            for layer in module:
                layer.compile(dynamic=True)


def tiny(tokenizer_file):
    """A Llama of two layers, from scratch."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file), eos_token="<|endoftext|>")
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config), tokenizer


# ---- training


class Training:
    """A model, its optimizer and the devices."""

    def __init__(self, accelerator, model, per_device, lam):
        self.accelerator, self.per_device, self.lam = accelerator, per_device, lam
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trained, weight_decay=0.0)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)

    def _micro_batches(self, split, indices, prepare):
        state = self.accelerator
        # Sequences of a length stand together, so that little is padding.
        rows = sorted((split[at] for at in indices), key=lambda row: len(row["input_ids"]))
        parts = micro_batches(rows, self.per_device, state.process_index, state.num_processes)
        return [[FILLER if row is None else prepare(row) for row in part] for part in parts]

    def gradients(self, split, indices, prepare=dict):
        """Adds the gradients of the batch's loss. Returns the loss and its two parts, each a mean over the whole batch."""
        device = self.accelerator.device
        parts = self._micro_batches(split, indices, prepare)
        masks = [torch.stack([row[name] for name in MASKS])[:, 1:].bool() for part in parts for row in part]
        counts = torch.stack([torch.cat([mask.sum(1), mask.any(0).sum()[None]]) for mask in masks]).sum(0)
        counts = self.accelerator.reduce(counts.to(device))
        sums = torch.zeros(3, device=device)
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            with nullcontext() if is_last else self.accelerator.no_sync(self.model):
                _, nll, decision, completion = token_losses(self.model, collate(part, device))
                loss = (nll * weights(decision, completion, counts, self.lam)).sum()
                # The gradients of several devices are averaged; their sum is wanted.
                self.accelerator.backward(loss * self.accelerator.num_processes)
            sums += torch.stack([loss, (nll * decision).sum(), (nll * completion).sum()]).detach()
        loss, of_eval, of_gen = self.accelerator.reduce(sums).tolist()
        return named_losses(of_eval, of_gen, counts.tolist()) | {"loss": loss}

    def step(self, rate):
        """Takes a step along the gradients. Returns their norm before it is clipped."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), CLIP).item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm

    @torch.no_grad()
    def evaluate(self, split, cc, prepare=dict):
        """The two losses, and how well the probability of `<cc>` tells where retrieval helps."""
        self.model.eval()
        sums, decided = [0.0, 0.0, 0, 0], []
        for part in self._micro_batches(split, list(range(len(split))), prepare):
            logits, nll, decision, completion = token_losses(self.model, collate(part, self.accelerator.device))
            values = [(nll * decision).sum(), (nll * completion).sum(), decision.sum(), completion.sum()]
            sums = [total + value.item() for total, value in zip(sums, values)]
            chance = logits.softmax(-1)[..., cc][decision].tolist()
            decided += zip(chance, [bool(row["positive"]) for row in part if row["eval_mask"].any()], strict=True)
        self.model.train()
        gathered = gather_object([(sums, decided)])
        of_eval, of_gen, *counts = (sum(values) for values in zip(*(sums for sums, _ in gathered)))
        return named_losses(of_eval, of_gen, counts) | decisions([pair for _, pairs in gathered for pair in pairs])


def named_losses(of_eval, of_gen, counts):
    """Each loss as a mean over its own tokens; `None` where there are none."""
    sums = {"L_eval": of_eval, "L_gen": of_gen}
    return {name: total / count if count else None for (name, total), count in zip(sums.items(), counts)}


def decisions(decided):
    """Quality of the decisions: pairs of a probability of `<cc>` and whether retrieval helps."""
    if not decided:
        return {}
    helped = torch.tensor([chance for chance, positive in decided if positive], dtype=torch.float64)
    rest = torch.tensor([chance for chance, positive in decided if not positive], dtype=torch.float64)
    found = {
        "positive": len(helped) / len(decided),
        "accuracy": ((helped > 0.5).sum() + (rest <= 0.5).sum()).item() / len(decided),
    }
    if len(helped) and len(rest):
        # Share of the pairs of a positive and a negative that stand in the right order; a tie is half of one.
        rest = rest.sort().values
        below = torch.searchsorted(rest, helped) + torch.searchsorted(rest, helped, right=True)
        found["AUC"] = below.sum().item() / (2 * len(helped) * len(rest))
    means = {"P(cc) of positives": helped, "P(cc) of negatives": rest}
    return found | {name: values.mean().item() for name, values in means.items() if len(values)}


def best_of(evaluations):
    """The evaluation with the smallest L_gen, which is measured alike whatever λ is."""
    return min(evaluations, key=lambda evaluation: evaluation["L_gen"])


def write_json(path, value):
    """Writes a file that is there whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def last_state(folder):
    """The last state in a run's folder, of those that were saved whole."""
    states = [path for path in folder.glob("state-*") if path.name[6:].isdecimal()]
    return max(states, key=lambda path: int(path.name[6:]), default=None)


class Run:
    """A run's folder: `log.jsonl`, the models `epoch-N`, the last state `state-STEP`, and at the end `result.json`.

    Every process reads it; the main one writes.
    """

    def __init__(self, accelerator, folder, settings, resume):
        self.accelerator, self.folder, self.settings = accelerator, folder, settings
        self.log, self.result = folder / "log.jsonl", folder / "result.json"
        self.state = last_state(folder)
        self.is_finished = self.result.exists()
        saved = self.result if self.is_finished else self.state and self.state / "progress.json"
        if saved and not resume:
            raise Refused(f"{folder} holds a run: give --resume, or another folder")
        if resume and not saved:
            raise Refused(f"{folder} holds no state to resume: leave out --resume")
        progress = json.loads(saved.read_text(encoding="utf-8")) if saved else {"settings": settings}
        if changed := differences(progress["settings"], settings):
            raise Refused(f"{folder} holds a run with other settings: {'; '.join(changed)}")
        self.step, self.evaluations = progress.get("step", 0), progress.get("evaluations", [])
        # Nothing is written until all have read.
        accelerator.wait_for_everyone()

    def start(self):
        """Removes from the log what the state does not know of."""
        if self.accelerator.is_main_process:
            self.folder.mkdir(parents=True, exist_ok=True)
            lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True) if self.state else []
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= self.step]
            self.log.write_text("".join(kept), encoding="utf-8")

    def report(self, title, values):
        measured = {name: value for name, value in values.items() if isinstance(value, float)}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in measured.items())
        if not all(map(math.isfinite, measured.values())):
            raise Refused(f"{title}: {shown}: the training diverges; lower --lr")
        self.accelerator.print(f"{title}: {shown}", flush=True)
        if self.accelerator.is_main_process:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(json.dumps(values, ensure_ascii=False) + "\n")

    def save_state(self, step):
        folder = self.folder / f"state-{step}"
        part = folder.with_name(folder.name + ".part")
        self.accelerator.save_state(part)
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            progress = {"settings": self.settings, "step": step, "evaluations": self.evaluations}
            write_json(part / "progress.json", progress)
            part.replace(folder)
            self.remove("state-*", but=[folder.name])
            self.remove("epoch-*", but=self.models().values())

    def save_model(self, model, tokenizer, epoch):
        weights = self.accelerator.get_state_dict(model)
        if self.accelerator.is_main_process:
            folder = self.folder / f"epoch-{epoch}"
            model = self.accelerator.unwrap_model(model)
            if self.settings["lora"]:
                # The rows of special tokens are among the adapters.
                model.save_pretrained(folder / "adapter", save_embedding_layers=False)
                copy.deepcopy(model).merge_and_unload().save_pretrained(folder)
            else:
                model.save_pretrained(folder, state_dict=weights)
            tokenizer.save_pretrained(folder)

    def remove(self, pattern, but=()):
        if self.accelerator.is_main_process:
            for folder in self.folder.glob(pattern):
                if folder.name not in but:
                    shutil.rmtree(folder)

    def models(self):
        """Names of the best model and the last, after the first epoch."""
        if not self.evaluations:
            return {}
        return {"best": f"epoch-{best_of(self.evaluations)['epoch']}", "last": f"epoch-{self.evaluations[-1]['epoch']}"}

    def finish(self):
        if self.accelerator.is_main_process:
            write_json(self.result, self.models() | {"evaluations": self.evaluations, "settings": self.settings})
        self.remove("state-*")
        self.remove("epoch-*", but=self.models().values())
        self.accelerator.print(f"the smallest L_gen of validation: {self.folder / self.models()['best']}")


def devices(bf16):
    """The accelerator, with bf16 where a GPU has it, or where it is asked for."""
    has_gpu = torch.cuda.is_available() and not parse_flag_from_env("ACCELERATE_USE_CPU")
    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False) if has_gpu else bf16
    if bf16 and not has_bf16:
        raise Refused("--bf16: this GPU has no bf16")
    precision = "bf16" if has_bf16 else "no"
    if os.environ.get("ACCELERATE_MIXED_PRECISION", "no") not in ["no", precision]:
        raise Refused("leave out --mixed_precision: bf16 is taken where a GPU has it or --bf16 asks for it, float32 elsewhere")
    accelerator = Accelerator(mixed_precision=precision)
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != accelerator.num_processes:
        raise Refused(f"{started} processes were started, and each would train alone: on CPUs set ACCELERATE_USE_CPU=true")
    if accelerator.gradient_accumulation_steps != 1:
        raise Refused("leave out --gradient_accumulation_steps: it follows from --batch and --per-device")
    if accelerator.distributed_type not in [DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU]:
        raise Refused(f"{accelerator.distributed_type.value}: each device takes the whole model here")
    return accelerator


def main():
    args = parse()
    accelerator = devices(args.bf16)
    processes = accelerator.num_processes
    at_once = args.per_device * processes
    if args.per_device < 1 or args.batch < 1 or args.batch % at_once:
        raise Refused(
            f"--batch {args.batch} is not a multiple of {at_once}: --per-device {args.per_device} × {processes} processes"
        )
    settings = settings_of(args)
    files = {split: str(args.sequences / f"{split}.parquet") for split in ["train", "validation"]}
    with accelerator.main_process_first():
        data = load_dataset("parquet", data_files=files).with_format("torch")
    written, cc = written_decision(data["train"])
    lam, said = lambda_in_force(settings["lambda"], written, args.ablation)
    settings |= {"lambda": lam, "processes": processes, "precision": accelerator.mixed_precision}
    data = data.select_columns([*COLUMNS, "positive"])
    train, validation = data["train"], data["validation"]
    steps_per_epoch = math.ceil(len(train) / args.batch)
    steps = args.epochs * steps_per_epoch
    if not 0 <= args.warmup < steps:
        raise Refused(f"--warmup {args.warmup} is not below the {steps} steps of --epochs {args.epochs}")
    run = Run(accelerator, args.output, settings, args.resume)
    if run.is_finished:
        accelerator.print(f"{args.output} is finished")
        return

    torch.manual_seed(args.seed)
    tokenizer_file = args.sequences / "tokenizer.json"
    model, tokenizer = tiny(tokenizer_file) if args.tiny else pretrained(args.model, tokenizer_file)
    if args.lora:
        model = adapted(model, args.lora, sorted(tokenizer.added_tokens_decoder))
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if args.compile:
        compile_layers(model)
    training = Training(accelerator, model.train(), args.per_device, lam)
    if run.state:
        accelerator.load_state(run.state)
    prepare = without_context if args.ablation == "A3" else dict
    run.start()
    precision = "bf16" if accelerator.mixed_precision == "bf16" else "float32"
    accelerator.print(
        f"{said}; {processes} × {accelerator.device.type}, {precision}; {steps} steps, {steps_per_epoch} an epoch, "
        f"of {args.batch} sequences ({args.batch // at_once} × {at_once}), an epoch's last of {(len(train) - 1) % args.batch + 1}"
    )
    for epoch in range(args.epochs):
        indices = order(len(train), args.seed, epoch)
        for number in range(steps_per_epoch):
            step = epoch * steps_per_epoch + number + 1
            if step <= run.step:
                continue
            # Dropout depends on the step and the process alone, so a resumed run draws the same.
            torch.manual_seed(random.Random(f"{args.seed} {step} {accelerator.process_index}").getrandbits(63))
            losses = training.gradients(train, indices[number * args.batch : (number + 1) * args.batch], prepare)
            lr = args.lr * rate(step - 1, steps, args.warmup)
            norm = training.step(lr)
            at = {"step": step, "epoch": epoch + 1}
            run.report(f"step {step}", at | losses | {"gradient norm": norm, "lr": lr})
            is_end = number == steps_per_epoch - 1
            if is_end:
                run.evaluations.append(at | {"split": "validation"} | training.evaluate(validation, cc, prepare))
                run.report(f"validation after epoch {epoch + 1}", run.evaluations[-1])
                run.save_model(training.model, tokenizer, epoch + 1)
            if is_end or (args.save_steps and step % args.save_steps == 0):
                run.save_state(step)
    run.finish()
    accelerator.end_training()


if __name__ == "__main__":
    main()
