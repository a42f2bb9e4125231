#!/usr/bin/env python3
"""Milliseconds from a model's writing of a token to its arrival at the editor, through `serve`.

    cargo build --release --features serve
    benches/stream.py [PROGRAM]      # PROGRAM: target/release/repoformer

A stand-in for the model writes 20 tokens, one each 3 ms, for each of 50 requests on one connection that is kept open, as editors keep it.
A token is the time at which it was written.
"""
import http.client
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/repoformer").resolve()


class Model(http.server.BaseHTTPRequestHandler):
    disable_nagle_algorithm = True

    def log_message(self, *_): pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for _ in range(20):
            event = {"choices": [{"text": f"{time.monotonic():.6f};"}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            time.sleep(0.003)
        self.wfile.write(b"data: [DONE]\n\n")


def main():
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder, "repos", "shop")
        repository.mkdir(parents=True)
        (repository / "cart.py").write_text("total = 0\n")
        command = [
            PROGRAM, "serve", "--listen", "127.0.0.1:0", "--repos-dir", repository.parent, "--repo", "shop", "--no-watch",
            "--cache-dir", f"{folder}/cache", "--endpoint", f"http://127.0.0.1:{model.server_port}",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                said = []
                for line in server.stderr:
                    said.append(line)
                    if "listening on" in line:
                        break
                else:
                    sys.exit("".join(said))
                delays = sorted(measured(http.client.HTTPConnection(line.split("http://")[1].strip())))
            finally:
                server.kill()
    places = {name: delays[int(len(delays) * part)] for name, part in [("half", 0.5), ("95 %", 0.95), ("99 %", 0.99)]}
    print(f"{len(delays)} tokens:", ", ".join(f"{name} {ms:.2f} ms" for name, ms in places.items()))


def measured(connection):
    for _ in range(50):
        body = {"prompt": "total = total", "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body))
        answer = connection.getresponse()
        while part := answer.read1(1 << 16):
            now = time.monotonic()
            for written in re.findall(rb'"text":"([\d.]+);', part):
                yield (now - float(written)) * 1000


if __name__ == "__main__":
    main()
