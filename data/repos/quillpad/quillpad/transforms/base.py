"""Transform base class, context and pipeline."""

from dataclasses import dataclass, field
from typing import ClassVar, List, Optional, Sequence, Type

from quillpad.config import TransformOptions
from quillpad.diagnostics import DiagnosticSink
from quillpad.nodes import Document
from quillpad.util import Registry

TRANSFORMS: Registry[Type["Transform"]] = Registry("transform")


class PageResolver:
    """Finds the URL of a page; the site builder supplies a real one."""
    def resolve_page(self, name: str) -> Optional[str]:
        return None

    def page_names(self) -> List[str]:
        return []


@dataclass
class TransformContext:
    """What transforms may look at besides the document."""
    sink: DiagnosticSink = field(default_factory=DiagnosticSink)
    options: TransformOptions = field(default_factory=TransformOptions)
    resolver: Optional[PageResolver] = None


class Transform:
    """Base class of transforms; lower ``priority`` runs earlier."""
    priority: ClassVar[int] = 500

    def apply(self, document: Document, context: TransformContext) -> None:
        raise NotImplementedError


class TransformPipeline:
    """Runs transforms in order of priority."""
    def __init__(self, transforms: Sequence[Transform] = ()) -> None:
        self.transforms = sorted(transforms, key=lambda transform: transform.priority)

    def run(self, document: Document, context: TransformContext) -> Document:
        for transform in self.transforms:
            transform.apply(document, context)
        return document


def default_pipeline(options: TransformOptions) -> TransformPipeline:
    """Return all registered transforms but those disabled in ``options``."""
    disabled = {TRANSFORMS.get(name) for name in options.disabled}
    types = [TRANSFORMS.get(name) for name in TRANSFORMS.names()]
    return TransformPipeline([cls() for cls in types if cls not in disabled])
