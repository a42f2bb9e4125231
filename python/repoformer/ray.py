"""Shards of work on a Ray cluster (https://www.ray.io), with a model server beside each worker.

`docs/workflows/ray_complete.py` is a recipe. Tested with Ray 2.60. All nodes share the folders of the work.
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

# The program's words about a lock, here of a worker that Ray has given up and that has not noticed yet.
BUSY = re.compile(r"another \w+ (is writing|groups)")
# Seconds between two looks at it, and number of looks.
BUSY_PAUSE, BUSY_LOOKS = 10, 60
# Number of servers in a row that end while they work on a shard, after which it fails.
ENDS = 3
# Ends a server, and what that has started, when its input ends: with the worker, however that ends. It is no child of the worker,
# for those are ended by Ray.
GUARD = """
exec 3<&0
( cat <&3; kill -- "-$1"; for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 -- "-$1" || exit; sleep 1; done; kill -9 -- "-$1" ) &
"""


class ModelServer:
    """For `map_batches` of ray.data: a worker that starts a model server on its node, and runs commands that ask it.

    A batch has a column `part`, numbers of shards from 1. It is returned with a column `failed`: why the shard's command failed, or
    an empty text. The worker ends with its server. Ray then starts it again, and it goes on with its shards.

    Args:
        server: command of the server, a list of texts. `{port}` stands for the port of 127.0.0.1 on which it must listen.
        commands: commands of a shard, without `repoformer`, one after the other. `{port}` stands for the server's port,
            `{part}` for the shard's number (`{part:05d}` for five digits), `{shard}` for the shard as --shard takes it.
            Braces are doubled.
        shards: number of all shards
        logs: folder for what servers and commands print
        ready: path at which the server answers with status 200 once it has loaded its model
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
        with open(self.log, "w") as log:
            self.server = subprocess.Popen(
                [str(argument).format(port=self.port) for argument in server],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
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
        end = time.monotonic() + patience
        while True:
            try:
                opener.open(url, timeout=10).close()
                is_ready = True
            except OSError:
                is_ready = False
            # Another program may answer at its port.
            if self.server.poll() is not None:
                raise RuntimeError(f"{self.ended()} before it answered")
            if is_ready:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"the model server on {socket.gethostname()} does not answer after {patience} s ({self.log})")
            time.sleep(1)

    def ended(self):
        """How the server ended, with its last lines."""
        with open(self.log, errors="replace") as log:
            last = " | ".join(line.rstrip() for line in deque(log, maxlen=5))
        return f"the model server on {socket.gethostname()} ended with status {self.server.returncode} ({self.log}: {last})"

    def end_with_server(self):
        self.server.wait()
        # Ray ends the servers of workers that have done their work, and then the workers.
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
        """Works on a shard; returns why it failed, or an empty text."""
        ends = self.file(part, "ended")
        try:
            with open(ends) as lines:
                ended = lines.read().splitlines()
        except FileNotFoundError:
            ended = []
        if len(ended) < ENDS:
            self.working.add(part)
            with open(self.file(part, "log"), "a", buffering=1) as log:
                failed = self.run_all(part, lambda line: print(time.strftime("%F %T"), line, file=log))
            self.working.discard(part)
        else:
            failed = f"{ended[-1]}, the third in a row with this shard"
        if ended:
            os.remove(ends)
        return failed

    def run_all(self, part, say):
        """Runs the commands of a shard, one after the other."""
        for arguments in self.commands:
            command = filled(arguments, self.path, port=self.port, part=part, shard=f"{part}/{self.shards}")
            say(f"{socket.gethostname()}$ {' '.join(command)}")
            for looks in range(1, BUSY_LOOKS + 1):
                try:
                    run(command, say, self.skipped)
                    break
                except RuntimeError as error:
                    if self.server.poll() is not None:
                        threading.Event().wait()  # for the end of this worker
                    if not BUSY.search(str(error)) or looks == BUSY_LOOKS:
                        return str(error)
                time.sleep(BUSY_PAUSE)
        return ""
