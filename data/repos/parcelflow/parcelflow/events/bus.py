"""A synchronous publish/subscribe bus."""
import logging
from typing import Callable, Dict, List, Tuple, Type

from parcelflow.events.types import Event

logger = logging.getLogger(__name__)
Listener = Callable[[Event], None]


class EventBus:
    """Delivers events to listeners of the event's class and its base classes."""
    def __init__(self) -> None:
        self._listeners: Dict[Type[Event], List[Listener]] = {}
        self.errors: List[Tuple[Event, Exception]] = []

    def subscribe(self, event_type: Type[Event], listener: Listener) -> None:
        self._listeners.setdefault(event_type, []).append(listener)

    def publish(self, event: Event) -> int:
        """Call every matching listener; one failing listener does not stop the others."""
        delivered = 0
        for listener in self._matching(event):
            try:
                listener(event)
                delivered += 1
            except Exception as exc:
                logger.warning("Listener failed for %s: %s", event, exc)
                self.errors.append((event, exc))
        return delivered

    def _matching(self, event: Event) -> List[Listener]:
        matching: List[Listener] = []
        for cls in type(event).__mro__:
            matching.extend(self._listeners.get(cls, []))
        return matching
