"""The recipe of stack.py with datatrove's executor for Slurm: python stack-slurm.py INPUT WORK TOKENIZER.JSON

It submits an array of jobs for each pipeline, which begins when the one before has ended well. Repeat it when all have ended: it
submits the ranks that are not complete.
"""

import subprocess
import sys
import zlib

import stack
from datatrove.executor import SlurmPipelineExecutor
from repoformer.datatrove import Repoformer

NAME = f"stack-{zlib.crc32(stack.WORK.encode()):08x}"
before = None


def run(name, ranks, *commands):
    global before
    before = SlurmPipelineExecutor(
        pipeline=[Repoformer(*command, skipped=stack.LEAVE_OUT_BROKEN) for command in commands],
        tasks=ranks,
        depends=before,
        logging_dir=f"{stack.WORK}/logs/{name}",
        job_name=NAME,
        partition="main",
        time="24:00:00",
        cpus_per_task=2,
        mem_per_cpu_gb=4,
        # Jobs whose ranks before them have failed do not stay in the queue.
        sbatch_args={"kill-on-invalid-dep": "yes"},
    )
    before.run()


# datatrove keeps which rank a task of the array is in a file that a second start would replace.
if subprocess.check_output(["squeue", "--me", "--noheader", f"--name={NAME}"]):
    sys.exit(f"jobs of an earlier start are not over: wait, or scancel --me --name={NAME}")
stack.run = run
stack.main()
