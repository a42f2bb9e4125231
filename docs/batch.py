"""Answers a file of batch requests with a model on this machine, many at once.

    repoformer complete --mode rg1 --model mine --max-tokens 64 --write-batch requests.jsonl
    python docs/batch.py model-folder requests.jsonl answers.jsonl
    repoformer complete --mode rg1 --model mine --max-tokens 64 --read-batch answers.jsonl

Completions are greedy. Requests that have an answer already are left out, so the same command goes on where it was
interrupted. Needs the packages torch and transformers.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

# Fields of a request that are heeded, and those that may have this value alone.
HEEDED = ["model", "prompt", "max_tokens", "stop", "logprobs"]
FIXED = {"temperature": 0, "n": 1, "stream": False, "echo": False}


def parse(arguments=None):
    parser = argparse.ArgumentParser(description="Answers a file of batch requests with a model on this machine.", allow_abbrev=False)
    parser.add_argument("model", help="pretrained model: a name or a folder")
    parser.add_argument("requests", type=Path, help="file of `repoformer complete --write-batch`")
    parser.add_argument("answers", type=Path, help="file for `repoformer complete --read-batch`; new answers are appended")
    parser.add_argument("--batch-tokens", type=int, default=20_000, help="tokens at once, with those to be written [%(default)s]")
    parser.add_argument("--bf16", action="store_true", help="bf16 on a CPU, too; GPUs that have it take it anyway")
    return parser.parse_args(arguments)


# ---- files


def read_requests(path):
    """The requests of a file. What would not be heeded is refused."""
    requests = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            try:
                request = json.loads(line)
                body, custom_id = request["body"], request["custom_id"]
                prompt, limit = body["prompt"], body["max_tokens"]
            except (ValueError, TypeError, KeyError) as error:
                sys.exit(f"{where}: this is no request to complete a prompt: {error!r}")
            other = next((name for name, value in body.items() if name not in HEEDED and FIXED.get(name, body) != value), None)
            if other is not None:
                sys.exit(f"{where}: {custom_id} has {other} {body[other]!r}; completions are greedy here, with {', '.join(HEEDED)}")
            stops = body.get("stop") or []
            requests.append({"custom_id": custom_id, "model": body.get("model"), "prompt": prompt, "limit": limit,
                             "stops": [stops] if isinstance(stops, str) else stops, "logprobs": body.get("logprobs") is not None})
    return requests


def answered(path):
    """The requests that have an answer. A line that was cut off is removed."""
    if not path.exists():
        return set()
    whole = path.read_bytes()
    end = whole.rfind(b"\n") + 1
    os.truncate(path, end)
    return {json.loads(line)["custom_id"] for line in whole[:end].splitlines()}


def answer(request, status, body):
    return {"id": request["custom_id"], "custom_id": request["custom_id"],
            "response": {"status_code": status, "request_id": request["custom_id"], "body": body}, "error": None}


# ---- completions


def batches(requests, tokens):
    """The requests by their length, in batches of at most so many tokens, padding and completions included."""
    batch, widest = [], 0
    # The longest come first: what does not fit into the memory does not fit at once.
    for request in sorted(requests, key=lambda request: len(request["ids"]), reverse=True):
        wide = max(widest, len(request["ids"]) + request["limit"])
        if batch and wide * (len(batch) + 1) > tokens:
            yield batch
            batch, wide = [], len(request["ids"]) + request["limit"]
        batch.append(request)
        widest = wide
    if batch:
        yield batch


@torch.inference_mode()
def greedy(model, prompts, limit, ends):
    """The likeliest tokens after each prompt, at most so many, with their log-probabilities: rows of tokens of the model.

    A row goes on behind the tokens that end a completion, until all rows have one.
    """
    width, device = max(map(len, prompts)), model.device
    # Padded to the left, so that all go on in the same column.
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    ends = torch.tensor(ends, device=device)
    tokens, chances, cache, has_ended = [], [], None, torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for step in range(limit):
        outputs = model(
            input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1
        )
        chance, token = outputs.logits[:, -1].float().log_softmax(-1).max(-1)
        tokens.append(token)
        chances.append(chance)
        has_ended |= torch.isin(token, ends)
        # To ask a GPU takes time.
        if step % 8 == 7 and has_ended.all():
            break
        cache, ids, positions = outputs.past_key_values, token[:, None], positions[:, -1:] + 1
        mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], 1)
    return torch.stack(tokens, 1).tolist(), torch.stack(chances, 1).tolist()


def choice(tokenizer, request, tokens, chances, ends):
    """The completion that the tokens spell, up to the first stop text."""
    tokens, chances = tokens[: request["limit"]], chances[: request["limit"]]
    end = next((at for at, token in enumerate(tokens) if token in ends), None)
    tokens, chances = tokens[:end], chances[:end]
    # Some tokenizers drop a space where a text begins.
    before = request["ids"][-1:]
    spell = lambda tokens: tokenizer.decode(before + tokens, clean_up_tokenization_spaces=False)
    start = len(spell([]))
    text = spell(tokens)[start:]
    cut = min((at for at in map(text.find, request["stops"]) if at >= 0), default=None)
    found = {"index": 0, "text": text[:cut], "finish_reason": "length" if end is None and cut is None else "stop"}
    if request["logprobs"]:
        pieces, offsets, at = [tokenizer.decode([token]) for token in tokens], [], 0
        for piece in pieces:
            offsets.append(at)
            at += len(piece)
        # Only tokens that begin in the completion are its own.
        kept = [at for at, offset in enumerate(offsets) if cut is None or offset < cut]
        own = lambda values: [values[at] for at in kept]
        found["logprobs"] = {"tokens": own(pieces), "token_logprobs": own(chances), "top_logprobs": None, "text_offset": own(offsets)}
    return found


def main(arguments=None):
    args = parse(arguments)
    requests, known = read_requests(args.requests), answered(args.answers)
    waiting = [request for request in requests if request["custom_id"] not in known]
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    has_gpu = torch.cuda.is_available()
    bf16 = torch.cuda.is_bf16_supported(including_emulation=False) if has_gpu else args.bf16
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16 if bf16 else torch.float32)
    model = model.to("cuda" if has_gpu else "cpu").eval()
    longest = model.config.max_position_embeddings
    with open(args.answers, "a", encoding="utf-8") as file:
        def write(answers):
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in answers)
            file.flush()

        for request in waiting:
            request["ids"] = tokenizer(request["prompt"])["input_ids"]
        fits = lambda request: 0 < len(request["ids"]) <= longest - request["limit"]
        for request in waiting:
            if not fits(request):
                message = f"{len(request['ids'])} tokens and {request['limit']} to be written: the model takes 1 to {longest}"
                write([answer(request, 400, {"error": {"message": message}})])
        fitting = [request for request in waiting if fits(request)]
        done = len(requests) - len(fitting)
        for batch in batches(fitting, args.batch_tokens):
            # Stop texts of one token end a completion as the end of a text does.
            stops = {stop for request in batch for stop in request["stops"]}
            spelled = [tokenizer(stop, add_special_tokens=False)["input_ids"] for stop in stops]
            ends = {tokenizer.eos_token_id} - {None}
            if all(stops == set(request["stops"]) for request in batch):
                ends |= {tokens[0] for tokens in spelled if len(tokens) == 1}
            limit = max(request["limit"] for request in batch)
            written = greedy(model, [request["ids"] for request in batch], limit, sorted(ends))
            write(answer(request, 200, {"model": request["model"], "choices": [choice(tokenizer, request, *row, ends)]})
                  for request, row in zip(batch, zip(*written), strict=True))
            done += len(batch)
            print(f"{done} of {len(requests)}", flush=True)


if __name__ == "__main__":
    main()
