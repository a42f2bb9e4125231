"""Command line interface."""
import argparse
import json
import sys
from typing import Any, Dict, List, Optional

from parcelflow.api.http import Response
from parcelflow.app import Application
from parcelflow.exceptions import ParcelflowError
from parcelflow.settings import Settings


def place(text: str) -> Dict[str, Any]:
    """Turn ``DE:10115`` into a minimal address for quotes."""
    country, _, postcode = text.partition(":")
    return {"name": "-", "street": "-", "city": "-", "postcode": postcode, "country": country}


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="parcelflow")
    commands = parser.add_subparsers(dest="command", required=True)
    quote = commands.add_parser("quote", help="price a single parcel")
    quote.add_argument("--from", dest="origin", required=True, metavar="CC:POSTCODE")
    quote.add_argument("--to", dest="destination", required=True, metavar="CC:POSTCODE")
    quote.add_argument("--weight", type=float, required=True, help="kilograms")
    quote.add_argument("--carrier", default="postal")
    track = commands.add_parser("track", help="show the tracking history")
    track.add_argument("number")
    return parser


def run(app: Application, args: argparse.Namespace) -> Response:
    if args.command == "quote":
        parcel = {"weight_kg": args.weight, "size_cm": [20, 15, 10]}
        body = {"sender": place(args.origin), "recipient": place(args.destination),
                "parcels": [parcel], "carrier": args.carrier}
        return app.call("POST", "/quotes", body)
    return app.call("GET", "/tracking/" + args.number)


def main(argv: Optional[List[str]] = None) -> int:
    """Return 0 on success, 1 when the API answered with an error, 2 for bad settings."""
    args = build_parser().parse_args(argv)
    try:
        app = Application(Settings.from_env())
    except ParcelflowError as error:
        print("error: " + error.message, file=sys.stderr)
        return 2
    response = run(app, args)
    print(json.dumps(response.body, indent=2))
    return 0 if response.status < 400 else 1
