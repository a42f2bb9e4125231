"""Source positions and the messages that point at them."""

from quillpad.diagnostics.report import Diagnostic, DiagnosticSink, Severity, format_diagnostics
from quillpad.diagnostics.source import Position, SourceText, Span
