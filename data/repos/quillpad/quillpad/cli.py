"""Command line interface."""

import argparse
import sys
from pathlib import Path
from typing import List, Optional

from quillpad.api import parse, process
from quillpad.config import Config, RenderOptions, load_config
from quillpad.diagnostics import DiagnosticSink, Severity, SourceText, format_diagnostics
from quillpad.errors import QuillpadError
from quillpad.render import RENDERERS, create_renderer
from quillpad.site import SiteBuilder


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quillpad", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    render = commands.add_parser("render", help="render one file to standard output")
    render.add_argument("file", type=Path)
    render.add_argument("--to", default="html", choices=RENDERERS.names())
    render.add_argument("--width", type=int, default=72)
    render.set_defaults(run=run_render)
    build = commands.add_parser("build", help="build a site")
    build.add_argument("--config", type=Path, default=Path("quillpad.json"))
    build.set_defaults(run=run_build)
    return parser


def run_render(args: argparse.Namespace) -> int:
    """Render a file and show its diagnostics on standard error."""
    sink = DiagnosticSink()
    source = SourceText(args.file.read_text(encoding="utf-8"), args.file.name)
    document = process(parse(source.text, source.name, sink), sink=sink)
    options = RenderOptions(width=args.width)
    sys.stdout.write(create_renderer(args.to, options).render(document))
    if sink.items:
        print(format_diagnostics(sink, source), file=sys.stderr)
    return 1 if sink.count(Severity.ERROR) else 0


def run_build(args: argparse.Namespace) -> int:
    config: Config = load_config(args.config)
    report = SiteBuilder(args.config.parent, config).build()
    print(f"wrote {len(report.written)} files, copied {report.assets} assets")
    if report.sink.items:
        print(format_diagnostics(report.sink), file=sys.stderr)
    return 1 if report.sink.count(Severity.ERROR) else 0


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command line and return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        return args.run(args)
    except QuillpadError as error:
        print(f"quillpad: {error.describe()}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"quillpad: {error}", file=sys.stderr)
        return 1
