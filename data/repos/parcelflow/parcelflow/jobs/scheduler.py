"""Runs jobs when their interval is over."""
import logging
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Dict, List

from parcelflow.utils.timeutil import Clock

logger = logging.getLogger(__name__)


class Job(ABC):
    """Something to do every ``interval``."""
    name = ""
    interval = timedelta(hours=1)

    @abstractmethod
    def run(self) -> int:
        """Do the work and return how many items were handled."""


class Scheduler:
    """Call :meth:`run_pending` regularly; a failing job is retried next time."""
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.jobs: List[Job] = []
        self.next_run: Dict[str, datetime] = {}

    def add(self, job: Job) -> None:
        self.jobs.append(job)
        self.next_run[job.name] = self.clock.now() + job.interval

    def run_pending(self) -> Dict[str, int]:
        results = {}
        now = self.clock.now()
        for job in self.jobs:
            if self.next_run[job.name] > now:
                continue
            try:
                results[job.name] = job.run()
            except Exception:
                logger.exception("Job %s failed", job.name)
                continue
            self.next_run[job.name] = now + job.interval
        return results
