"""Visitors over node trees."""

from typing import Any, Iterable, List, Union

from quillpad.nodes.base import Node


class NodeVisitor:
    """Calls ``visit_<kind>`` for a node, or else :meth:`generic_visit`."""
    def visit(self, node: Node) -> Any:
        method = getattr(self, f"visit_{node.kind}", self.generic_visit)
        return method(node)

    def generic_visit(self, node: Node) -> Any:
        for child in node.children:
            self.visit(child)


class NodeTransformer(NodeVisitor):
    """A visitor whose methods return replacements.

    A method may return the node itself, another node, a list of nodes, or
    None to remove the node.
    """
    def generic_visit(self, node: Node) -> Any:
        children: List[Node] = []
        for child in node.children:
            children.extend(_as_nodes(self.visit(child)))
        node.children = children
        return node


def _as_nodes(result: Union[None, Node, Iterable[Node]]) -> List[Node]:
    if result is None:
        return []
    if isinstance(result, Node):
        return [result]
    return list(result)
