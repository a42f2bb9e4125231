"""Templates with ``{{ expression }}``, ``{% if %}`` and ``{% for %}``."""

import re
from typing import Any, Callable, Iterator, List, Mapping, Tuple

from quillpad.errors import RegistryError, TemplateError
from quillpad.util import MemoryCache, Registry, fingerprint
from quillpad.util.text import escape_html

_TOKEN = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})")
_FOR = re.compile(r"for (\w+) in (\S+)$")

PAGE_TEMPLATE = """<!DOCTYPE html>
<html lang="{{ meta.lang|default:en }}">
<head><meta charset="utf-8"><title>{{ title }}</title></head>
<body>
{{ body|safe }}
</body>
</html>
"""

FILTERS: Registry[Callable[..., Any]] = Registry("template filter")


class SafeText(str):
    """Text that must not be escaped again."""


@FILTERS.register("safe")
def safe_filter(value: Any) -> SafeText:
    return SafeText(value)


@FILTERS.register("default")
def default_filter(value: Any, fallback: str = "") -> Any:
    return fallback if value in (None, "") else value


def evaluate(expression: str, scope: Mapping[str, Any], line: int) -> Any:
    """Evaluate a dotted path and apply the filters that follow it."""
    path, *filters = expression.strip().split("|")
    value: Any = scope
    for name in path.strip().split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    for text in filters:
        name, colon, argument = text.strip().partition(":")
        try:
            value = FILTERS.create(name, value, *([argument] if colon else []))
        except RegistryError as error:
            raise TemplateError(error.message, line=line, hint=error.hint) from error
    return value


class Template:
    """A compiled template: nested lists of (tag, argument, body, line)."""
    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = iter(_TOKEN.split(text))
        self._line = 1
        self.body = self._parse("")

    def _parse(self, block: str) -> List[Tuple[str, str, Any, int]]:
        body: List[Tuple[str, str, Any, int]] = []
        opened = self._line
        for token in self._tokens:
            inner, line = token[2:-2].strip(), self._line
            self._line += token.count("\n")
            if token.startswith("{{"):
                body.append(("value", inner, None, line))
            elif not token.startswith("{%"):
                body.append(("text", token, None, line))
            elif inner == f"end{block}":
                return body
            elif inner.startswith("if ") or _FOR.match(inner):
                tag = inner.split()[0]
                body.append((tag, inner, self._parse(tag), line))
            else:
                raise TemplateError(f"unexpected tag {inner!r}", line=line)
        if block:
            raise TemplateError(f"{block} is never closed", line=opened)
        return body

    def render(self, scope: Mapping[str, Any]) -> str:
        """Fill in the template with the values of ``scope``."""
        return self._render(self.body, scope)

    def _render(self, body: List[Tuple[str, str, Any, int]], scope: Mapping[str, Any]) -> str:
        parts: List[str] = []
        for tag, argument, inner, line in body:
            if tag == "text":
                parts.append(argument)
            elif tag == "value":
                value = evaluate(argument, scope, line)
                text = "" if value is None else str(value)
                parts.append(text if isinstance(value, SafeText) else escape_html(text))
            elif tag == "if" and evaluate(argument[3:], scope, line):
                parts.append(self._render(inner, scope))
            elif tag == "for":
                name, path = _FOR.match(argument).groups()  # type: ignore[union-attr]
                for item in evaluate(path, scope, line) or ():
                    parts.append(self._render(inner, {**scope, name: item}))
        return "".join(parts)


class TemplateEngine:
    """Compiles templates once and renders them with shared globals."""
    def __init__(self, **globals_: Any) -> None:
        self.globals = globals_
        self.cache = MemoryCache(capacity=32)

    def render(self, text: str, **values: Any) -> str:
        template = self.cache.get_or_compute(fingerprint(text), lambda: Template(text))
        return template.render({**self.globals, **values})
