"""Logs a run to MLflow: python to_mlflow.py rows.json settings.toml EXPERIMENT

rows.json is what `repoformer run --format json` prints, settings.toml what `repoformer run --show-settings` prints.
Pip packages: mlflow-skinny, or mlflow. The store is where MLFLOW_TRACKING_URI says.
"""

import json
import re
import sys
import tomllib

import mlflow

rows, settings, experiment = sys.argv[1:]
mlflow.set_experiment(experiment)
with mlflow.start_run():
    with open(settings, "rb") as file:
        mlflow.log_params(tomllib.load(file))
    for row in json.load(open(rows)):
        name = f"{row['benchmark']}/{row['mode']}/{row['metric'].split()[0]}"
        values = {key: value for key, value in row.items() if isinstance(value, (int, float))}
        # MLflow takes no other characters: learned@0.2.
        mlflow.log_metrics({re.sub(r"[^\w./ -]", "_", f"{name}/{key}"): value for key, value in values.items()})
    mlflow.log_artifact(rows)
