"""Exception hierarchy. Every error knows the status code the API should answer with."""
from typing import Any, Dict, List, Optional


class ParcelflowError(Exception):
    """Base class for all errors raised on purpose by this package."""
    code = "internal_error"
    http_status = 500

    def __init__(self, message: str, details: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}

    def to_dict(self) -> Dict[str, Any]:
        return {"code": self.code, "message": self.message, "details": self.details}


class ConfigurationError(ParcelflowError):
    """Settings are missing or contradict each other."""
    code = "configuration_error"


class ValidationError(ParcelflowError):
    """Input data broke one or more rules; ``errors`` maps field paths to messages."""
    code = "validation_error"
    http_status = 422

    def __init__(self, errors: Dict[str, List[str]]) -> None:
        summary = ", ".join(sorted(errors)) or "input"
        super().__init__("Invalid value for: " + summary, {"errors": errors})
        self.errors = errors

    @classmethod
    def single(cls, field: str, message: str) -> "ValidationError":
        return cls({field: [message]})


class NotFoundError(ParcelflowError):
    """An entity with the given key does not exist."""
    code = "not_found"
    http_status = 404

    def __init__(self, entity: str, key: str) -> None:
        super().__init__("{} '{}' not found".format(entity, key), {"entity": entity, "key": key})


class ConflictError(ParcelflowError):
    """An entity with the same key is already stored."""
    code = "conflict"
    http_status = 409


class InvalidTransitionError(ConflictError):
    """A shipment may not move from its current status to the requested one."""
    code = "invalid_transition"

    def __init__(self, current: str, requested: str) -> None:
        super().__init__("Cannot move from '{}' to '{}'".format(current, requested))


class PricingError(ParcelflowError):
    """No price can be worked out for a shipment."""
    code = "pricing_error"
    http_status = 422


class CurrencyMismatchError(PricingError):
    """Two amounts in different currencies were combined."""
    code = "currency_mismatch"


class NoRouteError(ParcelflowError):
    """The hub network has no path between two hubs."""
    code = "no_route"
    http_status = 422


class DeliveryChannelError(ParcelflowError):
    """A notification could not be handed to its channel."""
    code = "channel_error"
    http_status = 502
