"""Text clean-up and pattern checks shared by models and validators."""
import re

_POSTCODE_PATTERNS = {
    "DE": re.compile(r"^\d{5}$"),
    "FR": re.compile(r"^\d{5}$"),
    "NL": re.compile(r"^\d{4}[A-Z]{2}$"),
    "GB": re.compile(r"^[A-Z]{1,2}\d[A-Z\d]?\d[A-Z]{2}$"),
    "US": re.compile(r"^\d{5}(-\d{4})?$"),
}
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
_PHONE = re.compile(r"^\+\d{7,15}$")


def clean(text: str) -> str:
    """Strip and collapse inner white space."""
    return " ".join(text.split())


def normalize_postcode(postcode: str) -> str:
    return postcode.replace(" ", "").upper()


def is_postcode(country: str, postcode: str) -> bool:
    """Countries without a known pattern accept any non-empty postcode."""
    pattern = _POSTCODE_PATTERNS.get(country.upper())
    normalized = normalize_postcode(postcode)
    return bool(normalized if pattern is None else pattern.match(normalized))


def is_email(text: str) -> bool:
    return _EMAIL.match(text) is not None


def is_phone(text: str) -> bool:
    return _PHONE.match(text.replace(" ", "")) is not None
