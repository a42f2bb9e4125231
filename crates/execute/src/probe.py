"""Notes which test comes by which hole: a line `number<TAB>test` for each pair, beside this file."""
import os
import sys
import unittest

_LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reached")
_seen = set()


def _test_around():
    """The unittest case whose method is running now, for the one during which this module is loaded."""
    frame = sys._getframe(1)
    while frame is not None:
        case = frame.f_locals.get("self")
        if isinstance(case, unittest.TestCase) and hasattr(case, "_testMethodName"):
            return case.id()
        frame = frame.f_back
    return ""


_current = _test_around()
_run = unittest.TestCase.run


def _watched(self, *args, **kwargs):
    global _current
    before, _current = _current, self.id()
    try:
        return _run(self, *args, **kwargs)
    finally:
        _current = before


unittest.TestCase.run = _watched


def reach(hole):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0] or _current
    if (hole, test) not in _seen:
        _seen.add((hole, test))
        with open(_LOG, "a", encoding="utf-8", errors="replace") as log:
            log.write("%d\t%s\n" % (hole, test))
