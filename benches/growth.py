#!/usr/bin/env python3
"""Counts how work grows with input that a stranger chooses: instructions (valgrind's callgrind) for an input of some size, and for one of
ten times that size, each less those for a tiny one.

    benches/growth.py [NAME...]

Prints a table, and ends with status 1 if ten times the input takes more than LIMIT times the instructions. The program is that of the
tests: `cargo test --features serve --no-run`. Without valgrind it says so and does nothing.
"""

import base64
import concurrent.futures
import contextlib
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "repoformer"
LIMIT = 12.0
TINY = 4
LINE = "value = compute(1)\n"
# A file is found by two lines, at least.
OTHER = "another = compute(12345)\n"

CASES = {}


def case(size):
    """Registers a function that makes the input of a size in a folder, and returns what counts its instructions."""

    def register(function):
        CASES[function.__name__.replace("_", " ")] = (size, function)
        return function

    return register


def write(folder, path, text):
    path = folder / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def environment(folder):
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "REPOFORMER_THREADS": "1"}


def counted(folder, args):
    """The program with arguments, under callgrind."""
    command = ["valgrind", "--fair-sched=try", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={folder}/valgrind", PROGRAM, *args]
    return [str(part) for part in command]


def instructions(folder):
    return int(re.search(r"Collected : (\d+)", (folder / "valgrind").read_text())[1])


def run(folder, *args, stdin=b"", fails=False, **variables):
    done = subprocess.run(counted(folder, args), cwd=folder, env=environment(folder) | variables, input=stdin, capture_output=True)
    if (done.returncode != 0) != fails:
        raise SystemExit(f"{args}: status {done.returncode}\n{done.stderr.decode()[-2000:]}")
    return instructions(folder)


def memory(folder, *args):
    """Most bytes of memory of a run."""
    command = [str(part) for part in [PROGRAM, *args]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{args}: status {process.returncode}")
    return usage.ru_maxrss * 1024


# Editors' requests.


def choice(index, text, end=None):
    return {"choices": [{"index": index, "text": text, "finish_reason": end}]}


@contextlib.contextmanager
def answering(answer, kind="text/event-stream"):
    """URL of a model's server that gives this answer."""

    class Model(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            try:
                self.wfile.write(answer.encode())
            except OSError:
                pass

    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{model.server_port}"
    model.shutdown()


def in_events(events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def served(folder, request, pieces=(), **variables):
    """`serve` that answers a request, by way of a model's server that streams pieces of text; none for a tiny one."""
    events = [choice(0, piece) for piece in pieces] + [choice(0, "", "stop")]
    with answering(in_events(events)) as url:
        return served_by(url, folder, request, **variables)


def served_by(url, folder, request, **variables):
    args = ["serve", "--repos-dir", "r", "--listen", "127.0.0.1:0", "--no-watch", "--endpoint", url, "--model", "m", "--max-tokens", "100000"]
    process = subprocess.Popen(counted(folder, args), cwd=folder, env=environment(folder) | variables, stderr=subprocess.PIPE, text=True)
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("listening on http://"):
            break
    else:
        raise SystemExit("".join(said))
    threading.Thread(target=process.stderr.read, daemon=True).start()
    client = http.client.HTTPConnection(line.split("//")[1].strip(), timeout=1800)
    client.request("POST", "/v1/completions", json.dumps({"max_tokens": 100000, **request}), {"Content-Type": "application/json"})
    answer = client.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status}: {body[:2000]}")
    process.terminate()  # an interrupt may be ignored, as in the background of a shell
    process.wait()
    return instructions(folder)


def repository(folder, text=LINE * 20):
    write(folder, "r/pyproject.toml", "")
    write(folder, "r/a.py", text)


@case(2000)
def serve_equal_lines_and_a_suffix_of_them(n, folder):
    repository(folder, OTHER + LINE * n)
    return served(folder, {"prompt": OTHER + LINE * 10, "suffix": "\n" + LINE * (n // 4)})


@case(2000)
def serve_a_prefix_of_equal_lines(n, folder):
    repository(folder, LINE * n + OTHER + LINE)
    return served(folder, {"prompt": LINE * (n // 4) + OTHER + "v", "suffix": "\n"})


@case(2000)
def serve_stop_text_that_nearly_comes(n, folder):
    repository(folder)
    return served(folder, {"prompt": "x = ", "stop": ["a" * n + "b"]}, ["a"] * n)


@case(400)
def serve_stop_texts(n, folder):
    repository(folder)
    stops = [f"<|stop-{number}|>" for number in range(n)]
    return served(folder, {"prompt": "x = ", "stop": stops}, ["<|stop-x"] * (n // 4))


@case(400)
def serve_stop_texts_and_white_space(n, folder):
    repository(folder)
    written = lambda number: f"{number:012b}".replace("0", " ").replace("1", "\t")
    stops = [f" \n\t{number:04}" for number in range(n // 2)] + ["\t" + written(number) for number in range(n // 2)]
    return served(folder, {"prompt": "x = 1\n" + " " * (5 * n), "stop": stops})


@case(2000)
def serve_white_space_piece_by_piece(n, folder):
    repository(folder)
    return served(folder, {"prompt": "x = 1\n    "}, ["\n"] * n)


@case(2000)
def serve_a_line_that_is_continued(n, folder):
    repository(folder)
    return served(folder, {"prompt": "x = 1\n    "}, ["a"] * n)


@case(2000)
def serve_pieces_of_what_may_become_a_key(n, folder):
    repository(folder)
    return served(folder, {"prompt": "x = "}, ["&#0"] * n, REPOFORMER_API_KEY="rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U")


def lsp_changes(n, folder, text, first, last):
    repository(folder)
    root, messages = f"file://{folder}/r", []

    def send(method, params, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        messages.append(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    send("initialize", {"capabilities": {}, "rootUri": root}, id=1)
    document = {"uri": f"{root}/a.py", "languageId": "python", "version": 1, "text": text}
    send("textDocument/didOpen", {"textDocument": document})
    place = lambda line, character: {"line": line, "character": character}
    edit = lambda line: {"range": {"start": place(line, first), "end": place(line, last)}, "text": "xyz"}
    changes = [edit(line) for line in range(0, n, 10)] + [edit(line) for line in range(n - 1, 0, -10)]
    changes += [edit(line) for near in range(0, n, 10) for line in (near, n - 1 - near)]  # alternately at both ends
    send("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
    send("shutdown", {}, id=2)
    send("exit", {})
    args = ["lsp", "--repos-dir", "r", "--no-watch", "--endpoint", "http://127.0.0.1:9", "--model", "m"]
    return run(folder, *args, stdin=b"".join(messages))


@case(2000)
def lsp_changes_of_a_document(n, folder):
    return lsp_changes(n, folder, LINE * n, 3, 5)


@case(2000)
def lsp_changes_behind_carriage_returns(n, folder):
    return lsp_changes(n, folder, LINE.replace("\n", "\r") * n, 0, 0)


# Tasks.


def tasks_of_one_file(n, folder, *command):
    write(folder, "r/r/a.py", "x = 1\n" * (20 * n))
    task = lambda i: {
        "prompt": "x = 1\n",
        "metadata": {"task_id": f"r/{i}", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 20 * i + 1},
    }
    write(folder, "tasks.jsonl", "".join(json.dumps(task(i)) + "\n" for i in range(n)))
    return run(folder, *command, "--repos-dir", "r")


@case(500)
def validate_tasks_of_one_file(n, folder):
    return tasks_of_one_file(n, folder, "validate", "tasks.jsonl")


@case(500)
def window_tasks_of_one_file(n, folder):
    return tasks_of_one_file(n, folder, "window", "--tasks", "tasks.jsonl", "--mode", "rg1", "--unit", "chunks", "--cache-dir", "c")


# Predictions.


def evaluated(folder, prediction, truth="x = 1", *flags, left=LINE):
    metadata = {"task_id": "r/0", "ground_truth": truth, "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": left.count("\n")}
    write(folder, "tasks.jsonl", json.dumps({"prompt": left, "metadata": metadata}) + "\n")
    write(folder, "predictions.jsonl", json.dumps({"task_id": "r/0", "pred": prediction}) + "\n")
    return run(folder, "eval", "--tasks", "tasks.jsonl", "--predictions", "predictions.jsonl", *flags)


@case(400)
def function_body_that_nearly_parses(n, folder):
    return evaluated(folder, "a?b:" * (n // 4), "x = 1", "--postprocess", "function-body")


@case(400)
def statement_that_nearly_parses(n, folder):
    return evaluated(folder, "(a?b:\n" * (n // 6), "x = 1", "--postprocess", "statement")


@case(200)
def statements_of_many_samples(n, folder):
    predictions = "".join(json.dumps({"task_id": "r/0", "pred": f"x = {number}\ny"}) + "\n" for number in range(n))
    evaluated(folder, "", left=LINE * n)
    write(folder, "predictions.jsonl", predictions)
    return run(folder, "eval", "--tasks", "tasks.jsonl", "--predictions", "predictions.jsonl", "--metrics", "crosscodeeval")


UNRESOLVED = {
    "names of a list": lambda n: "x = [" + each(n, "a#, ") + "]",
    "tuples within tuples": lambda n: "(a, " * n + ")" * n + " = b",
    "scopes within scopes": lambda n: "x = " + "lambda: " * n + "(" + "a, " * n + ")",
    "members of a long name": lambda n: "a" * n + each(n, ".b#"),
    "keyword arguments": lambda n: "f(" + each(n, "a#=1, ") + ")",
}


def unresolved_case(name, text):
    def of(n, folder):
        write(folder, "repos/r/a.py", LINE + "x = 1\n")
        return evaluated(folder, text(n), "x = 1", "--unresolved", "--repos-dir", "repos", "--postprocess", "none")

    CASES[f"unresolved: {name}"] = (400, of)


ANSWERS = {
    "fences": "```\n",
    "blocks": "```python\nx = 1\n```\n",
    "named fences": "```python\n",
    "inline fences": "```x```\n",
    "sentences with fences": "Here it is: ```x\n",
    "listed fences": "- ```\n",
    "tildes": "~~~\n",
    "backticks": "`",
    "marks of thoughts": "<think>",
    "ends of thoughts": "</think>\n",
    "thoughts": "<think>\nx\n</think>\n",
    "tags": "<a>",
    "special tokens": "<|endoftext|>",
    "quotes": '"',
    "triple quotes": '"""\n',
    "sentences": "This is the code.\n",
    "comments": "# x\n",
    "brackets": "(",
    "backslashes": "\\\n",
    "blank lines": "\n",
    "blanks": " ",
    "line of letters": "a",
    "lines": LINE,
    "strings": "x = '```'\n",
}


def answer_case(name, unit):
    def of(n, folder):
        return evaluated(folder, unit * n, "x = 1", "--postprocess", "chat,lines")

    CASES[f"chat: {name}"] = (max(200, 8000 // len(unit)), of)


for name, unit in ANSWERS.items():
    answer_case(name, unit)

for name, text in UNRESOLVED.items():
    unresolved_case(name, text)


BLOCK = "```\ny\n```\n"
EMPTY = '""""""'

# Left contexts and answers that grow together.
LEFT_CONTEXTS = {
    "blocks below blank lines": lambda n: ("\n" * n + LINE, BLOCK * n),
    "blocks behind blanks": lambda n: (LINE + " " * n + "y", BLOCK * n),
    "lines that lack blanks": lambda n: (" " * n + "if x:\n", "if x:\n" + "y\n" * n),
    "spans within a string": lambda n: ('x = """\n', "```x```\n" * n),
    "empty strings behind blanks": lambda n: (" " * n + EMPTY * n + "\n", BLOCK),
    "triple quotes of two kinds": lambda n: (EMPTY * n + "'''\n", BLOCK),
    "tokens within a string": lambda n: (LINE, '"""\n' + "<|eot|>" * n + '\n"""\n'),
}


def left_context_case(name, texts):
    def of(n, folder):
        left, answer = texts(n)
        return evaluated(folder, answer, "x = 1", "--postprocess", "chat,lines", left=left)

    CASES[f"chat: {name}"] = (1000, of)


for name, texts in LEFT_CONTEXTS.items():
    left_context_case(name, texts)


# Completions.


def completed(folder, answer, *flags, kind="text/event-stream", **variables):
    """`complete` for one task, whose server gives this answer."""
    metadata = {"task_id": "r/0", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}
    write(folder, "prompts.jsonl", json.dumps({"prompt": LINE, "metadata": {**metadata, "top_k_context": []}}) + "\n")
    with answering(answer, kind) as url:
        args = ["--prompts", "prompts.jsonl", "--model", "m", "--endpoint", url, "--concurrency", "1", "-o", "o.jsonl", *flags]
        return run(folder, "complete", *args, **variables)


@case(400)
def completions_of_many_samples(n, folder):
    events = [choice(index, "x = 1", "stop" if is_last else None) for is_last in [False, True] for index in range(n)]
    return completed(folder, in_events(events), "--samples", str(n), "--temperature", "1", "--until", "lines")


KEY = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U"
# As long as a token that names its user and their rights.
LONG_KEY = base64.urlsafe_b64encode(b"".join(hashlib.sha256(bytes([number])).digest() for number in range(37))).decode().rstrip("=")


@case(100)
def completions_beside_a_key_that_nests(n, folder):
    depth = n // 9
    inner = json.dumps([{"a": KEY[:8], "b": KEY[8:16]}, ["abcdefgh" * 8] * n])
    answer = '{"choices": [{"index": 0, "text": "x = 1", "finish_reason": "stop"}], "x": %s%s%s}' % ("[" * depth, inner, "]" * depth)
    return completed(folder, answer, kind="application/json", REPOFORMER_API_KEY=KEY)


@case(8000)
def completions_of_zeros_beside_a_long_key(n, folder):
    return completed(folder, json.dumps(choice(0, "0" * n, "stop")), kind="application/json", REPOFORMER_API_KEY=LONG_KEY)


@case(200)
def completions_of_lines_beside_a_long_key(n, folder):
    return completed(folder, json.dumps(choice(0, LINE * n, "stop")), kind="application/json", REPOFORMER_API_KEY=LONG_KEY)


# Likelihoods.


@case(2000)
def likelihood_of_a_long_target_after_a_long_prompt(n, folder):
    text = "return foo(bar)\n" * n
    metadata = {"task_id": "r/0", "ground_truth": text, "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": n, "top_k_context": []}
    write(folder, "prompts.jsonl", json.dumps({"prompt": text, "metadata": metadata}) + "\n")
    return run(folder, "complete", "--likelihood", "--prompts", "prompts.jsonl", "-o", "o.jsonl")


# Files of records and archives.


@case(400)
def sweep_of_labels_each_of_its_own_repository(n, folder):
    label = lambda number: {"prompt": "x = 1\n", "groundtruth": "y = 1", "right_context": "", "crossfile_context": "", "metadata": {"filename": f"r{number}/a.py", "task_id": f"r{number}/a.py/1_2", "start_i": 1, "end_i": 2}, "es_infile": number % 13 / 13, "es_rg1": number % 11 / 11, "entropy": number % 97}
    write(folder, "labels.jsonl", "".join(json.dumps(label(number)) + "\n" for number in range(n)))
    return run(folder, "policy", "sweep", "--labels", "labels.jsonl", "--policy", "entropy,oracle", "--format", "csv")


@case(400)
def convert_files_of_a_record(n, folder):
    files = [{"filepath": f"d{number}/.GIT/{'x' * 20}" if number % 2 else f"d/{number}.py", "content": "x\n"} for number in range(n)]
    write(folder, "raw.jsonl", json.dumps({"repo_name": "o/r", "files": files + [{"filepath": "a.py", "content": ""}]}) + "\n")
    return run(folder, "convert", "raw.jsonl", "--to", "repos", "-o", "out")


@case(400)
def convert_files_of_an_archive(n, folder):
    write(folder, "a.py", "x\n")
    with tarfile.open(folder / "r.tar", "w") as archive:
        for number in range(n):
            archive.add(folder / "a.py", f"r/d{number % 7}/{number}.py")
    return run(folder, "convert", "r.tar", "--to", "repos", "-o", "out")


@case(400)
def convert_deep_paths_of_an_archive(n, folder):
    write(folder, "a.py", "x\n")
    with tarfile.open(folder / "r.tar", "w") as archive:
        archive.add(folder / "a.py", "r/a.py")
        for number in range(n):
            archive.add(folder / "a.py", f"r/{'d/' * (60 if number % 2 else 1000)}{number}.py")
    return run(folder, "convert", "r.tar", "--to", "repos", "-o", "out", fails=True)


@case(2000)
def validate_wrong_lines(n, folder):
    write(folder, "wrong.jsonl", "{}\n" * n)
    return run(folder, "validate", "wrong.jsonl", fails=True)


@case(2000)
def stats_of_wrong_lines(n, folder):
    write(folder, "wrong.jsonl", "{}\n" * n)
    return run(folder, "stats", "wrong.jsonl", fails=True)


@case(2000)
def convert_unknown_fields(n, folder):
    metadata = {"task_id": "r/0", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}
    fields = {f"field-{number}": number for number in range(n)}
    write(folder, "tasks.jsonl", json.dumps({"prompt": LINE, "metadata": {**metadata, **fields}, **fields}) + "\n")
    return run(folder, "convert", "tasks.jsonl", "--to", "repoeval", "-o", "out.jsonl")


@case(2000)
def convert_one_field_again_and_again(n, folder):
    again = '"field": 1, ' * n
    record = '{%s"prompt": "x\\n", "metadata": {%s"task_id": "r/0", "ground_truth": "x", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}}\n'
    write(folder, "tasks.jsonl", record % (again, again))
    return run(folder, "convert", "tasks.jsonl", "--to", "repoeval", "-o", "out.jsonl")


def dependent(folder, names):
    """The conversion of a record of DevEval whose function has these dependencies."""
    write(folder, "repos/p/a.py", "def f():\n    x = 1\n    return x\n")
    record = {"namespace": "a.f", "type": "function", "completion_path": "p/a.py", "signature_position": [1, 1], "body_position": [2, 3]}
    record |= {"dependency": {"intra_class": [], "intra_file": [], "cross_file": names}, "requirement": {}, "tests": ["t"], "indent": 4}
    write(folder, "records.jsonl", json.dumps(record) + "\n")
    return run(folder, "convert", "records.jsonl", "--to", "repoeval", "--repos-dir", "repos", "-o", "out.jsonl")


@case(200)
def convert_names_of_a_module(n, folder):
    write(folder, "repos/p/m.py", LINE * n)
    return dependent(folder, [f"m.x{number}" for number in range(n)])


@case(200)
def convert_a_name_of_many_parts(n, folder):
    return dependent(folder, ["a." * n + "b"])


@case(100)
def convert_names_that_a_file_may_import(n, folder):
    function = "def f():\n    x = 1\n    return x\n"
    write(folder, "repos/p/m.py", "from a import *\n" * n + function)
    record = {"problem_ids": 0, "project": "test-apps/p", "module": "m", "entry_point": "f", "focal_function": function, "test": "t"}
    write(folder, "records.jsonl", json.dumps(record | {"code": "".join(f"a{number} = 1\n" for number in range(n))}) + "\n")
    return run(folder, "convert", "records.jsonl", "--to", "repoeval", "--repos-dir", "repos", "-o", "out.jsonl")


@case(500)
def complete_a_prompt_of_one_special_token(n, folder):
    metadata = {"task_id": "r/0", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1, "row": 0}
    prompt = "<fim_prefix>a<fim_suffix>" + "<eof>" * n
    write(folder, "prompts.jsonl", json.dumps({"prompt": prompt, "metadata": metadata | {"prompt_style": "repoformer"}}) + "\n")
    return run(folder, "complete", "--prompts", "prompts.jsonl", "-o", "out.jsonl")


@case(200)
def validate_stop_texts_and_answers_of_a_sample(n, folder):
    place = {"fpath_tuple": ["r", "a.py"], "line_no": 1, "row": 0}
    doc = {"prompt": "x\n", "withheld": " " * n, "target": "x = 1", "task_id": "r/0", "metadata": place}
    until = {"until": [f"stop-{number}" for number in range(n)], "max_gen_toks": 10, "temperature": 0.0, "do_sample": False}
    sample = {"doc_id": 0, "doc": doc, "target": "x = 1", "arguments": {"gen_args_0": {"arg_0": "x\n", "arg_1": until}}, "resps": [["b"] * n]}
    sample |= {"filtered_resps": ["b"], "filter": "none", "metrics": [], "doc_hash": "a", "prompt_hash": "b", "target_hash": "c"}
    write(folder, "samples.jsonl", json.dumps(sample) + "\n")
    return run(folder, "validate", "samples.jsonl")


@case(200)
def validate_many_wrong_values_of_a_long_id(n, folder):
    write(folder, "wrong.jsonl", json.dumps({"task_id": "x" * 100 * n, "pred": [0] * n}) + "\n")
    return run(folder, "validate", "wrong.jsonl", "--format", "json", fails=True)


@case(2000)
def eval_predictions_of_an_unknown_long_id(n, folder):
    metadata = {"task_id": "x" * n, "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}
    write(folder, "tasks.jsonl", json.dumps({"prompt": LINE, "metadata": metadata}) + "\n")
    write(folder, "predictions.jsonl", json.dumps({"task_id": "y" * n, "pred": "a"}) + "\n")
    write(folder, "repos/r/a.py", LINE)
    return run(folder, "eval", "--repos-dir", "repos", "--tasks", "tasks.jsonl", "--predictions", "predictions.jsonl", fails=True)


@case(2000)
def convert_prompts_of_many_modes(n, folder):
    metadata = lambda number: {"task_id": f"r/{number}", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": number}
    task = lambda number: {"prompt": LINE, "metadata": metadata(number)}
    prompt = lambda number: {"prompt": LINE, "metadata": {**metadata(number), "mode": f"m{number}", "prompt_style": f"s{number}", "top_k_context": []}}
    write(folder, "tasks.jsonl", "".join(json.dumps(task(number)) + "\n" for number in range(n)))
    write(folder, "prompts.jsonl", "".join(json.dumps(prompt(number)) + "\n" for number in range(n)))
    return run(folder, "convert", "prompts.jsonl", "--to", "lm-eval", "--tasks", "tasks.jsonl", "--metrics", "repocoder", "-o", "out")


@case(2000)
def convert_a_prompt_of_many_stop_texts(n, folder):
    metadata = {"task_id": "r/0", "ground_truth": "x = 1", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}
    write(folder, "tasks.jsonl", json.dumps({"prompt": LINE, "metadata": metadata}) + "\n")
    stops = [f"<|stop-{number}|>" for number in range(n)]
    prompt = {"prompt": LINE, "metadata": {**metadata, "stop": stops, "top_k_context": []}}
    write(folder, "prompts.jsonl", json.dumps(prompt) + "\n")
    return run(folder, "convert", "prompts.jsonl", "--to", "lm-eval", "--tasks", "tasks.jsonl", "--metrics", "repocoder", "-o", "out")


# Scores.


def compared(folder, records, *flags):
    """The comparison of a file of records with itself."""
    write(folder, "scores.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    return run(folder, "compare", "scores.jsonl", "scores.jsonl", "-o", "out.txt", "--resamples", "100", *flags)


@case(200)
def compare_scores_of_other_metrics_in_each_task(n, folder):
    return compared(folder, ({"task_id": str(task), "m": {str(task % 100): 0.5}} for task in range(n)))


@case(200)
def compare_one_task_in_each_repository(n, folder):
    return compared(folder, ({"task_id": str(task), "repository": str(task), "m": {"a": 0.5, str(task % 99): 1}} for task in range(n)), "--by-repository")


@case(1000)
def report_settings_of_a_header(n, folder):
    metadata = {"task_id": "r/0", "ground_truth": "x = 1\n", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1}
    write(folder, "repos/r/a.py", LINE + "x = 1\n")
    write(folder, "tasks.jsonl", json.dumps({"prompt": LINE, "metadata": metadata}) + "\n")
    args = ["--repos-dir", "repos", "--tasks", "tasks.jsonl"]
    subprocess.run([PROGRAM, "run", "--mode", "none", *args], cwd=folder, env=environment(folder), capture_output=True, check=True)
    (made,) = (folder / "data/cache/predictions/tasks").glob(".none*.header.json")
    header = json.loads(made.read_text())
    header["parameters"] |= {f"setting-{number}": "x" for number in range(n)}
    del header["record_checksum"]
    write(folder, ".p.header.json", json.dumps(header))
    shutil.copy(made.with_name(made.name[1:].replace(".header.json", ".jsonl")), folder / "p.jsonl")
    count = run(folder, "report", *args, "--predictions", "p.jsonl", "-o", "out")
    assert f"setting-{n - 1}" in (folder / "out/index.html").read_text()
    return count


# Repositories.


def retrieved(folder, texts, *flags, above=LINE, end="py"):
    for number, text in enumerate(texts):
        write(folder, f"repos/r/f{number}.{end}", text)
    left = LINE * 19 + above
    write(folder, f"repos/r/a.{end}", left + "x = 1\n" + LINE)
    metadata = {"task_id": "r/0", "ground_truth": "x = 1\n", "fpath_tuple": ["r", f"a.{end}"], "context_start_lineno": 0, "line_no": 20}
    write(folder, "tasks.jsonl", json.dumps({"prompt": left, "metadata": metadata}) + "\n")
    args = ["prompt", "--repos-dir", "repos", "--tasks", "tasks.jsonl", "--mode", "rg1", *flags]
    for stage in ["window", "vectorize", "search"]:
        subprocess.run([PROGRAM, stage, *args[1:]], cwd=folder, env=environment(folder), capture_output=True)
    shutil.rmtree(folder / "data", ignore_errors=True)
    return run(folder, "run", *args[1:])


@case(2000)
def repository_of_equal_lines(n, folder):
    return retrieved(folder, [LINE * n])


@case(20000)
def repository_of_one_long_line(n, folder):
    return retrieved(folder, ["a" * n + "\n"])


@case(2000)
def repository_of_one_long_line_of_words(n, folder):
    return retrieved(folder, [" ".join(f"w{number}" for number in range(n)) + "\n"])


@case(200)
def repository_of_equal_files(n, folder):
    return retrieved(folder, [LINE * 5] * n)


@case(400)
def repository_of_definitions(n, folder):
    names = "".join(f"def name_{number}():\n    return name_{number - 1}()\n\n" for number in range(n))
    uses = "".join(f"x = name_{number}()\n" for number in range(n))
    return retrieved(folder, [names, uses], "--profile", "repoformer-paper", "--ranker", "jaccard")


@case(2000)
def repository_of_a_chain_of_names(n, folder):
    return retrieved(folder, ["x\n"], "--unit", "chunks", "--ranker", "definitions", above="a." * n + "b\n")


@case(400)
def repository_of_imports(n, folder):
    imports = "".join(f'import {{a as a{number}}} from "./f1";\n' for number in range(n))
    calls = "".join(f"a{number}();\n" for number in range(n))
    defined = "export function a() {\n  const y = 1;\n  return y;\n}\n"
    flags = ["--unit", "chunks", "--ranker", "graph:bm25", "--language", "javascript"]
    return retrieved(folder, [imports + calls, defined], *flags, end="js")


@case(400)
def repository_of_imports_of_modules(n, folder):
    imports = "".join(f"from f1 import a as a{number}\n" for number in range(n))
    calls = "".join(f"a{number}()\n" for number in range(n))
    return retrieved(folder, [imports + calls, "def a():\n    return 1\n"], "--unit", "chunks", "--ranker", "graph:bm25")


@case(30)
def repository_of_loops_in_loops(n, folder):
    nested = "".join(" " * depth + "for a in b:\n" for depth in range(18)) + " " * 18 + "a = b\n"
    return retrieved(folder, [nested * n], "--unit", "chunks", "--chunk-size", "20", "--ranker", "codebleu")


def called(folder, language, files):
    """`sample` of few tasks from the calls in some files."""
    for path, text in files.items():
        write(folder, f"repos/r/{path}", text)
    return run(folder, "sample", "--kind", "api", "--per-repo", "2", "--repos-dir", "repos", "--language", language, "-o", "o.jsonl")


@case(400)
def calls_of_methods_of_one_type(n, folder):
    methods = "".join(f"func (t T) m{number}() {{ t.m{number}() }}\n" for number in range(n))
    calls = "".join(f"func f{number}(t T) {{\n\tt.m{number}()\n}}\n" for number in range(n))
    return called(folder, "go", {"a.go": "package p\n" + methods, "b.go": "package p\n" + calls})


@case(400)
def calls_of_methods_of_one_name(n, folder):
    methods = "func (t T) m() { t.m() }\n" * n
    calls = "".join(f"func f{number}(t T) {{\n\tt.m()\n}}\n" for number in range(n))
    return called(folder, "go", {"a.go": "package p\n" + methods, "b.go": "package p\n" + calls})


def go_package(n):
    return [f"package p\nfunc f{number}() {{\n\tf{number + 1}()\n}}\n" for number in range(n)]


@case(200)
def calls_of_a_package_of_many_files(n, folder):
    return called(folder, "go", {f"p/{number}.go": text for number, text in enumerate(go_package(n))})


@case(200)
def repository_of_a_package_of_many_files(n, folder):
    return retrieved(folder, go_package(n), "--ranker", "graph:bm25", "--language", "go", end="go")


@case(1000)
def calls_of_one_line(n, folder):
    defined = "".join(f"def f{number}():\n    pass\n" for number in range(n))
    calls = ", ".join(f"f{number}()" for number in range(n))
    return called(folder, "python", {"a.py": defined, "b.py": f"from a import *\nx = [{calls}]\n"})


@case(400)
def calls_of_classes_of_one_file(n, folder):
    defined = "".join(f"export class C{number} {{\n  m() {{}}\n}}\n" for number in range(n))
    calls = "".join(f"C{number}.m();\n" for number in range(n))
    names = ", ".join(f"C{number}" for number in range(n))
    files = {"a.ts": defined, "b.ts": f"import {{ {names} }} from './a';\n{calls}"}
    return called(folder, "typescript", files)


def each(n, text):
    return "".join(text.replace("#", str(number)) for number in range(n))


JAVA = {"A.java": "class A { void f() {} }\n", "C.java": "class C {\n" + each(4, "  void g#(A a) {\n    a.f();\n  }\n") + "}\n"}


def calls_in_nested(begin, n):
    return each(n, begin) + "void g() {" + "z();\n" * n + "}" * n + "}\n"


@case(60)
def calls_in_types_within_types(n, folder):
    return called(folder, "java", {**JAVA, "B.java": calls_in_nested("class B# extends A { ", n)})


@case(60)
def calls_in_parts_of_types_within_types(n, folder):
    files = {path.replace("java", "cs"): text for path, text in JAVA.items()}
    return called(folder, "csharp", {**files, "B.cs": calls_in_nested("class B# : A { ", n)})


@case(400)
def calls_of_a_type_with_many_embedded(n, folder):
    types = each(n, "type B# struct { A }\nfunc (b B#) f#() {}\n")
    calls = each(n, "\ta.g#()\n}\nfunc h#(a A) {\n\ta.f#()\n")
    files = {"a.go": f"package p\ntype A struct {{\n{each(n, 'B# ' + chr(10))}}}\n{types}", "b.go": f"package p\nfunc g(a A) {{\n{calls}}}\n"}
    return called(folder, "go", files)


@case(400)
def calls_of_a_type_with_many_supertypes(n, folder):
    interfaces = each(n, "export interface B# { x#(): void }\n")
    calls = each(n, "  a.g#();\n}\nfunction h#(a: A) {\n  a.x#();\n")
    files = {"a.ts": f"export interface A extends X{each(n, ', B#')} {{}}\n{interfaces}", "b.ts": f"import {{A}} from './a';\nfunction g(a: A) {{\n{calls}}}\n"}
    return called(folder, "typescript", files)


@case(400)
def calls_of_types_that_extend_themselves(n, folder):
    own = "class D extends D { void g() { this.z(); super.z(); z(); } }\n"
    return called(folder, "java", {**JAVA, "B.java": own * n})


@case(200)
def calls_through_imports_of_one_name(n, folder):
    imports = each(n, f"import x#{'.d' * 100} as q\n")
    calls = each(n, f"    q{'.d' * 13}.f#()\n")
    return called(folder, "python", {"a.py": "def f():\n    pass\n", "b.py": f"{imports}from a import f\ndef h():\n    f()\n{calls}"})


@case(100)
def calls_through_names_that_are_passed_on(n, folder):
    names = each(n, f"import {{m# as z}} from '{'./' * 50}a';\nexport {{z as m#}};\n")
    calls = each(n, "a.m#();\n")
    files = {"a.ts": names, "c.ts": "export function f() {}\n", "b.ts": f"import * as a from './a';\nimport {{f}} from './c';\nf();\n{calls}"}
    return called(folder, "typescript", files)


@case(2000)
def types_within_a_long_name(n, folder):
    return called(folder, "java", {**JAVA, "B.java": f"class {'b' * n} {{\n" + "class D{}\n" * n + "}\n"})


@case(2000)
def types_of_a_long_package(n, folder):
    return called(folder, "java", {**JAVA, "B.java": f"package {'b' * n};\n" + "class D{}\n" * n})


@case(2000)
def variables_of_a_long_type(n, folder):
    return called(folder, "java", {**JAVA, "B.java": f"class B {{ {'T' * n} x{each(n, ', x#')}; }}\n"})


@case(2000)
def calls_of_a_long_path(n, folder):
    files = {"a.ts": "export function f() {}\n", "c.ts": "import {f} from './a';\n" + each(4, "function g#() {\n  f();\n}\n"), "b.ts": f"import {{f}} from './{'a/' * n}';\n" + "f();\n" * n}
    return called(folder, "typescript", files)


@case(400)
def calls_through_modules_that_export_all(n, folder):
    stars = {f"m{number}.ts": each(n // 10, "export * from './m#';\n") for number in range(10)}
    return called(folder, "typescript", {**stars, "e.ts": "export function f() {}\n", "k.ts": "import * as i from './m0';\nimport {f} from './e';\n" + each(n, "function g#() {\n  i.z#();\n  f();\n}\n")})


@case(300)
def calls_behind_stars_of_absent_modules(n, folder):
    defined = each(n, "def f#():\n    pass\n")
    return called(folder, "python", {"m.py": defined, "k.py": each(n, "from x# import *\n") + each(n, "f#()\n"), "c.py": "from m import f0\n" + each(4, "def g#():\n    f0()\n")})


@case(100)
def corpus_of_equal_repositories(n, folder):
    content = "".join(f"value_{number} = compute({number})\n" for number in range(60))
    rows = [{"repo_name": f"o/r{number}", "path": "a.py", "content": content + f"x = {number}\n", "stars_count": 0} for number in range(n)]
    write(folder, "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return run(folder, "group", "in.jsonl", "--shards", "1", "--dedup", "near", "-o", "out")


@case(4000)
def memory_of_drawing_instances(n, folder):
    """Fails by itself above 64 MiB and 32 bytes for each byte of the repository, since small sizes are lost in what the program has anyway."""
    bytes_of_sources = 0
    for number in range(5):
        lines = (f"a{number}_{at} = f(b{at}, c{number * n + at})\n" for at in range(n // 5))
        text = "import f0\n" + "".join(lines)
        bytes_of_sources += len(text)
        write(folder, f"repos/r/f{number}.py", text)
    most = memory(folder, "label", "sample", "--repos-dir", "repos", "--no-filter", "-o", "o.jsonl")
    if most > (64 << 20) + 32 * bytes_of_sources:
        raise SystemExit(f"label sample: {most} bytes of memory for {bytes_of_sources} of sources")
    return bytes_of_sources


def measured(name, size):
    function = CASES[name][1]
    with tempfile.TemporaryDirectory() as folder:
        return function(size, pathlib.Path(folder))


def main():
    names = sys.argv[1:] or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(CASES)}")
    if not shutil.which("valgrind"):
        print("growth: not measured, since valgrind is missing (Debian: apt-get install valgrind)")
        return
    if not PROGRAM.exists():
        raise SystemExit(f"{PROGRAM} is missing; cargo build --features serve")
    print("| input | size | instructions | of ten times the size |\n|---|---|---|---|")
    is_bad = False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name in names:
            size = CASES[name][0]
            tiny, one, ten = pool.map(measured, [name] * 3, [TINY, size, 10 * size])
            ratio = (ten - tiny) / (one - tiny)
            is_bad |= ratio > LIMIT
            mark = " (!)" if ratio > LIMIT else ""
            print(f"| {name} | {size} | {(one - tiny) / 1e6:.1f} M | {ratio:.1f} x{mark} |", flush=True)
    raise SystemExit(int(is_bad))


if __name__ == "__main__":
    main()
