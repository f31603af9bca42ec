"""Measure checkpoint operations over sweeps of options, meshes, checkpoints and environments.

The names below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.owners import name_by_number as _name_by_number

if TYPE_CHECKING:
    from orbax_bench_core.analysis.best import Best, best
    from orbax_bench_core.analysis.recovery import Recovery
    from orbax_bench_core.analysis.soak import Soak
    from orbax_bench_core.analysis.verdicts import VerdictReport, read_verdicts
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.experiments import ab, recovery, run, soak
    from orbax_bench_core.gate import Verdict
    from orbax_bench_core.recorder import Recorder, record
    from orbax_bench_core.records import Repeat, Run, Series, load_run
    from orbax_bench_core.sweep import Pair, SweepPoint

    __version__: str

__all__ = [
    "Best",
    "Pair",
    "Recorder",
    "Recovery",
    "Repeat",
    "Run",
    "Series",
    "Soak",
    "SweepPoint",
    "UserError",
    "Verdict",
    "VerdictReport",
    "__version__",
    "ab",
    "best",
    "load_run",
    "read_verdicts",
    "record",
    "recovery",
    "run",
    "soak",
]

_ROOMS: Final = {
    "Best": "analysis.best",
    "Pair": "sweep",
    "Recorder": "recorder",
    "Recovery": "analysis.recovery",
    "Repeat": "records",
    "Run": "records",
    "Series": "records",
    "Soak": "analysis.soak",
    "SweepPoint": "sweep",
    "UserError": "errors",
    "Verdict": "gate",
    "VerdictReport": "analysis.verdicts",
    "ab": "experiments",
    "best": "analysis.best",
    "load_run": "records",
    "read_verdicts": "analysis.verdicts",
    "record": "recorder",
    "recovery": "experiments",
    "run": "experiments",
    "soak": "experiments",
}
"""The room that each public name comes from."""

_name_by_number()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("orbax-bench")
    if name in _ROOMS:
        return getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; its public names: {', '.join(__all__)}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
