"""Runs the program that was installed with this module: `python -m repoformer …` is `repoformer …`."""

import os
import sys
from importlib import metadata
from pathlib import Path


def program():
    """Path of the program, or None where it is missing."""
    try:
        files = metadata.files("repoformer") or []
    except metadata.PackageNotFoundError:
        files = []
    places = [file.locate() for file in files if file.name == "repoformer"]
    # `pip install --target` moves the program after it has written down its place.
    places.append(Path(__file__).parents[1] / "bin" / "repoformer")
    return next((place for place in places if os.access(place, os.X_OK)), None)


def main():
    path = program()
    if path is None:
        print("error: this Python has the module repoformer without its program", file=sys.stderr)
        print("hint: python -m pip install --force-reinstall repoformer", file=sys.stderr)
        sys.exit(2)
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
