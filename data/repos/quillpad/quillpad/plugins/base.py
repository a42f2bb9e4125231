"""Plugin base class, the manager that calls its hooks, and built-in plugins."""

from typing import Any, Dict, Iterable, List, Type

from quillpad.nodes import Document
from quillpad.util import Registry

PLUGINS: Registry[Type["Plugin"]] = Registry("plugin")


class Plugin:
    """Base class of plugins; every hook does nothing by default."""
    def keep_page(self, document: Document) -> bool:
        """Return False to leave a page out of the site."""
        return True

    def document_ready(self, document: Document) -> None:
        """Called for each page after the transforms."""

    def extra_files(self, urls: List[str]) -> Dict[str, str]:
        """Return the names and contents of files to add to the output."""
        return {}


class HookManager:
    """Creates the plugins named in the configuration and calls them in order."""
    def __init__(self, names: Iterable[str] = ()) -> None:
        self.plugins: List[Plugin] = [PLUGINS.create(name) for name in names]

    def call(self, hook: str, *args: Any) -> List[Any]:
        """Call ``hook`` of every plugin and return the results."""
        return [getattr(plugin, hook)(*args) for plugin in self.plugins]


@PLUGINS.register("drafts")
class DraftPlugin(Plugin):
    """Leaves out pages with ``:draft: yes`` in their header."""
    def keep_page(self, document: Document) -> bool:
        return document.metadata.get("draft", "no") != "yes"


@PLUGINS.register("sitemap")
class SitemapPlugin(Plugin):
    """Writes a list of all pages."""
    def extra_files(self, urls: List[str]) -> Dict[str, str]:
        return {"sitemap.txt": "".join(f"{url}\n" for url in sorted(urls))}
