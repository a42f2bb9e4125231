"""What a report says, independent of how it is rendered."""

from dataclasses import dataclass, field
from typing import Iterable, List, Sequence

from tidewatch.alarms.events import AlarmEvent
from tidewatch.errors import ValidationError
from tidewatch.model.series import Series
from tidewatch.processing.stats import summarize
from tidewatch.tides.extrema import find_extrema
from tidewatch.timeutil import format_timestamp


@dataclass
class Table:
    """A titled table of strings."""

    title: str
    columns: Sequence[str]
    rows: List[List[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Append a row; floats are shown with two decimals."""
        if len(cells) != len(self.columns):
            raise ValidationError("cells", f"expected {len(self.columns)}, got {len(cells)}")
        self.rows.append([f"{c:.2f}" if isinstance(c, float) else str(c) for c in cells])


@dataclass
class Report:
    """A title and some tables."""

    title: str
    tables: List[Table] = field(default_factory=list)


def build_report(series: Series, events: Iterable[AlarmEvent] = (),
                 min_range: float = 0.1) -> Report:
    """Build the standard report: key figures, turning points and alarms."""
    summary = summarize(series)
    figures = Table("Summary", ["figure", series.gauge.unit])
    for name in ("minimum", "mean", "p95", "maximum", "range"):
        figures.add(name, getattr(summary, name))
    report = Report(f"{series.gauge.label}, {summary.start} to {summary.end}", [figures])
    turning_points = Table("Turning points", ["kind", "time", series.gauge.unit])
    for extremum in find_extrema(series, min_range):
        time = format_timestamp(extremum.reading.time)
        turning_points.add(extremum.kind, time, extremum.reading.value)
    alarms = Table("Alarms", ["severity", "time", "message"])
    for event in events:
        alarms.add(event.severity.name, format_timestamp(event.time), event.message)
    report.tables.extend(table for table in (turning_points, alarms) if table.rows)
    return report
