"""Steps of datatrove pipelines (https://github.com/huggingface/datatrove) that run this program on a rank's part of the work.

Any executor runs them: local, Slurm, Ray. A rank is complete when its command is, so datatrove's restarts repeat what is not, and
the program goes on where it was interrupted. Tested with datatrove 0.10.1.
"""

import os
import re
from collections import deque

import multiprocess
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.logging import logger

from repoformer.command import LIBC, end_with_parent, filled, run

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
        part = rank + 1
        return filled(self.arguments, self.path, shard=f"{part}/{world_size}", rank=rank, part=part, world_size=world_size)

    def run(self, data=None, rank=0, world_size=1):
        # A process of a pool, which Ray leaves behind when it kills the one that made the pool.
        if LIBC and multiprocess.parent_process():
            end_with_parent(os.getppid())
        # Steps before it run first.
        deque(data or (), maxlen=0)
        command = self.command(rank, world_size)
        logger.info("$ " + " ".join(command))
        with self.track_time("command"):
            if run(command, self.log, self.skipped) == 1:
                self.stat_update("commands that left something out")
        self.stat_update("commands")

    def log(self, line):
        """Logs a line of the program, and counts what it says."""
        say = logger.error if line.startswith("error:") else logger.warning if line.startswith("warning:") else logger.info
        say(line)
        for count, noun in COUNTS.findall(line):
            self.stat_update(noun, value=int(count.replace(",", "")), unit="command")
