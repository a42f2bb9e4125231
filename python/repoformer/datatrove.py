"""Steps of datatrove pipelines (https://github.com/huggingface/datatrove) that run this program on a rank's part of the work.

Any executor runs them: local, Slurm, Ray. A rank is complete when its command is, so datatrove's restarts repeat what is not, and
the program goes on where it was interrupted. Needs datatrove 0.4 or newer.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from functools import partial

from datatrove.pipeline.base import PipelineStep
from datatrove.utils.logging import logger

from repoformer.__main__ import program

# Loaded before a process is forked, where little is safe.
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PARENT_DEATH_SIGNAL = 1
COUNTS = re.compile(r"\b(\d[\d,]*) (?:\w+ )?(records|instances|predictions|repositories|sequences|tasks)\b")


class Repoformer(PipelineStep):
    """Runs the program once a rank.

    Args:
        *arguments: the command. `{shard}` stands for the rank's part as --shard takes it (rank 2 of 8 is `3/8`), `{rank}`
            for the rank from 0, `{part}` for the part from 1, `{world_size}` for their number; formats such as `{part:05d}`
            may follow. Braces are doubled.
        skipped: whether a rank is complete whose command left something out that is broken (exit status 1). What it left out
            is in the rank's log either way.
        path: the program [default: the one that was installed with this module, or `repoformer` on the path]
    """

    type = "📦 - REPOFORMER"

    def __init__(self, *arguments, skipped=False, path=None):
        self.name = next((str(argument) for argument in arguments), "repoformer")
        super().__init__()
        self.arguments = [str(argument) for argument in arguments]
        self.skipped = skipped
        self.path = path

    def command(self, rank, world_size):
        """The command of a rank, a list of texts."""
        path = self.path or program() or shutil.which("repoformer")
        if path is None:
            raise FileNotFoundError("the program repoformer is neither installed with this module nor on the path")
        part = rank + 1
        values = {"shard": f"{part}/{world_size}", "rank": rank, "part": part, "world_size": world_size}
        return [str(path), *(argument.format(**values) for argument in self.arguments)]

    def run(self, data=None, rank=0, world_size=1):
        # Steps before it run first.
        deque(data or (), maxlen=0)
        command = self.command(rank, world_size)
        logger.info("$ " + " ".join(command))
        last = deque(maxlen=5)
        with self.track_time("command"):
            process = subprocess.Popen(
                [*command, "--no-progress"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="replace", preexec_fn=partial(end_with_parent, os.getpid()) if LIBC else None,
            )
            try:
                printed = threading.Thread(target=self.log, args=(process.stdout, deque()))
                printed.start()
                self.log(process.stderr, last)
                printed.join()
                status = process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if status == 1 and self.skipped:
            self.stat_update("commands that left something out")
        elif status != 0:
            ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
            raise RuntimeError(f"{ended} of {' '.join(command)}: {' | '.join(last)}")
        self.stat_update("commands")

    def log(self, stream, last):
        """Logs lines of the program, and counts what they say."""
        for line in stream:
            line = line.rstrip()
            last.append(line)
            say = logger.error if line.startswith("error:") else logger.warning if line.startswith("warning:") else logger.info
            say(line)
            for count, noun in COUNTS.findall(line):
                self.stat_update(noun, value=int(count.replace(",", "")), unit="command")


def end_with_parent(parent):
    """Ends this process with its parent: a rank that is killed must not leave a command that its restart would meet."""
    LIBC.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    # It may have ended before.
    if os.getppid() != parent:
        os._exit(2)
