"""Sample data shared by the tests."""

from datetime import datetime, timedelta

from tidewatch.model import Gauge, Series
from tidewatch.timeutil import UTC

START = datetime(2021, 3, 1, tzinfo=UTC)
KIEL = Gauge("KIEL", "Kiel Harbour")


def series_of(*values, step=timedelta(minutes=10), gauge=KIEL):
    """Return an evenly spaced series that begins at START."""
    return Series.from_values(gauge, START, step, values)


def minutes(count):
    """Return the time a number of minutes after START."""
    return START + timedelta(minutes=count)
