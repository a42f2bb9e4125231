"""Chains of filters."""

from typing import Any, Dict, Iterable, List, Mapping

from tidewatch.filters.base import FILTERS, SeriesFilter
from tidewatch.model.series import Series


@FILTERS.register("pipeline")
class Pipeline(SeriesFilter):
    """Applies several filters one after the other."""

    def __init__(self, steps: Iterable[Any] = ()) -> None:
        self.steps: List[SeriesFilter] = [self._build(step) for step in steps]

    @staticmethod
    def _build(step: Any) -> SeriesFilter:
        if isinstance(step, SeriesFilter):
            return step
        if isinstance(step, Mapping):
            return FILTERS.from_dict(step)
        return FILTERS.create(step)

    def apply(self, series: Series) -> Series:
        for step in self.steps:
            series = step.apply(series)
        return series

    def params(self) -> Dict[str, Any]:
        return {"steps": [step.to_dict() for step in self.steps]}

    def __len__(self) -> int:
        return len(self.steps)
