"""Commands of the program, for the modules that run them on clusters."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from functools import partial

from repoformer.__main__ import program

# Loaded before a process is forked, where little is safe.
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PARENT_DEATH_SIGNAL = 1


def filled(arguments, path=None, **values):
    """The command of these arguments, a list of texts: `{part}` stands for the value `part`, `{part:05d}` for five digits of it."""
    path = path or program() or shutil.which("repoformer")
    if path is None:
        raise FileNotFoundError("the program repoformer is neither installed with this module nor on the path")
    return [str(path), *(str(argument).format(**values) for argument in arguments)]


def run(command, say, skipped=False):
    """Runs a command, says each line that it prints, and returns its exit status: 0, or 1 where something may be `skipped`.

    The command ends with this process, so that a restart of its shard does not meet it. RuntimeError: another status, with the last
    lines.
    """
    last = deque(maxlen=5)
    process = subprocess.Popen(
        [*command, "--no-progress"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", preexec_fn=partial(end_with_parent, os.getpid()) if LIBC else None,
    )
    try:
        printed = threading.Thread(target=hand_on, args=(process.stdout, say, deque()))
        printed.start()
        hand_on(process.stderr, say, last)
        printed.join()
        status = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if status != 0 and not (status == 1 and skipped):
        ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
        raise RuntimeError(f"{ended} of {' '.join(command)}: {' | '.join(last)}")
    return status


def hand_on(stream, say, last):
    """Says the lines of a stream, and keeps the last ones."""
    for line in stream:
        line = line.rstrip()
        last.append(line)
        say(line)


def end_with_parent(parent):
    """Ends this process with its parent."""
    LIBC.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    # It may have ended before.
    if os.getppid() != parent:
        os._exit(2)
