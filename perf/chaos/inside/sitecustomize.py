"""Stand-ins and faults inside the processes of a trial: Python imports this before anything else.

`CHAOS` is a JSON object; what it says of a fault concerns the process that runs `module`, or all
of them.
"""

import atexit
import importlib.machinery
import itertools
import json
import os
import pathlib
import signal
import sys

_TOLD = json.loads(os.environ.get("CHAOS", "{}"))
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MOVES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_REMOVALS = {"os.remove", "os.rmdir"}
_LISTS = {"os.listdir", "os.scandir"}
_HOST = "orbax_bench_core.execute.hosts.local"
_LEASE = "orbax_bench_core.leases"


def _stand_in_for_worker(module):
    """Has workers be fakes, of any environment, beside a lock of the trial's own."""
    host = module.LocalHost
    defaults = list(host.__init__.__kwdefaults__.items())
    host.__init__.__kwdefaults__ = {
        **dict(defaults),
        "module": _TOLD["worker"],
        "lock_file": module.Path(_TOLD["lock"]),
    }

    def made(self, configs, **_):
        for config in configs:
            slow = config.name.rpartition("-")[2] in _TOLD["slow"]
            variables = {"CHAOS_FACTOR": "1.3" if slow else "1"}
            self.interpreters[config.name] = module.Interpreter(sys.executable, variables)
        return {}

    host.make_environments = made


def _hurry(module):
    """Has leases beat fast, and newcomers soon lose their patience."""
    hurry = _TOLD.get("hurry", 1)
    module.PACE.beat_s, module.PACE.stale_s, module.PACE.poll_s = 3 / hurry, 60 / hurry, 0.5 / hurry


class _Finder:
    """Finder that changes a module once it has been imported."""

    def __init__(self, changes):
        self._changes = changes

    def find_spec(self, name, path, target=None):
        change = self._changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def run_and_change(module):
            run(module)
            change(module)

        spec.loader.exec_module = run_and_change
        return spec


def _is_meant():
    return _TOLD["everywhere"] or _TOLD["module"] in sys.orig_argv


def _kind(event, arguments):
    """Returns what a process is about to do below the folder: `read`, `write`, or nothing."""
    if event == "open":
        path, flags = arguments[0], arguments[2]
        kind = "write" if isinstance(flags, int) and flags & _WRITES else "read"
    elif event in _MOVES or event in _LISTS:
        path, kind = arguments[0], "read" if event in _LISTS else "write"
        if event in _REMOVALS and arguments[1] != -1:  # a name in a folder that is open
            path = pathlib.Path(f"/proc/self/fd/{arguments[1]}").readlink() / path
    else:
        return None
    below = isinstance(path, str | os.PathLike) and _TOLD["under"] in os.fspath(path)
    return kind if below and "__pycache__" not in os.fspath(path) else None


def _watch(fault):
    """Raises, or sends a signal, when the event of that number is about to happen."""
    counter = itertools.count(1)
    last = [0]

    def hook(event, arguments):
        kind = _kind(event, arguments)
        if kind is None or fault.get("kind", kind) != kind:
            return
        last[0] = number = next(counter)
        if "errno" in fault:
            if number == fault["at"] or (fault["lasting"] and number > fault["at"]):
                pathlib.Path(fault["struck"]).touch()
                raise OSError(fault["errno"], os.strerror(fault["errno"]), os.fspath(arguments[0]))
        elif "signal" in fault and number == fault["at"]:
            (os.killpg if fault["group"] else os.kill)(os.getpid(), signal.Signals(fault["signal"]))

    sys.addaudithook(hook)
    if "count" in fault:

        def keep():
            count, fault["count"] = fault["count"], ""
            if count:
                pathlib.Path(count).write_text(str(last[0]))

        atexit.register(keep)


def _note_when_told():
    """Notes whether signals are heard: before and after that, Python does as it pleases."""
    real = signal.signal

    def noted(number, handler):
        before = real(number, handler)
        if number == signal.SIGTERM:
            pathlib.Path(_TOLD["heard"]).write_text(str(handler is not signal.SIG_DFL))
        return before

    signal.signal = noted


if _TOLD:
    if _TOLD["module"] in sys.orig_argv:
        _note_when_told()
    if "worker" in _TOLD:
        sys.meta_path.insert(0, _Finder({_HOST: _stand_in_for_worker, _LEASE: _hurry}))
    if "fault" in _TOLD and _is_meant():
        _watch(_TOLD["fault"])
