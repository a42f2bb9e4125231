"""High level functions that tie the parser, transforms and renderers together."""

from typing import Optional

from quillpad.config import RenderOptions, TransformOptions
from quillpad.diagnostics import DiagnosticSink, SourceText
from quillpad.nodes import Document
from quillpad.render import create_renderer
from quillpad.syntax import Parser
from quillpad.transforms import PageResolver, TransformContext, default_pipeline


def parse(text: str, name: str = "<string>",
          sink: Optional[DiagnosticSink] = None) -> Document:
    """Parse markup into a raw, untransformed document."""
    return Parser(sink).parse(SourceText(text, name))


def process(document: Document, options: Optional[TransformOptions] = None,
            sink: Optional[DiagnosticSink] = None,
            resolver: Optional[PageResolver] = None) -> Document:
    """Run the default transforms over ``document`` in place and return it."""
    options = options or TransformOptions()
    context = TransformContext(
        sink=sink if sink is not None else DiagnosticSink(),
        options=options,
        resolver=resolver,
    )
    default_pipeline(options).run(document, context)
    return document


def convert(text: str, to: str = "html", *,
            render_options: Optional[RenderOptions] = None,
            transform_options: Optional[TransformOptions] = None,
            sink: Optional[DiagnosticSink] = None) -> str:
    """Parse, transform and render ``text`` in one go."""
    document = process(parse(text, sink=sink), transform_options, sink)
    return create_renderer(to, render_options).render(document)
