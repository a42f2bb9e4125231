"""Reads what the recipes of docs/trackers wrote with each tracker's own reader, and compares it with rows.json.

python read_trackers.py wandb|mlflow|tensorboard rows.json FOLDER
"""

import glob
import json
import math
import re
import sys


def expected(rows):
    """Each number of the rows by the name that the recipes give it."""
    found = {}
    for row in rows:
        name = f"{row['benchmark']}/{row['mode']}/{row['metric'].split()[0]}"
        for key, value in row.items():
            if isinstance(value, (int, float)):
                found[f"{name}/{key}"] = float(value)
    return found


def records_of_wandb(data):
    """The records of a .wandb file: LevelDB's log in blocks of 32 KiB, behind 7 bytes of its own."""
    place, record = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def from_wandb(folder):
    from wandb.proto import wandb_internal_pb2

    [path] = glob.glob(f"{folder}/offline-run-*/run-*.wandb")
    numbers, config = {}, {}
    for data in records_of_wandb(open(path, "rb").read()):
        record = wandb_internal_pb2.Record.FromString(data)
        for item in record.summary.update:
            key = item.key or "/".join(item.nested_key)
            numbers[key] = json.loads(item.value_json)
        for item in record.run.config.update:
            config[item.key] = json.loads(item.value_json)
    numbers = {key: value for key, value in numbers.items() if not key.startswith("_")}
    return numbers, config["top-k"]


def from_mlflow(uri):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("demo")
    [run] = client.search_runs([experiment.experiment_id])
    return run.data.metrics, run.data.params["top-k"]


def from_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder).Reload()
    numbers = {}
    for tag in events.Tags()["scalars"]:
        [scalar] = events.Scalars(tag)
        numbers[tag] = scalar.value
    text = events.Tensors("settings")[0].tensor_proto.string_val[0].decode()
    return numbers, re.search(r"top-k = (\d+)", text)[1]


tracker, rows, place = sys.argv[1:]
read, digits = {
    "wandb": (from_wandb, 1e-12),
    "mlflow": (from_mlflow, 1e-12),
    "tensorboard": (from_tensorboard, 1e-6),  # 32 bits
}[tracker]
wanted = expected(json.load(open(rows)))
if tracker == "mlflow":
    wanted = {re.sub(r"[^\w./ -]", "_", key): value for key, value in wanted.items()}
found, top_k = read(place)
assert len(wanted) >= 20, wanted
assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
for key, value in wanted.items():
    assert math.isclose(found[key], value, rel_tol=digits, abs_tol=digits), (key, found[key], value)
assert str(top_k) == "20", top_k
print(f"{tracker}: {len(found)} numbers as in the table, and the settings")
