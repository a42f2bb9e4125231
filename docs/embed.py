"""Embeds texts with UniXcoder, CodeBERT or another encoder, for dense retrieval.

    python embed.py MODEL texts.jsonl vectors.jsonl    (or vectors.npy)
    python embed.py MODEL --serve PORT

MODEL is a name on the hub (microsoft/unixcoder-base, microsoft/codebert-base) or a folder. The first form embeds the texts of
`repoformer vectorize --ranker dense --write-texts texts.jsonl`. The second answers POST /v1/embeddings on 127.0.0.1.
"""

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import torch
from transformers import AutoModel, AutoTokenizer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("files", nargs="*", metavar="texts.jsonl vectors.jsonl")
parser.add_argument("--serve", type=int, metavar="PORT")
parser.add_argument("--pooling", choices=["first", "mean"], help="of the last layer; mean for UniXcoder, first otherwise")
parser.add_argument("--batch", type=int, default=32, help="texts at a time")
args = parser.parse_args()
if (args.serve is None) == (len(args.files) != 2):
    parser.error("give two files, or --serve PORT")

torch.set_num_threads(torch.get_num_threads() if torch.cuda.is_available() else 1)
device = "cuda" if torch.cuda.is_available() else "cpu"
tokenizer = AutoTokenizer.from_pretrained(args.model)
model = AutoModel.from_pretrained(args.model).to(device).eval()
# RoBERTa counts positions from the one behind its padding token.
longest = min(512, model.config.max_position_embeddings - 2)
# UniXcoder is told its mode by a token at the beginning: <s><encoder-only></s> code </s>.
mode = tokenizer.convert_tokens_to_ids("<encoder-only>")
is_unixcoder = mode is not None and mode != tokenizer.unk_token_id
pooling = args.pooling or ("mean" if is_unixcoder else "first")
lock = threading.Lock()


def encode(text):
    """Token numbers of a text, cut at its end to what the model takes."""
    head = [tokenizer.cls_token_id] + ([mode, tokenizer.sep_token_id] if is_unixcoder else [])
    ids = tokenizer(text, add_special_tokens=False, truncation=True, max_length=longest - len(head) - 1)["input_ids"]
    return head + ids + [tokenizer.sep_token_id]


def embed(texts):
    """Vectors of texts, each of length 1."""
    rows = [encode(text) for text in texts]
    width = max(map(len, rows))
    ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    with lock, torch.inference_mode():
        layer = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    if pooling == "mean":
        pooled = (layer * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    else:
        pooled = layer[:, 0]
    return torch.nn.functional.normalize(pooled).cpu().numpy()


class Handler(BaseHTTPRequestHandler):
    """OpenAI's form of an embedding server."""

    protocol_version = "HTTP/1.1"
    # Head and body of an answer leave at once.
    disable_nagle_algorithm = True

    def do_GET(self):
        self.answer(200, {"object": "list", "data": [{"id": args.model, "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/embeddings":
            return self.answer(404, {"error": {"message": f"no {self.path} here, only /v1/embeddings"}})
        if body.get("model") != args.model:
            return self.answer(404, {"error": {"message": f"no model {body.get('model')!r} here, only {args.model!r}"}})
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [row.tolist() for at in range(0, len(texts), args.batch) for row in embed(texts[at : at + args.batch])]
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(vectors)]
        self.answer(200, {"object": "list", "model": args.model, "data": data})

    def answer(self, status, content):
        content = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


if args.serve is not None:
    server = ThreadingHTTPServer(("127.0.0.1", args.serve), Handler)
    print(f"{args.model} ({pooling} pooling) answers at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

source, target = args.files
records = [json.loads(line) for line in open(source, encoding="utf-8")]
batches = (records[at : at + args.batch] for at in range(0, len(records), args.batch))
vectors = [row for batch in batches for row in embed([record["text"] for record in batch])]
if target.endswith(".npy"):
    numpy.save(target, numpy.stack(vectors))
else:
    with open(target, "w", encoding="utf-8") as out:
        for record, row in zip(records, vectors):
            out.write(json.dumps({"digest": record["digest"], "embedding": row.tolist()}) + "\n")
