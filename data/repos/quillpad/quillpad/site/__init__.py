"""Static site builder."""

from quillpad.site.builder import BuildReport, SiteBuilder, copy_assets
from quillpad.site.pages import Page, PageCollection
