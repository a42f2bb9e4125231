"""Report contents and renderers."""

from tidewatch.reports.base import RENDERERS, Renderer
from tidewatch.reports.content import Report, Table, build_report
from tidewatch.reports.renderers import MarkdownRenderer, TextRenderer

__all__ = ["RENDERERS", "MarkdownRenderer", "Renderer", "Report", "Table", "TextRenderer",
           "build_report"]
