"""Base class and registry of renderers."""

from abc import ABC, abstractmethod
from typing import List

from tidewatch.registry import Registry
from tidewatch.reports.content import Report, Table


class Renderer(ABC):
    """Turns a report into text, table by table."""

    kind = "abstract"

    def render(self, report: Report) -> str:
        """Return the rendered report, ending in a newline."""
        lines = self.header(report)
        for table in report.tables:
            lines.extend(self.table(table))
        return "\n".join(lines).rstrip("\n") + "\n"

    @abstractmethod
    def header(self, report: Report) -> List[str]:
        """Return the lines before the first table."""

    @abstractmethod
    def table(self, table: Table) -> List[str]:
        """Return the lines of one table."""


RENDERERS: Registry[Renderer] = Registry("renderer")
