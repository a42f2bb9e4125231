"""Transforms that change a document in place."""

from quillpad.transforms.base import (
    TRANSFORMS, PageResolver, Transform, TransformContext, TransformPipeline, default_pipeline,
)
from quillpad.transforms.footnotes import FootnoteTransform
from quillpad.transforms.links import LinkTransform
from quillpad.transforms.numbering import AnchorTransform, NumberingTransform
from quillpad.transforms.toc import TocTransform
