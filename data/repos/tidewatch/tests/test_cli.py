import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from tests.helpers import series_of
from tidewatch.cli import main
from tidewatch.config import Config
from tidewatch.errors import ConfigError
from tidewatch.reports import RENDERERS, build_report
from tidewatch.storage import CsvStore

STATION = {"gauge": {"code": "KIEL"}, "calibration": {"kind": "linear", "gain": 2},
           "rules": [{"kind": "high", "limit": 5}]}


class ReportTest(unittest.TestCase):
    def test_renderers(self):
        report = build_report(series_of(1, 3, 1))
        for kind, line in (("text", "maximum  3.00"), ("markdown", "| maximum | 3.00 |")):
            self.assertIn(line, RENDERERS.create(kind).render(report).split("\n"))


class ConfigTest(unittest.TestCase):
    def test_process_calibrates(self):
        config = Config.from_dict({"stations": [STATION]})
        self.assertEqual(config.process(series_of(1, 2)).values, [2, 4])

    def test_missing_plugin(self):
        with self.assertRaisesRegex(ConfigError, "no_such_plugin"):
            Config.from_dict({"stations": [], "plugins": ["no_such_plugin"]})


class MainTest(unittest.TestCase):
    def run_main(self, *arguments):
        output, errors = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            CsvStore(folder).save(series_of(1, 3, 1))
            path = Path(folder, "config.json")
            path.write_text(json.dumps({"stations": [STATION]}))
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                status = main(["--store", f"csv:{folder}", "--config", str(path), *arguments])
        return status, output.getvalue() + errors.getvalue()

    def test_list(self):
        self.assertEqual(self.run_main("list"), (0, "Kiel Harbour (KIEL): 3 readings\n"))

    def test_report_contains_alarm(self):
        status, output = self.run_main("report", "KIEL", "--format", "markdown")
        self.assertEqual(status, 0)
        self.assertIn("| WARNING | 2021-03-01T00:10:00Z | 6.00 m reaches 5.00 |", output)

    def test_unknown_gauge(self):
        self.assertEqual(self.run_main("summary", "HUSUM")[0], 1)
