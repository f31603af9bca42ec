"""Attaches the recorder when Orbax is imported, never before: on `PYTHONPATH` by the launcher."""

# mypy: ignore-errors - the types that it needs cost every start of a Python more than the rest

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _watch() -> None:
    """Waits for the import of Orbax; a process without it does nothing more."""
    import importlib.util
    from types import ModuleType

    class Finder:
        def find_spec(self, name: str, *_: object) -> object:
            if name != "orbax.checkpoint" or self not in sys.meta_path:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is None or spec.loader is None:
                return None
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _attach()

            spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder())


def _attach() -> None:
    try:
        try:
            from orbax_bench_core.recorder import record
        except ModuleNotFoundError:  # installed for another Python than the job's
            root = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 3))
            sys.path.append(root)
            try:
                from orbax_bench_core.recorder import record
            finally:
                sys.path.remove(root)
        record(
            os.environ["ORBAX_BENCH_RECORD"],
            openmetrics=os.environ.get("ORBAX_BENCH_RECORD_OPENMETRICS"),
        )
    except Exception as error:  # noqa: BLE001 - the job goes on without a recording
        print(f"orbax-bench: this job is not recorded: {error!r}", file=sys.stderr)


if os.environ.get("ORBAX_BENCH_RECORD"):
    _watch()
# A `sitecustomize` of the site itself stays in force.
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    if _ours is not None:
        sys.modules["sitecustomize"] = _ours
