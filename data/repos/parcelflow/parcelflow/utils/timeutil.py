"""Time helpers. All datetimes in the package are aware and in UTC."""
from datetime import datetime, timedelta, timezone


class Clock:
    """Source of the current time; services take one so that tests can freeze it."""
    def now(self) -> datetime:
        return datetime.now(timezone.utc).replace(microsecond=0)


class FixedClock(Clock):
    """A clock that only moves when told to."""
    def __init__(self) -> None:
        self._now = datetime(2024, 3, 4, 9, 0, tzinfo=timezone.utc)

    def now(self) -> datetime:
        return self._now

    def advance(self, **kwargs: float) -> None:
        """Move forward by ``timedelta(**kwargs)``."""
        self._now += timedelta(**kwargs)


def format_iso(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat()


def parse_iso(text: str) -> datetime:
    """Parse the format written by :func:`format_iso`."""
    return datetime.fromisoformat(text)
