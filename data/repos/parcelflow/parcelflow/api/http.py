"""Requests, responses and the router."""
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from parcelflow.exceptions import NotFoundError, ParcelflowError


@dataclass
class Request:
    method: str
    path: str
    body: Dict[str, Any] = field(default_factory=dict)
    query: Dict[str, str] = field(default_factory=dict)
    params: Dict[str, str] = field(default_factory=dict)


@dataclass
class Response:
    status: int
    body: Any = None


class Router:
    """Matches ``/shipments/{id}`` style patterns, first match wins."""
    def __init__(self) -> None:
        self._routes: List[Tuple[str, List[str], Callable[[Request], Response]]] = []

    def add(self, method: str, pattern: str, handler: Callable[[Request], Response]) -> None:
        self._routes.append((method, pattern.strip("/").split("/"), handler))

    def dispatch(self, request: Request) -> Response:
        """Find and call the handler; package errors become error responses."""
        try:
            for method, parts, handler in self._routes:
                params = self._match(parts, request.path)
                if method == request.method and params is not None:
                    request.params = params
                    return handler(request)
            raise NotFoundError("path", request.path)
        except ParcelflowError as error:
            return Response(error.http_status, {"error": error.to_dict()})

    @staticmethod
    def _match(parts: List[str], path: str) -> Optional[Dict[str, str]]:
        segments = path.strip("/").split("/")
        if len(segments) != len(parts):
            return None
        params = {}
        for part, segment in zip(parts, segments):
            if part.startswith("{"):
                params[part[1:-1]] = segment
            elif part != segment:
                return None
        return params
