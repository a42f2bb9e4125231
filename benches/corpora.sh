#!/usr/bin/env bash
# Fetches well-known hand-written Python packages at fixed versions into DIR/all/PACKAGE: half a million windows of real code.
#
#   benches/corpora.sh DIR
#
# All packages lie below one repository folder, so that `--repos-dir DIR` sees one repository and one index. Only the
# Python sources are kept. A package that is there already is not fetched again.
set -euo pipefail

target=${1:?usage: benches/corpora.sh DIR}
all=$target/all
mkdir -p "$all"
archives=$(mktemp -d -p "$target" .archives.XXXXXX)
trap 'rm -rf "$archives"' EXIT

# Wheels alone: they hold the sources as they are installed (tests too, where the package ships them), and nothing is
# built. All of them are written by hand: generated clients would fill the index with copies of a few shapes.
packages=(
  astropy==7.0.0 biopython==1.84 dask==2024.12.0 Django==5.1.4 matplotlib==3.9.3 mne==1.9.0 moto==5.0.22 mypy==1.13.0
  networkx==3.4.2 nltk==3.9.1 numpy==2.1.3 pandas==2.2.3 scikit-image==0.24.0 scikit-learn==1.5.2 scipy==1.14.1
  Sphinx==8.1.3 SQLAlchemy==2.0.36 statsmodels==0.14.4 sympy==1.13.3 transformers==4.46.3 Twisted==24.11.0
  xarray==2024.11.0
)

fetch() { # PIN...
  for pin in "$@"; do
    local package=${pin%%==*} folder
    [ -d "$all/$package" ] && continue
    folder=$(mktemp -d -p "$archives")
    pip download --quiet --no-deps --dest "$folder" --only-binary=:all: --implementation cp --python-version 3.12 \
      --abi cp312 --abi abi3 --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
      --platform manylinux2014_x86_64 "$pin"
    python3 - "$folder" "$all/$package" <<'PYTHON'
import pathlib, sys, zipfile
(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
part = pathlib.Path(sys.argv[1]) / "sources"
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(part, [name for name in archive.namelist() if name.endswith(".py")])
part.rename(sys.argv[2])
PYTHON
    rm -rf "$folder"
  done
}

# Two at a time: one waits for the network while the other unpacks.
half=$((${#packages[@]} / 2))
fetch "${packages[@]:0:half}" &
fetch "${packages[@]:half}"
wait $!

find "$all" -name '*.py' -print0 | xargs -0 cat | wc -l | xargs printf '%s lines of Python in '
echo "${#packages[@]} packages"
