"""Command line interface."""

import argparse
import sys
from typing import List, Optional

from tidewatch.config import Config
from tidewatch.errors import TidewatchError
from tidewatch.processing import summarize
from tidewatch.reports import RENDERERS, build_report
from tidewatch.storage import SeriesStore, open_store
from tidewatch.tides import find_extrema, fit_model
from tidewatch.timeutil import parse_duration


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with all subcommands."""
    parser = argparse.ArgumentParser(prog="tidewatch", description="Water level toolkit")
    parser.add_argument("--store", required=True, help="location as kind:path")
    parser.add_argument("--config", help="JSON file with stations")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list stored gauges").set_defaults(run=run_list)
    summary = commands.add_parser("summary", help="print key figures")
    summary.set_defaults(run=run_summary)
    predict = commands.add_parser("predict", help="print predicted high and low waters")
    predict.add_argument("--hours", default="24h", help="length of the prediction")
    predict.set_defaults(run=run_predict)
    report = commands.add_parser("report", help="render a report")
    report.add_argument("--format", default="text", choices=RENDERERS.names())
    report.set_defaults(run=run_report)
    for command in (summary, predict, report):
        command.add_argument("code", help="gauge code")
    return parser


def run_list(args: argparse.Namespace, store: SeriesStore, config: Config) -> None:
    """Print one line per stored gauge."""
    for code in store.codes():
        series = store.load(code)
        print(f"{series.gauge.label}: {len(series)} readings")


def run_summary(args: argparse.Namespace, store: SeriesStore, config: Config) -> None:
    """Print the key figures of a gauge."""
    summary = summarize(config.process(store.load(args.code)))
    for name, value in summary.to_dict().items():
        print(f"{name}: {value:.3f}" if isinstance(value, float) else f"{name}: {value}")


def run_predict(args: argparse.Namespace, store: SeriesStore, config: Config) -> None:
    """Fit the stored data and print the turning points that follow it."""
    series = config.process(store.load(args.code))
    end = series.end + parse_duration(args.hours)
    for extremum in find_extrema(fit_model(series).predict(series.gauge, series.end, end)):
        print(extremum)


def run_report(args: argparse.Namespace, store: SeriesStore, config: Config) -> None:
    """Render the standard report of a gauge."""
    series = config.process(store.load(args.code))
    report = build_report(series, config.engine().check(series, series.end))
    print(RENDERERS.create(args.format).render(report), end="")


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command line; return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        config = Config.load(args.config) if args.config else Config({})
        with open_store(args.store) as store:
            args.run(args, store, config)
    except TidewatchError as error:
        print(f"tidewatch: {error}", file=sys.stderr)
        return 1
    return 0
