"""Writes a run for TensorBoard: python to_tensorboard.py rows.json settings.toml FOLDER

rows.json is what `repoformer run --format json` prints, settings.toml what `repoformer run --show-settings` prints.
Pip packages: tensorboard. Give each run a FOLDER of its own below the one that `tensorboard --logdir` shows.
"""

import json
import sys

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

rows, settings, folder = sys.argv[1:]
writer = EventFileWriter(folder)
for row in json.load(open(rows)):
    name = f"{row['benchmark']}/{row['mode']}/{row['metric'].split()[0]}"
    values = {f"{name}/{key}": value for key, value in row.items() if isinstance(value, (int, float))}
    scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
    writer.add_event(Event(step=0, summary=Summary(value=scalars)))
with open(settings) as file:
    writer.add_event(Event(step=0, summary=text_pb("settings", "    " + file.read().replace("\n", "\n    "))))
writer.close()
