"""Searches the hyper-parameters of the paper's grid (section 4.1): one run of train.py for each point, in a folder of its own.

    python docs/grid.py sequences output --model bigcode/starcoderbase-1b

Flags that are not below go to train.py. Finished points are kept, and an interrupted one is resumed.
"""

import argparse
import itertools
import json
import shlex
import subprocess
import sys
from pathlib import Path

import train

GRID = {
    "lr": (float, "1e-5,2e-5,5e-5"),
    "lambda": (float, "0.2,1,2,5"),
    "epochs": (int, "1,2,5"),
    "warmup": (int, "50,100"),
}


def parse():
    parser = argparse.ArgumentParser(description="Searches the paper's hyper-parameters.", allow_abbrev=False)
    parser.add_argument("sequences", help="folder that `repoformer label verbalize` wrote")
    parser.add_argument("output", type=Path, help="folder for the runs")
    parser.add_argument("--launch", default="accelerate launch", help="command that starts train.py [%(default)s]")
    for name, (kind, values) in GRID.items():
        values_of = lambda text, kind=kind: [kind(value) for value in text.split(",")]
        parser.add_argument(f"--{name}", type=values_of, default=values, help="values, with commas between [%(default)s]")
    return parser.parse_known_args()


def evaluation_of(args, point, rest):
    """The evaluation after the last epoch, of the run in the point's folder or of a new one."""
    folder = args.output / "_".join(f"{name}-{value:g}" for name, value in point.items())
    flags = [text for name, value in point.items() for text in [f"--{name}", str(value)]]
    arguments = [args.sequences, str(folder), *flags, *rest]
    settings = train.settings_of(train.parse(arguments))
    result = folder / "result.json"
    if not result.exists():
        print(f"== {folder}", flush=True)
        resume = ["--resume"] if train.last_state(folder) else []
        command = [*shlex.split(args.launch), train.__file__, *arguments, *resume]
        if code := subprocess.run(command).returncode:
            sys.exit(f"{folder}: train.py ended with status {code}; what is finished is kept")
    finished = json.loads(result.read_text(encoding="utf-8"))
    if changed := train.differences(finished["settings"], settings):
        sys.exit(f"{folder} holds a run with other settings: {'; '.join(changed)}; give another folder")
    return finished["evaluations"][-1]


def main():
    args, rest = parse()
    axes = {name: getattr(args, name) for name in GRID}
    points = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    found = [(point, evaluation_of(args, point, rest)) for point in points]
    found.sort(key=lambda pair: pair[1]["L_gen"])
    columns = ["L_gen", "L_eval", "AUC", "accuracy"]
    print("".join(f"{name:>10}" for name in [*GRID, *columns]))
    for point, evaluation in found:
        settings = "".join(f"{value:>10g}" for value in point.values())
        measured = [evaluation.get(name) for name in columns]
        print(settings + "".join(f"{'-' if value is None else f'{value:.4f}':>10}" for value in measured))
    best = ", ".join(f"{name} {value:g}" for name, value in found[0][0].items())
    print(f"smallest L_gen of validation after the last epoch: {best}")


if __name__ == "__main__":
    main()
