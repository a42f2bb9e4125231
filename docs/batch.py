"""Answers a file of batch requests with a model on this machine, many at once.

    repoformer complete --mode rg1 --model mine --max-tokens 64 --write-batch requests.jsonl
    python docs/batch.py model-folder requests.jsonl answers.jsonl
    repoformer complete --mode rg1 --model mine --max-tokens 64 --read-batch answers.jsonl

Completions are greedy; a request of one token with `prompt_logprobs` learns how likely its prompt's last token was, and the likeliest one
there (`complete --probability-of '<cc>' --after '<eof>' --token-id N --write-batch`). One of one token with `echo` and
`logprobs` learns how likely each token of its prompt was (`complete --likelihood --write-batch`).
Requests that have an answer already are left out, so the same command goes on where it was interrupted; another model needs another file for its answers. For decoders with attention, such as Llama, Qwen and
StarCoder. Needs the packages torch and transformers.
"""

import argparse
import itertools
import json
import os
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

# Fields of a request that are heeded, and those that have to have this value where they are there.
HEEDED = ["model", "prompt", "max_tokens", "stop", "logprobs", "prompt_logprobs", "echo"]
FIXED = {"temperature": 0, "n": 1, "stream": False}
# What a request asks for.
COMPLETION, LAST_TOKEN, ALL_TOKENS = range(3)
# So many times fewer tokens are in a batch where all have logits.
ALL_AT_ONCE = 8
# Beginning of each answer.
BEGINNING = b'{"id": '


def parse(arguments=None):
    parser = argparse.ArgumentParser(description="Answers a file of batch requests with a model on this machine.", allow_abbrev=False)
    parser.add_argument("model", help="pretrained model: a name or a folder")
    parser.add_argument("requests", type=Path, help="file of `repoformer complete --write-batch`")
    parser.add_argument("answers", type=Path, help="file for `repoformer complete --read-batch`; new answers are appended")
    parser.add_argument("--batch-tokens", type=int, default=20_000, help="tokens in a batch, prompts and completions together [%(default)s]")
    parser.add_argument("--bf16", action="store_true", help="bf16 on a CPU, too; GPUs that have it take it anyway")
    return parser.parse_args(arguments)


# ---- files


def read_requests(path):
    """The requests of a file. What would not be heeded is refused."""
    requests = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                request = json.loads(line)
                body, custom_id = request["body"], request["custom_id"]
                prompt, limit, stops = body["prompt"], body["max_tokens"], body.get("stop") or []
            except (ValueError, TypeError, KeyError) as error:
                sys.exit(f"{path}:{number}: this is no request to complete a prompt: {error!r}")
            refuse = lambda reason: sys.exit(f"{path}:{number}: {custom_id}: {reason}")
            if custom_id in requests:
                refuse("another request has this custom_id")
            other = next((name for name, value in body.items() if name not in HEEDED and FIXED.get(name, body) != value), None)
            if other is not None or "temperature" not in body:
                other = other or "temperature"
                refuse(f"{other} is {body.get(other)!r}; completions are greedy here, with {', '.join(HEEDED)} and temperature 0")
            stops = [stops] if isinstance(stops, str) else stops
            if not isinstance(prompt, str) or not isinstance(limit, int) or limit < 1 or not all(stops):
                refuse("the prompt is no text, max_tokens is below 1, or a stop text is empty")
            about = body.get("prompt_logprobs")
            if about is not None and (about, limit) != (1, 1):
                refuse(f"prompt_logprobs is {about!r} with {limit} tokens; 1 with 1 token is answered here")
            has_logprobs, echo = body.get("logprobs") is not None, body.get("echo", False)
            if echo and (echo is True, limit, has_logprobs, about) != (True, 1, True, None):
                refuse(f"echo is {echo!r} with {limit} tokens; true with logprobs and 1 token is answered here")
            sort = ALL_TOKENS if echo else COMPLETION if about is None else LAST_TOKEN
            requests[custom_id] = {"custom_id": custom_id, "model": body.get("model"), "prompt": prompt, "limit": limit,
                                   "stops": sorted(set(stops)), "logprobs": has_logprobs, "sort": sort}
    return list(requests.values())


def answered(path):
    """The requests that have an answer. Half an answer at the end is removed."""
    whole = path.read_bytes() if path.exists() else b""
    lines, known = whole.splitlines(keepends=True), set()
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            record["response"]["status_code"]
            known.add(record["custom_id"])
        except (ValueError, TypeError, KeyError):
            is_half = number == len(lines) and not line.endswith(b"\n") and line[: len(BEGINNING)] == BEGINNING[: len(line)]
            if not is_half:
                sys.exit(f"{path}:{number}: this is no answer to a request: name another file for the answers")
            os.truncate(path, len(whole) - len(line))
            return known
    if whole and not whole.endswith(b"\n"):
        with open(path, "ab") as file:
            file.write(b"\n")
    return known


def answer(request, status, body):
    return {"id": request["custom_id"], "custom_id": request["custom_id"],
            "response": {"status_code": status, "request_id": request["custom_id"], "body": body}, "error": None}


# ---- completions


def batches(requests, tokens):
    """Requests of one sort, one limit and the same stop texts by their length, in batches of at most so many tokens, padding and completions
    included."""
    alike = lambda request: (request["sort"], request["limit"], request["stops"])
    # Logits of all tokens take the memory of many layers.
    room = lambda request: tokens // ALL_AT_ONCE if request["sort"] == ALL_TOKENS else tokens
    # The longest come first: what does not fit into the memory does not fit at once.
    ordered = sorted(requests, key=lambda request: (*alike(request), -len(request["ids"])))
    batch = []
    for request in ordered:
        if batch and (alike(batch[0]) != alike(request) or (len(batch[0]["ids"]) + request["limit"]) * (len(batch) + 1) > room(request)):
            yield batch
            batch = []
        batch.append(request)
    if batch:
        yield batch


def padded(prompts, device):
    """Tokens of prompts, which of them are no padding, and their positions. Padded to the left, so that all go on in one column."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
    return ids, mask, (mask.cumsum(1) - 1).clamp(min=0)


@torch.inference_mode()
def last_tokens(model, prompts):
    """The last token of each prompt and the likeliest one in its place, each with its log-probability; and the likeliest one after it."""
    ids, mask, positions = padded(prompts, model.device)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=2).logits.float()
    chances, last = logits[:, 0].log_softmax(-1), ids[:, -1:]
    chance, likeliest = chances.max(-1)
    return zip(*(part.tolist() for part in [last[:, 0], chances.gather(1, last)[:, 0], likeliest, chance, logits[:, 1].argmax(-1)]), strict=True)


@torch.inference_mode()
def all_tokens(model, prompts):
    """Log-probabilities of the tokens of each prompt, but for the first; and the likeliest token after it, with its own."""
    ids, mask, positions = padded(prompts, model.device)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
    for row, prompt in enumerate(prompts):
        chances = logits[row, -len(prompt):].float().log_softmax(-1)
        own = chances[:-1].gather(1, ids[row, -len(prompt) + 1:, None])[:, 0] if len(prompt) > 1 else chances[:0, 0]
        chance, after = chances[-1].max(-1)
        yield own.tolist(), after.item(), chance.item()


@torch.inference_mode()
def greedy(model, prompts, limit, ends):
    """The likeliest tokens after each prompt, at most so many, with their log-probabilities: rows of tokens of the model.

    A row goes on behind the tokens that end a completion, until all rows have one.
    """
    device = model.device
    ids, mask, positions = padded(prompts, device)
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
        # Asking a GPU takes time.
        if step % 8 == 7 and has_ended.all():
            break
        cache, ids, positions = outputs.past_key_values, token[:, None], positions[:, -1:] + 1
        mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], 1)
    return torch.stack(tokens, 1).tolist(), torch.stack(chances, 1).tolist()


def pieces_of(spell, before, tokens):
    """The texts of tokens behind others, which together are their text, and where each begins in it."""
    pieces, start = [spell([token]) for token in tokens], len(spell(before))
    text = spell(before + tokens)[start:]
    if "".join(pieces) != text:
        ends_at = [len(spell(before + tokens[:count])) - start for count in range(len(tokens) + 1)]
        pieces = [text[begin:end] for begin, end in zip(ends_at, ends_at[1:])]
    return pieces, [0, *itertools.accumulate(map(len, pieces))][: len(pieces)]


def choice(tokenizer, request, tokens, chances, ends):
    """The completion that the tokens spell, up to the first stop text."""
    end = next((at for at, token in enumerate(tokens) if token in ends), None)
    tokens, chances = tokens[:end], chances[:end]
    # Some tokenizers drop a space where a text begins.
    before = request["ids"][-1:]
    spell = lambda tokens: tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
    start = len(spell(before))
    text = spell(before + tokens)[start:]
    cut = min((at for at in map(text.find, request["stops"]) if at >= 0), default=None)
    found = {"index": 0, "text": text[:cut], "finish_reason": "length" if end is None and cut is None else "stop"}
    if request["logprobs"]:
        pieces, offsets = pieces_of(spell, before, tokens)
        # Only tokens that begin in the completion are its own.
        count = len(tokens) if cut is None else sum(offset < cut for offset in offsets)
        found["logprobs"] = {
            "tokens": pieces[:count], "token_logprobs": chances[:count], "top_logprobs": None, "text_offset": offsets[:count],
        }
    return found


def choice_about_prompt(tokenizer, request, last, chance, likeliest, best, after):
    """How likely the prompt's last token was, as vLLM says it; nothing is said of the tokens before it."""
    spell = lambda token: tokenizer.decode([token], clean_up_tokenization_spaces=False)
    told = {str(token): {"logprob": value, "decoded_token": spell(token)} for token, value in [(likeliest, best), (last, chance)]}
    others = [None] * (len(request["ids"]) - 1)
    return {"index": 0, "text": spell(after), "finish_reason": "length", "prompt_logprobs": [*others, told]}


def choice_of_echo(tokenizer, request, chances, after, chance):
    """The prompt's tokens and the one after them, with their log-probabilities; the first has none."""
    spell = lambda tokens: tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
    pieces, offsets = pieces_of(spell, [], [*request["ids"], after])
    logprobs = {"tokens": pieces, "token_logprobs": [None, *chances, chance], "top_logprobs": None, "text_offset": offsets}
    return {"index": 0, "text": "".join(pieces), "finish_reason": "length", "logprobs": logprobs}


def end_tokens(model, tokenizer, stops):
    """Tokens that end a completion: those that end a text, and stop texts of one token."""
    of_model = model.generation_config.eos_token_id
    ends = {tokenizer.eos_token_id, *(of_model if isinstance(of_model, list) else [of_model])} - {None}
    for stop in stops:
        ids = tokenizer(stop, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and tokenizer.decode(ids) == stop:
            ends.add(ids[0])
    return ends


def main(arguments=None):
    args = parse(arguments)
    if args.requests.resolve() == args.answers.resolve():
        sys.exit(f"{args.answers} holds the requests: name another file for the answers")
    requests, known = read_requests(args.requests), answered(args.answers)
    waiting = [request for request in requests if request["custom_id"] not in known]
    done = len(requests) - len(waiting)
    print(f"{done} of {len(requests)} have an answer", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    has_gpu = torch.cuda.is_available()
    bf16 = torch.cuda.is_bf16_supported(including_emulation=False) if has_gpu else args.bf16
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16 if bf16 else torch.float32)
    model = model.to("cuda" if has_gpu else "cpu").eval()
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest is None:
        sys.exit(f"{args.model}: a {model.config.model_type} is not completed here: it names no number of positions")
    with open(args.answers, "a", encoding="utf-8") as file:
        def write(answers):
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in answers)
            file.flush()

        for request in waiting:
            request["ids"] = tokenizer(request["prompt"])["input_ids"]
        least_of = lambda request: 2 if request["sort"] == LAST_TOKEN else 1
        fits = lambda request: least_of(request) <= len(request["ids"]) <= longest - request["limit"]
        for request in itertools.filterfalse(fits, waiting):
            message = f"{len(request['ids'])} tokens and {request['limit']} to be written: the model takes {least_of(request)} to {longest}"
            write([answer(request, 400, {"error": {"message": message}})])
            done += 1
        for batch in batches(filter(fits, waiting), args.batch_tokens):
            prompts = [request["ids"] for request in batch]
            if batch[0]["sort"] == ALL_TOKENS:
                choices = [choice_of_echo(tokenizer, request, *row) for request, row in zip(batch, all_tokens(model, prompts), strict=True)]
            elif batch[0]["sort"] == LAST_TOKEN:
                choices = [choice_about_prompt(tokenizer, request, *row) for request, row in zip(batch, last_tokens(model, prompts), strict=True)]
            else:
                ends = end_tokens(model, tokenizer, batch[0]["stops"])
                written = greedy(model, prompts, batch[0]["limit"], sorted(ends))
                choices = [choice(tokenizer, request, *row, ends) for request, row in zip(batch, zip(*written), strict=True)]
            write(answer(request, 200, {"model": request["model"], "choices": [one]}) for request, one in zip(batch, choices, strict=True))
            done += len(batch)
            print(f"{done} of {len(requests)}", flush=True)


if __name__ == "__main__":
    main()
