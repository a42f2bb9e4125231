"""Small argument checks shared by the constructors of the package."""

import math
import re
from typing import Any, Iterable, Mapping, Optional

from tidewatch.errors import ValidationError

_CODE_PATTERN = re.compile(r"^[A-Z][A-Z0-9_-]{1,15}$")


def require_finite(field: str, value: Any) -> float:
    """Return ``value`` as a float, refusing NaN, infinities and non-numbers."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValidationError(field, f"not a number: {value!r}") from None
    if not math.isfinite(number):
        raise ValidationError(field, f"not a finite number: {value!r}")
    return number


def require_positive(field: str, value: Any) -> float:
    """Return ``value`` as a float greater than zero."""
    number = require_finite(field, value)
    if number <= 0:
        raise ValidationError(field, f"must be positive, got {number:g}")
    return number


def require_in_range(field: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float within the closed range ``[low, high]``."""
    number = require_finite(field, value)
    if not low <= number <= high:
        raise ValidationError(field, f"must be in [{low:g}, {high:g}], got {number:g}")
    return number


def require_window(field: str, value: Any, minimum: int = 1, odd: bool = False) -> int:
    """Return ``value`` as a window length counted in samples."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValidationError(field, f"must be an integer, got {value!r}")
    if value < minimum:
        raise ValidationError(field, f"must be at least {minimum}, got {value}")
    if odd and value % 2 == 0:
        raise ValidationError(field, f"must be odd, got {value}")
    return value


def require_choice(field: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    allowed = sorted(choices)
    if value not in allowed:
        raise ValidationError(field, f"{value!r} is not one of {', '.join(allowed)}")
    return value


def require_code(field: str, value: str) -> str:
    """Return ``value`` if it looks like a gauge code such as ``KIEL-01``."""
    if not isinstance(value, str) or not _CODE_PATTERN.match(value):
        raise ValidationError(field, f"not a gauge code: {value!r}")
    return value


def require_keys(data: Mapping[str, Any], required: Iterable[str],
                 optional: Optional[Iterable[str]] = None) -> None:
    """Check that ``data`` has all required keys and, if given, no unexpected ones."""
    required = set(required)
    missing = sorted(required - set(data))
    if missing:
        raise ValidationError(missing[0], "missing key")
    if optional is not None:
        unknown = sorted(set(data) - required - set(optional))
        if unknown:
            raise ValidationError(unknown[0], "unknown key")
