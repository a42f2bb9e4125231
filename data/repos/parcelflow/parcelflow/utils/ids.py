"""Identifiers and tracking numbers."""
import re
import uuid

_CHECK_WEIGHTS = (8, 6, 4, 2, 3, 5, 9, 7, 1, 6)
TRACKING_DIGITS = len(_CHECK_WEIGHTS)


def new_id(prefix: str) -> str:
    """Return a short unique id such as ``shp_3f9a1c20be44``."""
    return "{}_{}".format(prefix, uuid.uuid4().hex[:12])


def check_digit(digits: str) -> int:
    """Weighted check digit; 10 becomes 0."""
    total = sum(int(digit) * weight for digit, weight in zip(digits, _CHECK_WEIGHTS))
    return total % 11 % 10


def new_tracking_number(prefix: str) -> str:
    digits = str(uuid.uuid4().int)[-TRACKING_DIGITS:]
    return "{}{}{}".format(prefix.upper(), digits, check_digit(digits))


def is_tracking_number(text: str) -> bool:
    """Check the shape (two letters, digits) and the check digit."""
    if not re.match(r"^[A-Z]{2}\d{%d}$" % (TRACKING_DIGITS + 1), text):
        return False
    return check_digit(text[2:-1]) == int(text[-1])
