"""Reports a run of pytest or unittest to the guard that started it, on a socket: `sitecustomize` of the command's interpreters.

A session begins before any code of the repository is imported: the guard answers with a secret, and only a message with it
counts. It ends with the counts of the test library's own results, and with the tests and parts of the library that were replaced.
"""
import os
import sys

NAME = "_repoformer_report"
VARIABLE = "_REPOFORMER_REPORT"
# Replaced without harm: a test case has its own.
OWN = ("setUp", "tearDown", "setUpClass", "tearDownClass", "asyncSetUp", "asyncTearDown", "shortDescription", "id",
       "longMessage", "maxDiff")
# Modules by which the libraries run and compare.
HELPERS = ("builtins", "contextlib", "functools", "operator", "re", "traceback", "types")


class _Same(object):
    """A value that is equal to itself alone."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value is other.value

    def __ne__(self, other):
        return self.value is not other.value


def _function(value):
    """Function behind a method of any kind, and what it runs; None for other values. Of the functions here, also what they share."""
    value = getattr(value, "__func__", getattr(value, "fget", value))
    code = getattr(value, "__code__", None)
    if code is None:
        return None
    is_own = getattr(code, "co_filename", None) == _quietly.__code__.co_filename
    cells = [_Same(cell.cell_contents) for cell in value.__closure__ or ()] if is_own else None
    return value, code, value.__defaults__, value.__kwdefaults__, cells


def _parts(names):
    """Callable parts of modules: (name, namespace, key, value, function)."""
    found = []
    for module in [sys.modules[name] for name in sorted(sys.modules) if name.split(".")[0] in names]:
        for key, value in list(vars(module).items()):
            if callable(value):
                found.append((module.__name__ + "." + key, vars(module), key, value, _function(value)))
            # Types that C code made (bit 9 of the flags unset) cannot be changed.
            if isinstance(value, type) and value.__module__ == module.__name__ and value.__flags__ & (1 << 9):
                for part, inner in list(vars(value).items()):
                    if _function(inner) or (callable(inner) and part != "__class__"):
                        name = "%s.%s.%s" % (module.__name__, key, part)
                        found.append((name, vars(value), part, inner, _function(inner)))
    return found


class _Session(object):
    """A run of a test library, from before the first import to its end."""

    def __init__(self, handle, names):
        write, process, getpid = os.write, os.getpid(), os.getpid
        write(handle, b"hello")
        secret = os.read(handle, 64)
        if not secret:
            raise EnvironmentError("the guard is gone")
        parts, changed, counts = _parts(names), set(), dict.fromkeys(("passed", "failed", "errors", "skipped"), 0)
        tracers = (sys.gettrace, sys.getprofile)
        traced = [tracer() for tracer in tracers]
        case = getattr(sys.modules.get("unittest.case"), "TestCase", None)
        kept = set(vars(case or object)) - set(OWN)
        kept = set(name for name in kept if not name.startswith("__") or name == "__call__")
        tests, noted = [], set()

        def add_test(owner, key):
            # A function of a module or class, and the functions that decorators wrapped.
            for place in getattr(owner, "__mro__", (owner,)):
                if key in vars(place) and (place, key) not in noted:
                    noted.add((place, key))
                    name, value = "%s.%s" % (place.__name__, key), vars(place)[key]
                    tests.append((name, vars(place), key, value, _function(value)))
                    value = getattr(value, "__wrapped__", None)
                    while value is not None:
                        tests.append((name, {key: value}, key, value, _function(value)))
                        value = getattr(value, "__wrapped__", None)

        def check(of=parts):
            for name, space, key, value, function in of:
                if space.get(key) is not value or (function and _function(value) != function):
                    changed.add(name)
            for tracer, before in zip(tracers, traced):
                if tracer() is not before:
                    changed.add("sys.%s: %s" % (tracer.__name__, type(tracer()).__name__))

        def check_case(test):
            # What stands between a test and the library's own class.
            if case is None or not isinstance(test, case):
                return
            owner = type(test)
            spaces = [("", vars(test))]
            for parent in owner.__mro__:
                if parent is case:
                    break
                if parent.__module__.split(".")[0] not in names:
                    spaces.append((parent.__name__, vars(parent)))
            for name, space in spaces:
                for key in kept.intersection(space):
                    if callable(getattr(space[key], "__func__", space[key])):
                        changed.add("%s.%s" % (name or owner.__name__ + "()", key))
            for kind in set(getattr(test, "_type_equality_funcs", ())) - set(case()._type_equality_funcs):
                changed.add("%s().addTypeEqualityFunc: %s" % (owner.__name__, kind.__name__))

        def check_object(thing):
            # Methods of one object alone.
            for key, value in list(vars(thing).items()):
                if callable(value) and callable(getattr(type(thing), key, None)):
                    changed.add("%s().%s" % (type(thing).__name__, key))

        def count(what):
            counts[what] += 1

        def end():
            if getpid() != process:
                return
            check()
            check(tests)
            names = b",".join(name.encode("utf-8", "replace").replace(b",", b";") for name in sorted(changed))
            for start in range(0, len(names), 16384):
                write(handle, secret + b" changed " + names[start:start + 16384])
            text = " ended %d %d %d %d" % tuple(counts[key] for key in ("passed", "failed", "errors", "skipped"))
            write(handle, secret + text.encode("ascii"))

        self.watch = lambda names: parts.extend(_parts(names))
        self.check, self.check_case, self.check_object = check, check_case, check_object
        self.add_test = add_test
        self.count, self.end, self.changed = count, end, changed


def _quietly(function):
    """Makes a function whose failure leaves the session without its end."""
    def call(*arguments):
        try:
            return function(*arguments)
        except Exception:
            return None
    return call


def _watch_unittest(handle):
    import unittest
    from unittest import case, result, runner
    program = unittest.TestProgram
    main, state, session = [], ["loading"], []
    run, run_tests = runner.TextTestRunner.run, program.runTests

    def add_tests(suite):
        suites = [suite]
        while suites:
            found = suites.pop()
            if hasattr(found, "__iter__"):
                suites.extend(found)
            else:
                session[0].add_test(type(found), getattr(found, "_testMethodName", None))

    def watched_run_tests(self):
        # What is run while the tests are still loaded is not the tests.
        if state[0] == "loading":
            state[0] = "begun"
        return run_tests(self)

    def watched_run(self, test):
        if state[0] != "begun":
            return run(self, test)
        state[0] = "running"
        _quietly(add_tests)(test)
        make = self._makeResult

        def make_result():
            main[:] = [make()]
            return main[0]

        self._makeResult = make_result
        found = run(self, test)
        del self._makeResult
        _quietly(session[0].end)()
        return found

    def counted(name, of):
        original = getattr(result.TestResult, name)

        def add(self, test, *rest):
            if main and self is main[0]:
                what = of(*rest)
                if what:
                    session[0].count(what)
            return original(self, test, *rest)

        add.__name__ = name
        setattr(result.TestResult, name, add)

    counted("addSuccess", lambda: "passed")
    counted("addFailure", lambda error: "failed")
    counted("addError", lambda error: "errors")
    counted("addSkip", lambda reason: "skipped")
    counted("addExpectedFailure", lambda error: "skipped")
    counted("addUnexpectedSuccess", lambda: "failed")
    counted("addSubTest", lambda test, error: "failed" if error is not None else None)
    stop = result.TestResult.stopTest

    def stop_test(self, test):
        if main and self is main[0]:
            _quietly(session[0].check)()
            _quietly(session[0].check_case)(test)
            _quietly(session[0].check_object)(test)
            _quietly(session[0].check_object)(self)
        return stop(self, test)

    success = result.TestResult.addSuccess

    def add_success(self, test):
        # A failure that counts as expected, in a test that expects none.
        if getattr(getattr(test, "_outcome", None), "expectedFailure", None):
            session[0].changed.add("_Outcome().expecting_failure")
        return success(self, test)

    result.TestResult.addSuccess = add_success

    result.TestResult.stopTest = stop_test
    runner.TextTestRunner.run = watched_run
    program.runTests = watched_run_tests
    unittest.TextTestRunner = runner.TextTestRunner
    _watch_stops(case, session)
    session.append(_Session(handle, ("unittest",) + HELPERS))


def _watch_stops(case, session):
    """Notes the exception that ends a test without any result: the library raises it where a subtest failed."""
    class _ShouldStop(case._ShouldStop):
        def __init__(self, *arguments):
            if session:
                session[0].changed.add("unittest.case._ShouldStop")

    case._ShouldStop = _ShouldStop


def _is_installed(name):
    """Whether a package is found without the repository's folder."""
    try:
        from importlib.util import find_spec
    except ImportError:
        return True
    return find_spec(name) is not None


def _pytest_plugin(handle, restore):
    """A module that pytest takes for a plugin, under a name that `-p` finds."""
    from unittest import case
    module = type(sys)(NAME, "PYTEST_DONT_REWRITE")
    held = []
    _watch_stops(case, held)

    def begin():
        held.append(_Session(handle, ("unittest",) + HELPERS))

    # Before the repository's folder is on the path: from there, pytest imports some of its own dependencies, and plugins that its
    # settings name, before it asks any plugin. Without pytest, no session could end.
    if _is_installed("_pytest"):
        begin()

    def plugins(config):
        for name, plugin in config.pluginmanager.list_name_plugin():
            kind = getattr(plugin, "__name__", None) or type(plugin).__name__
            if plugin is not None and plugin is not module:
                yield "plugin " + os.path.basename(kind)

    def pytest_addoption(parser):
        # The first hook of a plugin, called before tests and `conftest.py` are imported.
        restore()
        if not held:
            _quietly(begin)()
        if held:
            _quietly(held[0].watch)(("_pytest", "pytest", "pluggy", "unittest"))

    def note(report, when):
        if report.failed:
            held[0].count("failed" if when == "call" else "errors")
        elif report.skipped:
            held[0].count("skipped")
        elif when == "call" and report.passed:
            held[0].count("passed")

    def pytest_runtest_logreport(report):
        if held:
            _quietly(note)(report, report.when)

    def pytest_collectreport(report):
        if held and report.failed:
            held[0].count("errors")

    def pytest_runtest_makereport(item, call):
        if held and call.when == "call":
            _quietly(held[0].check)()
            _quietly(lambda: held[0].check_case(getattr(item, "instance", None) or getattr(item, "_testcase", None)))()
            _quietly(held[0].check_object)(item)

    def pytest_collection_finish(session):
        if held:
            for item in session.items:
                owner = getattr(item, "cls", None) or getattr(item, "module", None)
                _quietly(held[0].add_test)(owner, getattr(item, "originalname", None) or item.name)
            held.append(set(plugins(session.config)))

    def pytest_sessionfinish(session):
        if not held:
            return
        if len(held) > 1:
            held[0].changed.update(set(plugins(session.config)) - held[1])
        _quietly(held[0].end)()

    for function in (pytest_addoption, pytest_runtest_logreport, pytest_collectreport, pytest_runtest_makereport,
                     pytest_collection_finish, pytest_sessionfinish):
        setattr(module, function.__name__, function)
    return module


def _socket():
    """The guard's socket, if it reached this process: other programs close what they inherit, and reuse its number."""
    handle, inode = [int(part) for part in os.environ[VARIABLE].split(":")]
    if os.fstat(handle).st_ino != inode:
        raise EnvironmentError("another file")
    os.set_inheritable(handle, False)
    return handle


def _program():
    """Name of the module or script that this interpreter runs; a wrapper starts another one."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().decode("utf-8", "replace").split("\0")[1:-1]
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            continue
        if not word.startswith("-"):
            name = os.path.basename(word)
        else:
            # Letters of options, of which a few take the rest of the word, or the next one.
            ends = [at for at, letter in enumerate(word) if letter in "cmWX"]
            if not ends:
                continue
            name = word[ends[0] + 1:] or (words.pop(0) if words else "")
            if word[ends[0]] != "m":
                if word[ends[0]] == "c":
                    return ""
                continue
        if name == "coverage" and words[:1] == ["run"]:
            # It runs the module that its own `-m` names, in this process.
            return dict(zip(words, words[1:])).get("-m", "")
        return name
    return ""


def _begin(own):
    name = _program()
    is_pytest = name in ("pytest", "py.test")
    if not is_pytest and name != "unittest":
        return
    handle = _socket()
    os.environ.pop(VARIABLE, None)
    options = os.environ.get("PYTEST_ADDOPTS")
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != own]

    def restore():
        # What the tests start themselves is none of the guard's.
        for name, value in (("PYTEST_ADDOPTS", options), ("PYTHONPATH", os.pathsep.join(paths) or None)):
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    if is_pytest:
        sys.modules[NAME] = _pytest_plugin(handle, restore)
        os.environ["PYTEST_ADDOPTS"] = "-p %s %s" % (NAME, options or "")
    else:
        restore()
        _watch_unittest(handle)


def _next(own):
    """Runs the `sitecustomize` that this one hides, if there is one."""
    try:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec
    except ImportError:
        return
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != own])
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_own = os.path.dirname(os.path.abspath(__file__))
if VARIABLE in os.environ:
    _quietly(_begin)(_own)
sys.path[:] = [path for path in sys.path if path != _own]
_next(_own)
