"""Renderers of document trees."""

from quillpad.render.base import RENDERERS, JsonRenderer, Renderer, create_renderer
from quillpad.render.html import HtmlRenderer
from quillpad.render.latex import LatexRenderer
from quillpad.render.text import TextRenderer
