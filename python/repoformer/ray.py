"""Shards of work on a Ray cluster (https://www.ray.io), each worker with a model server of its own.

`docs/workflows/ray_complete.py` is a recipe. Needs Ray 2.60 or newer with `ray.data`, and folders that all nodes share.
"""

import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections import deque

from repoformer.command import filled, run

# The lock of a worker that is about to end: its node was given up before it noticed.
BUSY = re.compile(r"another \w+ (is writing|groups)")
# A shard fails with its server after so many ends of servers in a row.
SERVER_ENDS = 3
# Ends a server and all that it started when its input ends: with the worker, however that ends. Ray ends the worker's own children,
# of which this is none.
GUARD = """
exec 3<&0
( cat <&3; kill -- "-$1"; for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 -- "-$1" || exit; sleep 1; done; kill -9 -- "-$1" ) &
"""


class ModelServer:
    """For `map_batches`: a worker that starts a model server on its node, and runs commands of the program that ask it.

    A batch has a column `part`, the numbers of shards from 1. What comes back has a column `failed` beside it: why a shard's
    command failed, or an empty text. The worker ends with its server: Ray starts it again, and with it the shards it was working on,
    which go on where they were.

    Args:
        server: command that starts the server, a list of texts. `{port}` stands for the port of 127.0.0.1 on which it must listen.
        commands: commands of a shard, without `repoformer`, one after the other. `{port}` stands for the server's port,
            `{part}` for the shard's number (`{part:05d}` for five digits), `{shard}` for the shard as --shard takes it.
            Braces are doubled.
        shards: number of all shards
        logs: folder for the output of servers
        ready: what the server answers with status 200 when it has loaded its model
        patience: seconds until then, at most
        skipped: whether a shard is complete whose command left something out that is broken (exit status 1)
        path: the program [default: the one that was installed with this module, or `repoformer` on the path]
    """

    def __init__(self, server, commands, shards, logs, ready="/v1/models", patience=3600, skipped=False, path=None):
        self.commands, self.shards, self.logs, self.skipped, self.path = commands, shards, logs, skipped, path
        self.working = set()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        os.makedirs(logs, exist_ok=True)
        self.log = os.path.join(logs, f"server-{socket.gethostname()}-{self.port}.log")
        command = [str(argument).format(port=self.port) for argument in server]
        with open(self.log, "w") as log:
            self.server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.guard = subprocess.Popen(
            ["sh", "-c", GUARD, "sh", str(self.server.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        try:
            self.wait(f"http://127.0.0.1:{self.port}{ready}", patience)
        except RuntimeError:
            self.guard.stdin.close()
            self.server.wait()
            raise
        threading.Thread(target=self.end_with_server, daemon=True).start()

    def wait(self, url, patience):
        """Waits until the server answers."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        begin = time.monotonic()
        while True:
            try:
                opener.open(url, timeout=10).close()
                is_ready = True
            except OSError:
                is_ready = False
            if self.server.poll() is not None:
                raise RuntimeError(f"{self.ended()} before it answered")
            if is_ready:
                return
            if time.monotonic() - begin > patience:
                raise RuntimeError(f"the model server on {socket.gethostname()} does not answer after {patience} s ({self.log})")
            time.sleep(1)

    def ended(self):
        with open(self.log, errors="replace") as log:
            last = " | ".join(line.rstrip() for line in deque(log, maxlen=5))
        return f"the model server on {socket.gethostname()} ended with status {self.server.returncode} ({self.log}: {last})"

    def end_with_server(self):
        self.server.wait()
        # A worker whose work is done ends its server, and is gone by then.
        time.sleep(3)
        why = self.ended()
        for part in list(self.working):
            with open(self.file(part, "ended"), "a") as ended:
                print(why, file=ended)
        print(f"{why}; it is started again", flush=True)
        os._exit(1)

    def file(self, part, kind):
        return os.path.join(self.logs, f"{part:05d}.{kind}")

    def __call__(self, batch):
        return {**batch, "failed": [self.shard(int(part)) for part in batch["part"]]}

    def shard(self, part):
        """Runs the commands of a shard; returns why one failed."""
        ended = self.file(part, "ended")
        try:
            with open(ended) as lines:
                ends = lines.read().splitlines()
        except FileNotFoundError:
            ends = []
        self.working.add(part)
        with open(self.file(part, "log"), "a", buffering=1) as log:
            failed = ends[-1] if len(ends) == SERVER_ENDS else self.run(part, log)
        self.working.discard(part)
        if ends:
            os.remove(ended)
        return failed

    def run(self, part, log):
        say = lambda line: print(time.strftime("%F %T"), line, file=log)
        for arguments in self.commands:
            command = filled(arguments, self.path, port=self.port, part=part, shard=f"{part}/{self.shards}")
            say(f"{socket.gethostname()}$ {' '.join(command)}")
            for waited in range(61):
                try:
                    run(command, say, self.skipped)
                    break
                except RuntimeError as error:
                    if self.server.poll() is not None:
                        threading.Event().wait()  # for the end of this worker
                    if waited == 60 or not BUSY.search(str(error)):
                        return str(error)
                time.sleep(10)
        return ""
