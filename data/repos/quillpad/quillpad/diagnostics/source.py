"""Source texts, positions and spans."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Iterator, List, Tuple


@dataclass(frozen=True, order=True)
class Position:
    """A one-based line and column."""
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True)
class Span:
    """A range of a named source; ``end`` is exclusive."""
    start: Position
    end: Position
    name: str = "<string>"

    @property
    def location(self) -> str:
        return f"{self.name}:{self.start}"


class SourceText:
    """A text with normalized line endings that can map offsets to positions."""
    def __init__(self, text: str, name: str = "<string>") -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.name = name
        self._starts: List[int] = [0]
        for offset, char in enumerate(self.text):
            if char == "\n":
                self._starts.append(offset + 1)

    def position_at(self, offset: int) -> Position:
        """Return the position of the character at ``offset``."""
        offset = max(0, min(offset, len(self.text)))
        index = bisect_right(self._starts, offset) - 1
        return Position(index + 1, offset - self._starts[index] + 1)

    def span(self, start: int, end: int) -> Span:
        return Span(self.position_at(start), self.position_at(end), self.name)

    def line(self, number: int) -> str:
        """Return line ``number`` (one-based) without its line ending."""
        if not 1 <= number <= len(self._starts):
            return ""
        return self.text[self._starts[number - 1]:].split("\n", 1)[0]

    def lines(self) -> Iterator[Tuple[int, str]]:
        """Yield the offset and text of each line."""
        for number, start in enumerate(self._starts, start=1):
            if start < len(self.text):
                yield start, self.line(number)
