"""Exception hierarchy shared by every part of quillpad."""

from typing import Optional


class QuillpadError(Exception):
    """Base class of all errors raised on purpose by quillpad."""
    exit_code = 1

    def __init__(self, message: str, *, hint: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def describe(self) -> str:
        """Return the message with its hint, ready to be shown to a user."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(QuillpadError):
    """A configuration value is missing, unknown or malformed."""
    exit_code = 2


class RegistryError(QuillpadError):
    """A name was not found in a registry, or was registered twice."""


class BuildError(QuillpadError):
    """The site builder cannot go on."""


class TemplateError(QuillpadError):
    """A template is malformed or refers to something unknown."""
    def __init__(self, message: str, *, line: int = 0, hint: Optional[str] = None) -> None:
        super().__init__(f"line {line}: {message}" if line else message, hint=hint)
        self.line = line
