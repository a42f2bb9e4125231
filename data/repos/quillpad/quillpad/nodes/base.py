"""Base classes of all nodes and the registry that revives them from dicts."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Type, TypeVar

from quillpad.diagnostics.source import Span
from quillpad.util.registry import Registry

N = TypeVar("N", bound="Node")

NODE_TYPES: Registry[Type["Node"]] = Registry("node type")


def register_node(cls: Type[N]) -> Type[N]:
    """Class decorator: make ``cls`` a dataclass known under its ``kind``."""
    cls = dataclass(eq=False)(cls)
    NODE_TYPES.add(cls.kind, cls)
    return cls


def node_from_dict(data: Mapping[str, Any]) -> "Node":
    """Rebuild a node and its children from :meth:`Node.to_dict` output."""
    return NODE_TYPES.get(data["kind"]).from_dict(data)


@dataclass(eq=False)
class Node:
    """A tree node with ordered children and an optional source span."""
    kind: ClassVar[str] = "node"
    separator: ClassVar[str] = ""  # between the texts of the children

    children: List["Node"] = field(default_factory=list)
    span: Optional[Span] = None

    @classmethod
    def field_names(cls) -> List[str]:
        """Return the names of the attributes that subclasses have added."""
        names = [item.name for item in dataclasses.fields(cls)]
        return [name for name in names if name not in ("children", "span")]

    def append(self, child: "Node") -> None:
        self.children.append(child)

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all its descendants in document order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find_all(self, *types: Type[N]) -> List[N]:
        return [node for node in self.walk() if isinstance(node, types)]

    def text_content(self) -> str:
        """Return the text of the node without any markup."""
        return self.separator.join(child.text_content() for child in self.children)

    def to_dict(self) -> Dict[str, Any]:
        data: Dict[str, Any] = {"kind": self.kind}
        for name in self.field_names():
            value = getattr(self, name)
            if value is not None:
                data[name] = value
        if self.children:
            data["children"] = [child.to_dict() for child in self.children]
        return data

    @classmethod
    def from_dict(cls: Type[N], data: Mapping[str, Any]) -> N:
        values = {name: data[name] for name in cls.field_names() if name in data}
        return cls([node_from_dict(child) for child in data.get("children", ())], **values)
