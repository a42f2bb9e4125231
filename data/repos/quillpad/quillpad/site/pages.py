"""Pages and the collection that resolves links between them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from quillpad.diagnostics import DiagnosticSink, SourceText
from quillpad.errors import BuildError
from quillpad.nodes import Document
from quillpad.syntax import Parser
from quillpad.transforms import PageResolver
from quillpad.util.text import slugify


@dataclass
class Page:
    """A parsed source file and the place of its output."""
    name: str
    document: Document

    @property
    def title(self) -> str:
        return self.document.title or self.name

    @property
    def url(self) -> str:
        return f"{slugify(self.name)}.html"

    @classmethod
    def from_path(cls, path: Path, sink: DiagnosticSink) -> "Page":
        source = SourceText(path.read_text(encoding="utf-8"), path.name)
        return cls(path.stem, Parser(sink).parse(source))


class PageCollection(PageResolver):
    """All pages of a site, found by name or by title."""
    def __init__(self) -> None:
        self._pages: Dict[str, Page] = {}

    def add(self, page: Page) -> None:
        if page.url in self._pages:
            raise BuildError(f"two pages would be written to {page.url}")
        self._pages[page.url] = page

    def resolve_page(self, name: str) -> Optional[str]:
        slug = slugify(name)
        for page in self:
            if slug in (slugify(page.name), slugify(page.title)):
                return page.url
        return None

    def page_names(self) -> List[str]:
        return [page.name for page in self]

    def __iter__(self) -> Iterator[Page]:
        return iter(self._pages.values())
