"""Tests of train.py, grid.py, batch.py and to_gguf.py, on a CPU: python docs/test_train.py"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import gguf
import pyarrow
import pyarrow.parquet
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import batch
import to_gguf
import train

WORDS = ["<|endoftext|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", *(f"w{number}" for number in range(40))]
CC, EOF = len(WORDS), len(WORDS) + 1
DOCS = Path(__file__).parent
# `accelerate launch --cpu` starts one process.
TWO = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
TYPES = {"input_ids": "int32", "eval_mask": "int8", "gen_mask": "int8", "loss_weights": "float"}


def write_tokenizer(path, words):
    tokenizer = Tokenizer(models.WordLevel({word: id for id, word in enumerate(words)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([word for word in words if word.startswith("<")])
    tokenizer.save(str(path))


def sequence(draw):
    """A sequence as `repoformer label verbalize` writes it, with λ 1."""
    words = lambda most: [draw.randrange(4, len(WORDS)) for _ in range(draw.randrange(1, most))]
    positive = draw.random() < 0.4
    before, target = [1, *words(9), 2, *words(9), EOF], words(12)
    ids = before + ([CC, *words(9)] if positive else []) + [3] + target
    decision, completion = len(before), len(ids) - len(target)
    row = {"input_ids": ids, "positive": positive}
    row["eval_mask"] = [int(at == decision) for at in range(len(ids))]
    row["gen_mask"] = [int(at >= completion) for at in range(len(ids))]
    row["loss_weights"] = [e + g / len(target) for e, g in zip(row["eval_mask"], row["gen_mask"])]
    return row


def rows(count, seed=0):
    draw = random.Random(seed)
    sequences = [sequence(draw) for _ in range(count)]
    return [{name: torch.tensor(values) for name, values in row.items()} for row in sequences]


# A negative sequence of A4: the first token of the completion is the decision as well.
A4 = {"input_ids": [1, 7, 2, EOF, 3, 5, 6], "eval_mask": [0, 0, 0, 0, 0, 1, 0], "gen_mask": [0, 0, 0, 0, 0, 1, 1]}
A4 = {name: torch.tensor(values) for name, values in A4.items()}


def write_sequences(folder):
    folder.mkdir()
    draw = random.Random(0)
    for split, size in {"train": 77, "validation": 21}.items():
        sequences = [sequence(draw) for _ in range(size)]
        list_of = lambda kind: pyarrow.list_(pyarrow.type_for_alias(kind))
        columns = {name: pyarrow.array([row[name] for row in sequences], list_of(kind)) for name, kind in TYPES.items()}
        columns["positive"] = pyarrow.array([row["positive"] for row in sequences])
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{split}.parquet")
    write_tokenizer(folder / "tokenizer.json", [*WORDS, "<cc>", "<eof>"])
    return folder


def write_model(folder, words=WORDS, rows=None, **config):
    """A pretrained model that knows neither `<cc>` nor `<eof>`."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=rows or len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, **config
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    write_tokenizer(folder.with_suffix(".json"), words)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder.with_suffix(".json")), eos_token=WORDS[0])
    tokenizer.save_pretrained(folder)
    return folder


def llama():
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=EOF + 1, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
    )


class Gguf(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
        self.config = LlamaConfig(vocab_size=64, num_key_value_heads=2, tie_word_embeddings=True, **sizes)
        self.model = LlamaForCausalLM(self.config)
        self.model.save_pretrained(self.folder / "model")
        tokens = {word: id for id, word in enumerate([*WORDS, "<cc>", "<eof>"])}
        tokenizer = Tokenizer(models.WordLevel(tokens, unk_token=WORDS[0]))
        tokenizer.add_special_tokens([*WORDS[:4], "<cc>", "<eof>"])
        tokenizer.save(str(self.folder / "model" / "tokenizer.json"))
        writer = gguf.GGUFWriter(self.folder / "base.gguf", "llama")
        writer.add_name("base")
        writer.add_vocab_size(len(WORDS))
        # A trial keeps fewer layers.
        writer.add_block_count(30)
        writer.add_rope_freq_base(1e5)
        writer.add_token_list(WORDS)
        writer.add_token_types([3] * 4 + [1] * (len(WORDS) - 4))
        for write in [writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close]:
            write()

    def test_a_trained_model_is_written_with_its_new_tokens(self):
        to_gguf.main(self.folder / "base.gguf", self.folder / "model", self.folder / "out.gguf")
        reader = gguf.GGUFReader(self.folder / "out.gguf")
        value = lambda name: reader.get_field(name).contents()
        self.assertEqual(value("tokenizer.ggml.tokens"), [*WORDS, "<cc>", "<eof>"])
        self.assertEqual(value("tokenizer.ggml.token_type")[-3:], [1, 3, 3])
        self.assertEqual((value("llama.vocab_size"), value("general.name")), (EOF + 1, "base"))
        self.assertEqual((value("llama.rope.freq_base"), value("llama.block_count")), (1e5, 2))
        found = {tensor.name: torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type)) for tensor in reader.tensors}
        weights = self.model.state_dict()
        self.assertEqual(found["token_embd.weight"].shape, (EOF + 1, 64))
        same = lambda name, weight: torch.testing.assert_close(found[name], weight, atol=2e-3, rtol=0)
        same("token_embd.weight", weights["model.embed_tokens.weight"][: EOF + 1])
        same("blk.1.ffn_down.weight", weights["model.layers.1.mlp.down_proj.weight"])
        same("output_norm.weight", weights["model.norm.weight"])
        # Row i of a head's first half comes before row i of its second half.
        for name, layer, heads in [("attn_q", "q_proj", 4), ("attn_k", "k_proj", 2)]:
            weight, rows = weights[f"model.layers.0.self_attn.{layer}.weight"], []
            for head in range(heads):
                for at in range(8):
                    rows += [weight[16 * head + at], weight[16 * head + 8 + at]]
            same(f"blk.0.{name}.weight", torch.stack(rows))

    def test_the_file_of_another_model_is_refused(self):
        path = self.folder / "model" / "tokenizer.json"
        tokenizer = Tokenizer.from_str(path.read_text().replace("<fim_suffix>", "<suffix>"))
        tokenizer.save(str(path))
        with self.assertRaisesRegex(SystemExit, "token 2 is not '<suffix>' there"):
            to_gguf.main(self.folder / "base.gguf", self.folder / "model", self.folder / "out.gguf")
        self.assertFalse((self.folder / "out.gguf").exists())


class Batch(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = write_model(self.folder / "model", max_position_embeddings=64)
        self.requests, self.answers = self.folder / "requests.jsonl", self.folder / "answers.jsonl"

    def write(self, requests, **body):
        """Requests by their prompts and numbers of tokens."""
        with open(self.requests, "w") as file:
            for number, (prompt, limit) in enumerate(requests):
                given = {"model": "mine", "prompt": prompt, "max_tokens": limit, "temperature": 0.0, "logprobs": 1} | body
                file.write(json.dumps({"custom_id": str(number), "method": "POST", "url": "/v1/completions", "body": given}) + "\n")

    def answer(self):
        """Answers to all requests, by their ids."""
        batch.main([str(self.model), str(self.requests), str(self.answers), "--batch-tokens", "60"])
        answers = [json.loads(line) for line in self.answers.read_text().splitlines()]
        self.assertEqual(len(answers), len({answer["custom_id"] for answer in answers}))
        return {int(answer["custom_id"]): answer["response"] for answer in answers}

    def naive(self, prompt, limit, ends):
        """One token after another, of one prompt, without a cache."""
        model = LlamaForCausalLM.from_pretrained(self.model)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(self.model)
        ids, written, chances = tokenizer(prompt)["input_ids"], [], []
        while len(written) < limit:
            chance, token = model(torch.tensor([ids + written])).logits[0, -1].log_softmax(-1).max(-1)
            if token.item() in ends:
                break
            written.append(token.item())
            chances.append(chance.item())
        return tokenizer.convert_ids_to_tokens(written), chances

    def test_answers_are_those_of_prompts_completed_alone(self):
        draw = random.Random(0)
        requests = [(" ".join(draw.choices(WORDS[4:], k=draw.randrange(1, 20))), draw.randrange(1, 13)) for _ in range(25)]
        written = {word for prompt, limit in requests for word in self.naive(prompt, limit, {0})[0]}
        # A word that ends some of them, and a text that is no token.
        stops = [min(written), "w3 w3 w3 w3 w3"]
        self.write(requests, stop=stops)
        found, cut = self.answer(), 0
        for number, (prompt, limit) in enumerate(requests):
            tokens, chances = self.naive(prompt, limit, {0, WORDS.index(stops[0])})
            answer = found[number]["body"]["choices"][0]
            self.assertEqual(answer["text"].split(), tokens)
            self.assertEqual(answer["finish_reason"], "length" if len(tokens) == limit else "stop")
            torch.testing.assert_close(torch.tensor(answer["logprobs"]["token_logprobs"]), torch.tensor(chances), atol=1e-4, rtol=0)
            cut += len(tokens) < limit
        self.assertTrue(0 < cut < len(requests))

    def test_the_last_token_of_a_prompt_has_its_probability(self):
        draw = random.Random(1)
        prompts = [" ".join(draw.choices(WORDS[4:], k=draw.randrange(2, 20))) for _ in range(25)]
        model, tokenizer = LlamaForCausalLM.from_pretrained(self.model), PreTrainedTokenizerFast.from_pretrained(self.model)
        self.write([(prompt, 1) for prompt in prompts], prompt_logprobs=1)
        found = self.answer()
        for number, prompt in enumerate(prompts):
            ids = tokenizer(prompt)["input_ids"]
            logits = model(torch.tensor([ids])).logits[0]
            chances = logits[-2].log_softmax(-1)
            told = found[number]["body"]["choices"][0]
            self.assertEqual((len(told["prompt_logprobs"]), told["text"]), (len(ids), WORDS[logits[-1].argmax()]))
            expected = {str(token): (chances[token].item(), WORDS[token]) for token in [ids[-1], chances.argmax().item()]}
            last = {token: (one["logprob"], one["decoded_token"]) for token, one in told["prompt_logprobs"][-1].items()}
            self.assertEqual(last.keys(), expected.keys())
            for token, (chance, word) in expected.items():
                self.assertAlmostEqual(last[token][0], chance, places=4)
                self.assertEqual(last[token][1], word)
        for body in [{"prompt_logprobs": 5}, {"prompt_logprobs": 1, "max_tokens": 2}]:
            self.write([("w1", 1)], **body)
            with self.assertRaisesRegex(SystemExit, "prompt_logprobs is [15] with [12] tokens; 1 with 1 token"):
                self.answer()

    def test_the_tokens_of_a_prompt_have_their_probabilities(self):
        draw = random.Random(2)
        prompts = [" ".join(draw.choices(WORDS[4:], k=draw.randrange(1, 20))) for _ in range(25)]
        model, tokenizer = LlamaForCausalLM.from_pretrained(self.model), PreTrainedTokenizerFast.from_pretrained(self.model)
        self.write([(prompt, 1) for prompt in prompts], echo=True)
        found = self.answer()
        for number, prompt in enumerate(prompts):
            ids = tokenizer(prompt)["input_ids"]
            chances = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            told = found[number]["body"]["choices"][0]
            self.assertEqual(told["text"], " ".join([prompt, WORDS[chances[-1].argmax()]]))
            logprobs = told["logprobs"]
            self.assertEqual("".join(logprobs["tokens"]), told["text"])
            self.assertEqual([told["text"].find(piece, at) for piece, at in zip(logprobs["tokens"], logprobs["text_offset"])], logprobs["text_offset"])
            self.assertIsNone(logprobs["token_logprobs"][0])
            expected = torch.cat([chances[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0], chances[-1].max()[None]])
            torch.testing.assert_close(torch.tensor(logprobs["token_logprobs"][1:]), expected, atol=1e-4, rtol=0)
        for body in [{"logprobs": None}, {"max_tokens": 2}, {"prompt_logprobs": 1}, {"echo": 1}]:
            self.write([("w1", 1)], **({"echo": True} | body))
            with self.assertRaisesRegex(SystemExit, "echo is (True|1) with [12] tokens; true with logprobs and 1 token"):
                self.answer()

    def test_an_interrupted_file_is_completed(self):
        self.write([(f"w{number} w1", 3) for number in range(20)])
        whole = self.answer()
        lines = self.answers.read_bytes()
        self.answers.write_bytes(lines[: len(lines) // 2])
        self.assertEqual(self.answer(), whole)
        self.assertEqual(self.answers.read_bytes().splitlines()[:5], lines.splitlines()[:5])

    def test_a_text_of_several_tokens_ends_a_completion(self):
        self.write([("w1 w2", 12)])
        tokens = self.naive("w1 w2", 12, {0})[0]
        self.write([("w1 w2", 12)], stop=" ".join(tokens[4:6]))
        answer = self.answer()[0]["body"]["choices"][0]
        self.assertTrue(tokens[: len(answer["text"].split())] == answer["text"].split() and len(answer["text"].split()) <= 4)
        self.assertEqual(answer["finish_reason"], "stop")

    def test_long_prompts_get_an_error_and_others_an_answer(self):
        self.write([("w1 " * 60, 5), ("w1", 5)])
        found = self.answer()
        self.assertEqual((found[0]["status_code"], found[1]["status_code"]), (400, 200))
        self.assertIn("60 tokens and 5 to be written: the model takes 1 to 64", found[0]["body"]["error"]["message"])

    def test_requests_that_ask_for_more_are_refused(self):
        for body in [{"temperature": 0.5}, {"n": 2}, {"top_p": 0.9}]:
            self.write([("w1", 5)], **body)
            with self.assertRaisesRegex(SystemExit, "requests.jsonl:1: 0: .* completions are greedy here"):
                self.answer()
        for body in [{"prompt": ["w1"]}, {"max_tokens": 0}, {"stop": [""]}]:
            self.write([("w1", 5)], **body)
            with self.assertRaisesRegex(SystemExit, "requests.jsonl:1: 0: the prompt is no text, "):
                self.answer()
        self.write([("w1", 5)])
        self.requests.write_text(2 * self.requests.read_text())
        with self.assertRaisesRegex(SystemExit, "requests.jsonl:2: 0: another request has this custom_id"):
            self.answer()
        self.requests.write_text('{"custom_id": "1", "body": {"messages": []}}\n')
        with self.assertRaisesRegex(SystemExit, "requests.jsonl:1: this is no request to complete a prompt: KeyError"):
            self.answer()


    def test_files_that_hold_no_answers_are_left_as_they_are(self):
        self.write([("w1", 5)])
        for text in ['{"settings": 1}', '{"id": 1}\n', "words", '{"settings": 1}\n{"custom_id": "0"']:
            self.answers.write_text(text)
            with self.assertRaisesRegex(SystemExit, "this is no answer to a request"):
                self.answer()
            self.assertEqual(self.answers.read_text(), text)
        self.answers.unlink()
        with self.assertRaisesRegex(SystemExit, "holds the requests"):
            batch.main([str(self.model), str(self.requests), str(self.requests)])
        whole = self.answer()
        self.answers.write_text(self.answers.read_text().rstrip("\n"))
        self.assertEqual(self.answer(), whole)

    def test_pieces_spell_the_text_where_tokens_alone_lose_a_space(self):
        tokenizer = Tokenizer(models.BPE({"▁a": 0, "b": 1, "▁": 2, "a": 3}, [("▁", "a")]))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        request = {"ids": [0], "stops": [" a a"], "logprobs": True}
        found = batch.choice(tokenizer, request, [1, 0, 1, 0, 0], [-1.0, -2.0, -3.0, -4.0, -5.0], set())
        self.assertEqual((found["text"], found["logprobs"]["tokens"]), ("b ab", ["b", " a", "b"]))
        self.assertEqual(found["logprobs"]["text_offset"], [0, 1, 3])


class Objective(unittest.TestCase):
    def gradients(self, per_device, lam, split):
        training = train.Training(Accelerator(cpu=True), llama(), per_device, lam)
        losses = training.gradients(split, list(range(len(split))))
        return losses, [parameter.grad for parameter in training.model.parameters()]

    def naive(self, lam, split):
        """The batch at once, from its definition."""
        model, of_eval, of_gen = llama(), [], []
        for row in split:
            chances = model(row["input_ids"][None]).logits[0].log_softmax(-1)
            for at in range(1, len(row["input_ids"])):
                nll = -chances[at - 1, row["input_ids"][at]]
                of_eval += [nll] * row["eval_mask"][at].item()
                of_gen += [nll] * row["gen_mask"][at].item()
        mean = lambda values: sum(values) / len(values)
        loss = mean(of_eval + of_gen) if lam is None else lam * mean(of_eval) + mean(of_gen)
        loss.backward()
        losses = {"L_eval": mean(of_eval).item(), "L_gen": mean(of_gen).item(), "loss": loss.item()}
        return losses, [parameter.grad for parameter in model.parameters()]

    def test_accumulated_batches_have_the_losses_and_gradients_of_the_whole(self):
        for lam in [2.0, 0.0, None]:
            for split in [rows(8), rows(5), rows(7) + [A4] * (lam is not None)]:  # 5 does not divide into micro-batches
                expected, gradients = self.naive(lam, split)
                for per_device in [8, 2, 1]:
                    losses, found = self.gradients(per_device, lam, split)
                    for name in expected:
                        self.assertAlmostEqual(losses[name], expected[name], places=5)
                    for one, other in zip(found, gradients, strict=True):
                        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_losses_weigh_as_defined(self):
        decision, completion = torch.tensor([True, False, False]), torch.tensor([False, True, True])
        counts = torch.tensor([2, 8, 10])
        weights = lambda lam: train.weights(decision, completion, counts, lam).tolist()
        self.assertEqual(weights(3.0), [1.5, 0.125, 0.125])
        self.assertEqual(weights(0.0), [0.0, 0.125, 0.125])
        torch.testing.assert_close(weights(None), [0.1, 0.1, 0.1], rtol=1e-6, atol=0)

    def test_one_lambda_is_in_force(self):
        self.assertEqual(train.lambda_in_force(None, 2.0, None)[0], 2.0)
        lam, said = train.lambda_in_force(0.2, 1.0, None)
        self.assertEqual(lam, 0.2)
        self.assertIn("λ 1 in the sequences' loss_weights is not used", said)
        self.assertIsNone(train.lambda_in_force(None, 1.0, "A1")[0])
        self.assertEqual(train.lambda_in_force(None, 1.0, "A2")[0], 0.0)
        for given, ablation in [(1.0, "A1"), (1.0, "A2"), (-1.0, None), (float("nan"), None)]:
            with self.assertRaises(train.Refused):
                train.lambda_in_force(given, 1.0, ablation)

    def test_rate_rises_then_falls(self):
        self.assertEqual([train.rate(step, 6, 2) for step in range(6)], [0.5, 1.0, 1.0, 0.75, 0.5, 0.25])
        self.assertEqual([train.rate(step, 2, 0) for step in range(2)], [1.0, 0.5])


class Sequences(unittest.TestCase):
    def test_processes_share_a_batch(self):
        parts = [train.micro_batches([3, 1, 4, 5, 9], 2, process, 2) for process in range(2)]
        self.assertEqual(parts, [[[3, 4], [9, None]], [[1, 5], [None, None]]])

    def test_orders_differ_by_epoch_and_seed(self):
        orders = [train.order(50, seed, epoch) for seed in range(2) for epoch in range(2)]
        self.assertEqual(len({tuple(each) for each in orders}), 4)
        self.assertTrue(all(sorted(each) == list(range(50)) for each in orders))

    def test_a3_removes_the_context_alone(self):
        row = {"input_ids": [1, 7, 2, 8, EOF, CC, 9, 9, 3, 5, 6], "eval_mask": [0] * 5 + [1] + [0] * 5, "gen_mask": [0] * 9 + [1] * 2}
        kept = train.without_context({name: torch.tensor(values) for name, values in row.items()})
        self.assertEqual(kept["input_ids"].tolist(), [1, 7, 2, 8, EOF, 3, 5, 6])
        self.assertEqual(kept["gen_mask"].tolist(), [0] * 6 + [1] * 2)
        self.assertEqual(kept["eval_mask"].sum(), 0)
        with self.assertRaises(train.Refused):
            train.without_context(A4)

    def test_decisions_by_hand(self):
        found = train.decisions([(0.9, True), (0.4, True), (0.4, False), (0.1, False)])
        expected = {"positive": 0.5, "accuracy": 0.75, "AUC": 3.5 / 4, "P(cc) of positives": 0.65, "P(cc) of negatives": 0.25}
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            self.assertAlmostEqual(found[name], value)
        self.assertNotIn("AUC", train.decisions([(0.9, True)]))
        self.assertEqual(train.decisions([]), {})


class Pretrained(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tokenizer = self.folder / "tokenizer.json"
        write_tokenizer(self.tokenizer, [*WORDS, "<cc>", "<eof>"])

    def test_added_tokens_have_the_mean_of_the_others(self):
        for name, settings in {
            "tied": {"tie_word_embeddings": True}, "own": {"tie_word_embeddings": False}, "padded": {"rows": 64}
        }.items():
            before = LlamaForCausalLM.from_pretrained(write_model(self.folder / name, **settings))
            model, _ = train.pretrained(str(self.folder / name), self.tokenizer)
            self.assertGreater(model.get_input_embeddings().num_embeddings, EOF)
            for of in ["get_input_embeddings", "get_output_embeddings"]:
                new, old = getattr(model, of)().weight, getattr(before, of)().weight[: len(WORDS)]
                torch.testing.assert_close(new[: len(WORDS)], old)
                for id in [CC, EOF]:
                    torch.testing.assert_close(new[id], old.mean(0))

    def test_sequences_of_another_tokenizer_are_refused(self):
        write_model(self.folder / "model", [WORDS[0], *reversed(WORDS[1:])])
        with self.assertRaisesRegex(train.Refused, "is not the tokenizer of"):
            train.pretrained(str(self.folder / "model"), self.tokenizer)


class Program(unittest.TestCase):
    """Runs of the program itself."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.sequences = write_sequences(cls.folder / "sequences")
        cls.model = write_model(cls.folder / "pretrained", attention_dropout=0.2)
        cache = {"HF_HOME": str(cls.folder / "cache"), "HF_HUB_OFFLINE": "1"}
        cls.environment = os.environ | cache | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}

    def start(self, *arguments, launch=(sys.executable,), **environment):
        command = [*launch, *map(str, arguments)]
        environment = self.environment | environment
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_to_end(self, *arguments, status=0, **more):
        program = self.start(*arguments, **more)
        output, _ = program.communicate()
        self.assertEqual(program.returncode, status, output)
        return output

    def train(self, name, *flags, **more):
        return self.run_to_end(DOCS / "train.py", self.sequences, self.folder / name, *flags, **more)

    def log(self, name):
        lines = (self.folder / name / "log.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def assert_same_losses(self, one, other):
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            for name in {"loss", "L_eval", "L_gen", "gradient norm", "AUC"} & a.keys():
                self.assertAlmostEqual(a[name], b[name], places=4, msg=f"{name} of {a}")

    def test_a_resumed_run_ends_like_an_undisturbed_one(self):
        flags = ["--model", self.model, "--batch", "8", "--per-device", "4", "--lr", "1e-2", "--warmup", "3", "--epochs", "9"]
        flags += ["--save-steps", "4"]
        self.train("undisturbed", *flags)
        program = self.start(DOCS / "train.py", self.sequences, self.folder / "killed", *flags)
        log = self.folder / "killed" / "log.jsonl"
        while program.poll() is None and (not log.exists() or len(log.read_text().splitlines()) < 27):
            time.sleep(0.005)
        program.send_signal(signal.SIGKILL)
        program.communicate()
        self.assertFalse((self.folder / "killed" / "result.json").exists())
        self.assertIsNotNone(train.last_state(self.folder / "killed"))
        said = self.train("killed", *flags, status=1)
        self.assertIn("holds a run: give --resume, or another folder", said)
        said = self.train("killed", *flags, "--lambda", "2", "--resume", status=1)
        self.assertIn("holds a run with other settings: lambda was 1.0 and is 2.0", said)
        self.train("killed", *flags, "--resume")
        self.assertEqual(self.log("killed"), self.log("undisturbed"))
        results = [json.loads((self.folder / name / "result.json").read_text()) for name in ["killed", "undisturbed"]]
        self.assertEqual(*results)
        for model in {results[0]["best"], results[0]["last"]}:
            one, other = (load_file(self.folder / name / model / "model.safetensors") for name in ["killed", "undisturbed"])
            self.assertTrue(all(torch.equal(one[name], other[name]) for name in one | other))
        folders = {path.name for path in (self.folder / "killed").iterdir()}
        self.assertEqual(folders, {"log.jsonl", "result.json", results[0]["best"], results[0]["last"]})
        self.assertIn("is finished", self.train("killed", *flags, "--resume"))

    def test_two_processes_train_like_one(self):
        flags = ["--tiny", "--batch", "8", "--lr", "1e-3", "--warmup", "3", "--epochs", "1"]
        self.train("one", *flags)
        self.assertIn("2 × cpu", self.train("two", *flags, "--per-device", "2", launch=TWO))
        self.assert_same_losses(self.log("one"), self.log("two"))
        said = self.train("alone", *flags, launch=TWO, status=1, ACCELERATE_USE_CPU="false", CUDA_VISIBLE_DEVICES="")
        self.assertIn("2 processes were started, and each would train alone", said)
        self.train("checkpointing", *flags, "--gradient-checkpointing")
        self.assert_same_losses(self.log("one"), self.log("checkpointing"))
        self.train("compiled", *flags, "--compile")
        self.assert_same_losses(self.log("one"), self.log("compiled"))

    def test_adapters_and_special_tokens_are_trained_alone(self):
        flags = ["--batch", "8", "--lr", "1e-2", "--warmup", "3", "--epochs", "2", "--lora", "4"]
        tied = write_model(self.folder / "tied", tie_word_embeddings=True)
        for name, base in {"tied": tied, "untied": self.model}.items():
            said = self.train(f"{name}-lora", "--model", base, *flags)
            self.assertIn("λ 1", said)
            last = self.folder / f"{name}-lora" / json.loads((self.folder / f"{name}-lora" / "result.json").read_text())["last"]
            # The folder's model is the one that was evaluated.
            model = LlamaForCausalLM.from_pretrained(last)
            data = {"validation": str(self.sequences / "validation.parquet")}
            split = train.load_dataset("parquet", data_files=data).with_format("torch")["validation"]
            found = train.Training(Accelerator(cpu=True), model, 4, 1.0).evaluate(split, CC)
            for loss in ["L_eval", "L_gen"]:
                self.assertAlmostEqual(found[loss], self.log(f"{name}-lora")[-1][loss], places=4)
            before, after = (load_file(path / "model.safetensors") for path in [base, last])
            for layer in {"model.embed_tokens.weight", "lm_head.weight"} & before.keys():
                self.assertTrue(torch.equal(after[layer][4:CC], before[layer][4:]), layer)
                # They are trained where the model knows them, too.
                self.assertFalse(torch.equal(after[layer][:4], before[layer][:4]), layer)
                self.assertFalse(torch.equal(after[layer][CC], after[layer][EOF]), layer)
            self.assertTrue(torch.equal(before["model.norm.weight"], after["model.norm.weight"]))
            projection = "model.layers.0.mlp.up_proj.weight"
            self.assertFalse(torch.equal(before[projection], after[projection]))
            self.assertTrue((last / "adapter" / "adapter_model.safetensors").exists())
        self.train("bf16", "--model", self.model, *flags, "--bf16")
        for one, other in zip(self.log("untied-lora"), self.log("bf16")):
            self.assertAlmostEqual(one["L_gen"], other["L_gen"], delta=0.1)

    def test_ablations(self):
        flags = ["--tiny", "--batch", "8", "--lr", "1e-3", "--warmup", "3", "--epochs", "1"]
        self.assertIn("without λ", self.train("A1", *flags, "--ablation", "A1"))
        self.train("A2", *flags, "--ablation", "A2")
        self.train("A3", *flags, "--ablation", "A3")
        a1, a2, a3 = (self.log(name)[0] for name in ["A1", "A2", "A3"])
        self.assertTrue(min(a1["L_eval"], a1["L_gen"]) < a1["loss"] < max(a1["L_eval"], a1["L_gen"]))
        self.assertEqual((a2["L_eval"], a2["L_gen"]), (a1["L_eval"], a1["L_gen"]))
        self.assertAlmostEqual(a2["loss"], a2["L_gen"], places=5)
        self.assertIsNone(a3["L_eval"])
        self.assertNotIn("AUC", self.log("A3")[-1])

    def test_what_cannot_be_trained_is_refused(self):
        said = self.train("batch", "--tiny", "--batch", "12", status=1)
        self.assertIn("--batch 12 is not a multiple of 8", said)
        said = self.train("warmup", "--tiny", "--batch", "8", "--epochs", "1", "--warmup", "10", status=1)
        self.assertIn("--warmup 10 is not below the 10 steps of --epochs 1", said)
        flags = ["--tiny", "--batch", "8", "--warmup", "0", "--lr", "1e30"]
        self.assertIn("the training diverges; lower --lr", self.train("diverging", *flags, status=1))
        self.assertIn("holds no state to resume", self.train("none", "--tiny", "--batch", "8", "--warmup", "3", "--resume", status=1))

    def test_a_finished_point_of_the_grid_is_kept(self):
        grid = [DOCS / "grid.py", self.sequences, self.folder / "grid", "--launch", sys.executable]
        grid += ["--lr", "1e-2,1e-4", "--lambda", "1", "--epochs", "1", "--warmup", "2"]
        flags = ["--tiny", "--batch", "16"]
        said = self.run_to_end(*grid, *flags)
        self.assertEqual(said.count("== "), 2)
        results = (self.folder / "grid").glob("*/result.json")
        losses = {path.parent.name: json.loads(path.read_text())["evaluations"][-1]["L_gen"] for path in results}
        best = min(losses, key=losses.get)
        self.assertEqual(len(losses), 2)
        self.assertTrue(said.splitlines()[-1].endswith(best.replace("-", " ").replace("_", ", ")))
        again = self.run_to_end(*grid, *flags)
        self.assertEqual(again.splitlines(), said.splitlines()[-4:])
        said = self.run_to_end(*grid, "--tiny", "--batch", "8", status=1)
        self.assertIn("other settings: batch was 16 and is 8", said)


if __name__ == "__main__":
    unittest.main()
