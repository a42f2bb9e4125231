"""The renderers that come with the package."""

from typing import List, Sequence

from tidewatch.reports.base import RENDERERS, Renderer
from tidewatch.reports.content import Report, Table


@RENDERERS.register("text")
class TextRenderer(Renderer):
    """Plain text with aligned columns."""

    def header(self, report: Report) -> List[str]:
        return [report.title, "=" * len(report.title), ""]

    def table(self, table: Table) -> List[str]:
        widths = [max(map(len, column)) for column in zip(table.columns, *table.rows)]
        lines = [table.title, "-" * len(table.title)]
        for row in [table.columns, *table.rows]:
            lines.append("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip())
        return lines + [""]


@RENDERERS.register("markdown")
class MarkdownRenderer(Renderer):
    """GitHub-flavoured Markdown."""

    def header(self, report: Report) -> List[str]:
        return [f"# {report.title}", ""]

    def table(self, table: Table) -> List[str]:
        lines = [f"## {table.title}", "", self._row(table.columns)]
        lines.append(self._row(["---"] * len(table.columns)))
        lines.extend(self._row(row) for row in table.rows)
        return lines + [""]

    @staticmethod
    def _row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
