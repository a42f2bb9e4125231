"""Plugins of the site builder."""

from quillpad.plugins.base import PLUGINS, DraftPlugin, HookManager, Plugin, SitemapPlugin
