"""Postal addresses and pricing zones."""
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Dict, List, Optional

from parcelflow.exceptions import ValidationError
from parcelflow.models.base import require_keys
from parcelflow.utils.text import clean, is_postcode, normalize_postcode

EU_COUNTRIES = frozenset({"DE", "FR", "NL", "AT", "BE", "ES", "IT", "PL", "PT", "DK", "SE"})


@dataclass(frozen=True)
class Address:
    """A value object: two addresses with the same fields are the same address."""
    name: str
    street: str
    city: str
    postcode: str
    country: str
    email: Optional[str] = field(default=None, compare=False)
    phone: Optional[str] = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Frozen dataclass: normalise through object.__setattr__.
        for name in ("name", "street", "city"):
            object.__setattr__(self, name, clean(getattr(self, name)))
        object.__setattr__(self, "country", self.country.strip().upper())
        object.__setattr__(self, "postcode", normalize_postcode(self.postcode))
        if not is_postcode(self.country, self.postcode):
            raise ValidationError.single("postcode", "not valid for " + self.country)

    @property
    def area(self) -> str:
        """Country and first two postcode characters, used to pick a hub."""
        return "{}-{}".format(self.country, self.postcode[:2])

    def lines(self) -> List[str]:
        town = "{} {}".format(self.postcode, self.city)
        return [self.name, self.street, town, self.country]

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Address":
        require_keys(data, ("name", "street", "city", "postcode", "country"))
        known = {item.name for item in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})


def zone_between(origin: Address, destination: Address) -> str:
    """Return the pricing zone: ``domestic``, ``eu`` or ``world``."""
    if origin.country == destination.country:
        return "domestic"
    if origin.country in EU_COUNTRIES and destination.country in EU_COUNTRIES:
        return "eu"
    return "world"
