"""A small template engine."""

from quillpad.templates.engine import FILTERS, PAGE_TEMPLATE, Template, TemplateEngine
