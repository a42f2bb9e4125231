"""The site builder."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import List

from quillpad.config import Config
from quillpad.diagnostics import DiagnosticSink
from quillpad.errors import BuildError
from quillpad.plugins import HookManager
from quillpad.render import create_renderer
from quillpad.search import SearchIndex
from quillpad.site.pages import Page, PageCollection
from quillpad.templates import PAGE_TEMPLATE, TemplateEngine
from quillpad.transforms import TransformContext, default_pipeline
from quillpad.util import DiskCache, MemoryCache, fingerprint


def copy_assets(source: Path, target: Path) -> List[Path]:
    """Copy new and changed files below ``source``; return those copied."""
    copied: List[Path] = []
    for path in sorted(source.rglob("*")):
        destination = target / path.relative_to(source)
        if not path.is_file():
            continue
        if destination.exists() and destination.stat().st_mtime >= path.stat().st_mtime:
            continue
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, destination)
        copied.append(destination)
    return copied


@dataclass
class BuildReport:
    """What a build has done."""
    written: List[str] = field(default_factory=list)
    assets: int = 0
    cache_hits: int = 0
    sink: DiagnosticSink = field(default_factory=DiagnosticSink)


class SiteBuilder:
    """Builds the site described by a configuration below ``root``."""
    def __init__(self, root: Path, config: Config) -> None:
        self.root = root
        self.config = config
        self.output = root / config.output
        self.hooks = HookManager(config.plugins)
        self.cache = DiskCache(root / config.cache) if config.cache else MemoryCache()
        self.engine = TemplateEngine(site=config.title)

    def build(self) -> BuildReport:
        """Load, transform, render and index all pages."""
        report = BuildReport()
        pages = self.load_pages(report.sink)
        index = SearchIndex(self.config.scorer)
        context = TransformContext(report.sink, self.config.transforms, pages)
        pipeline = default_pipeline(self.config.transforms)
        for page in pages:
            pipeline.run(page.document, context)
            self.hooks.call("document_ready", page.document)
            index.add(page.url, f"{page.title}\n{page.document.text_content()}")
            self._write(page.url, self.render_page(page), report)
        self._write("search.json", json.dumps(index.to_dict()), report)
        for files in self.hooks.call("extra_files", [page.url for page in pages]):
            for name, text in files.items():
                self._write(name, text, report)
        report.assets = len(copy_assets(self.root / self.config.assets, self.output))
        report.cache_hits = self.cache.hits
        return report

    def load_pages(self, sink: DiagnosticSink) -> PageCollection:
        folder = self.root / self.config.source
        if not folder.is_dir():
            raise BuildError(f"no folder {folder}", hint="check the source option")
        pages = PageCollection()
        for path in sorted(folder.glob("*.quill")):
            page = Page.from_path(path, sink)
            if all(self.hooks.call("keep_page", page.document)):
                pages.add(page)
        return pages

    def render_page(self, page: Page) -> str:
        """Render a page; unchanged documents come from the cache."""
        renderer = create_renderer("html", self.config.render)
        key = fingerprint(page.document.to_dict(), self.config.render.to_dict())
        body = self.cache.get_or_compute(key, lambda: renderer.render(page.document))
        return self.engine.render(PAGE_TEMPLATE, title=page.title, body=body,
                                  meta=page.document.metadata)

    def _write(self, name: str, text: str, report: BuildReport) -> None:
        self.output.mkdir(parents=True, exist_ok=True)
        (self.output / name).write_text(text, encoding="utf-8")
        report.written.append(name)
