"""Logs a run to Weights & Biases: python to_wandb.py rows.json settings.toml PROJECT

rows.json is what `repoformer run --format json` prints, settings.toml what `repoformer run --show-settings` prints.
Pip packages: wandb. With WANDB_MODE=offline, `wandb sync` uploads the run later.
"""

import json
import sys
import tomllib

import wandb

rows, settings, project = sys.argv[1:]
with open(settings, "rb") as file:
    config = tomllib.load(file)
with wandb.init(project=project, config=config) as run:
    for row in json.load(open(rows)):
        name = f"{row['benchmark']}/{row['mode']}/{row['metric'].split()[0]}"
        for key, value in row.items():
            if isinstance(value, (int, float)):
                run.summary[f"{name}/{key}"] = value
