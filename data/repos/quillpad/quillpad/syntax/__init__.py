"""Lexer and parser of the quill markup language."""

from quillpad.syntax.lexer import Lexer, Token, TokenKind
from quillpad.syntax.parser import Parser
