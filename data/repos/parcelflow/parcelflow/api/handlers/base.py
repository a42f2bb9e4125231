"""Base class of all handlers."""
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Optional, Type

from parcelflow.api.http import Request, Response
from parcelflow.api.validators import Validator
from parcelflow.models import Shipment
from parcelflow.api.serializers import parse_shipment

if TYPE_CHECKING:
    from parcelflow.app import Application


class Handler(ABC):
    """Validates the body, calls :meth:`handle` and wraps the result."""
    validator: Optional[Type[Validator]] = None
    success_status = 200

    def __init__(self, app: "Application") -> None:
        self.app = app

    def __call__(self, request: Request) -> Response:
        if self.validator is not None:
            self.validator().validate(request.body)
        return Response(self.success_status, self.handle(request))

    @abstractmethod
    def handle(self, request: Request) -> Any:
        """Return the response body."""

    def read_shipment(self, request: Request) -> Shipment:
        settings = self.app.settings
        return parse_shipment(request.body, settings.currency, settings.default_carrier)
