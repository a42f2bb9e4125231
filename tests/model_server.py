#!/usr/bin/env python3
"""A model server for tests: it completes on 127.0.0.1, equal prompts alike, and logs its requests.

    tests/model_server.py PORT LOG [--seconds S] [--loading S] [--requests N]

A line of LOG is a JSON list: port, the digest of the prompt, when the request came, and when its answer was written, or null where whoever
asked was gone. --seconds is how long an answer takes, --loading how long the server answers 503 at first, as one that loads its model, and
--requests after how many requests it ends with status 1.
"""

import argparse
import hashlib
import http.server
import json
import os
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        is_loaded = time.time() > self.server.loaded
        self.answer(200 if is_loaded else 503, {"data": []} if is_loaded else {"error": {"message": "loading"}})

    def do_POST(self):
        begin = time.time()
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        time.sleep(self.server.seconds)
        text = f"\nx_{int(digest, 16) % 1000} = 1"
        logprobs = {"content": [{"id": 3, "token": text, "logprob": -0.5}]}
        try:
            self.answer(200, {"choices": [{"index": 0, "text": text, "finish_reason": "stop", "logprobs": logprobs}]})
            end = time.time()
        except OSError:
            end = None
        self.server.log.write(json.dumps([self.server.server_port, digest, begin, end]) + "\n")
        self.server.left -= 1
        if self.server.left <= 0:
            print("the end", flush=True)
            os._exit(1)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # whoever asked was killed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("port", type=int)
    parser.add_argument("log")
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--loading", type=float, default=0)
    parser.add_argument("--requests", type=float, default=float("inf"))
    arguments = parser.parse_args()
    server = Server(("127.0.0.1", arguments.port), Handler)
    server.seconds, server.loaded, server.left = arguments.seconds, time.time() + arguments.loading, arguments.requests
    # Line by line, and shared by several servers: each line is one write.
    server.log = open(arguments.log, "a", buffering=1)
    server.serve_forever()


if __name__ == "__main__":
    main()
