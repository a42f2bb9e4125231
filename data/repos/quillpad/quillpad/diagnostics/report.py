"""Diagnostics, the sink that collects them and their presentation."""

import enum
from dataclasses import dataclass
from typing import List, Optional

from quillpad.diagnostics.source import SourceText, Span


class Severity(enum.IntEnum):
    """How bad a diagnostic is; higher is worse."""
    WARNING = 20
    ERROR = 30


@dataclass(frozen=True)
class Diagnostic:
    """One message about a source text."""
    code: str
    message: str
    severity: Severity = Severity.WARNING
    span: Optional[Span] = None
    hint: Optional[str] = None

    def __str__(self) -> str:
        where = self.span.location if self.span else "<unknown>"
        return f"{where}: {self.severity.name.lower()} {self.code}: {self.message}"


class DiagnosticSink:
    """Collects diagnostics."""
    def __init__(self) -> None:
        self.items: List[Diagnostic] = []

    def warning(self, code: str, message: str, span: Optional[Span] = None,
                hint: Optional[str] = None) -> None:
        self.items.append(Diagnostic(code, message, Severity.WARNING, span, hint))

    def error(self, code: str, message: str, span: Optional[Span] = None,
              hint: Optional[str] = None) -> None:
        self.items.append(Diagnostic(code, message, Severity.ERROR, span, hint))

    def count(self, at_least: Severity = Severity.WARNING) -> int:
        """Return how many diagnostics are at least this severe."""
        return sum(1 for item in self.items if item.severity >= at_least)

    def codes(self) -> List[str]:
        return [item.code for item in self.items]

    def sorted(self) -> List[Diagnostic]:
        """Return the diagnostics by source and position, those without a span last."""
        return sorted(self.items, key=lambda item: (
            (0, item.span.name, item.span.start) if item.span else (1, "")))


def format_diagnostics(sink: DiagnosticSink, source: Optional[SourceText] = None) -> str:
    """Return one line for each diagnostic, with an excerpt if ``source`` is given."""
    lines: List[str] = []
    for item in sink.sorted():
        lines.append(str(item))
        if source is not None and item.span is not None:
            start, end = item.span.start, item.span.end
            text = source.line(start.line)
            stop = end.column if end.line == start.line else len(text) + 1
            carets = "^" * max(1, stop - start.column)
            lines.append(f"    {text}\n    {' ' * (start.column - 1)}{carets}")
        if item.hint:
            lines.append(f"    hint: {item.hint}")
    return "\n".join(lines)
