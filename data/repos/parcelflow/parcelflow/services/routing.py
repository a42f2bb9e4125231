"""Shortest routes through the hub network."""
import heapq
from typing import Dict, Iterable, List

from parcelflow.exceptions import NoRouteError
from parcelflow.models import Address, Leg, Route, Shipment


class RoutingService:
    """Dijkstra over legs, weighted by hours. Legs work in both directions."""
    def __init__(self, legs: Iterable[Leg]) -> None:
        self._legs: Dict[str, List[Leg]] = {}
        for leg in legs:
            self.add_leg(leg)

    def add_leg(self, leg: Leg) -> None:
        self._legs.setdefault(leg.origin, []).append(leg)
        self._legs.setdefault(leg.destination, []).append(leg.reversed())

    def hub_for(self, address: Address) -> str:
        """Prefer the hub of the postcode area, else the country's main hub."""
        return address.area if address.area in self._legs else address.country

    def plan(self, shipment: Shipment) -> Route:
        origin = self.hub_for(shipment.sender)
        destination = self.hub_for(shipment.recipient)
        return Route(shipment.id, self.shortest(origin, destination))

    def shortest(self, origin: str, destination: str) -> List[Leg]:
        """Return the legs with the least total hours."""
        queue = [(0.0, 0, origin, [])]
        visited = set()
        pushed = 0
        while queue:
            hours, _, hub, path = heapq.heappop(queue)
            if hub == destination:
                return path
            if hub in visited:
                continue
            visited.add(hub)
            for leg in self._legs.get(hub, []):
                pushed += 1  # tie-breaker, legs cannot be compared
                entry = (hours + leg.hours, pushed, leg.destination, path + [leg])
                heapq.heappush(queue, entry)
        raise NoRouteError("No route from {} to {}".format(origin, destination))
