"""Attaches the recorder when Orbax is imported, never before: on `PYTHONPATH` by the launcher."""

# It is found by its place on the path, as is the site's own, which mypy does not know.
# mypy: ignore-errors

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _attach(_: object) -> None:
    root = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 3))
    sys.path.append(root)  # in case we are installed for another Python than the job's
    try:
        from orbax_bench_core.recorder import record

        metrics = os.environ.get("ORBAX_BENCH_RECORD_OPENMETRICS")
        record(os.environ["ORBAX_BENCH_RECORD"], openmetrics=metrics)
    except Exception as error:  # noqa: BLE001 - the job goes on without a recording
        print(f"orbax-bench: this job is not recorded: {error!r}", file=sys.stderr)
    finally:
        sys.path.remove(root)


if os.environ.get("ORBAX_BENCH_RECORD"):
    from _orbax_bench_imports import ImportHook

    ImportHook({"orbax.checkpoint": _attach}).install()
# A `sitecustomize` of the site itself stays in force.
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    sys.modules["sitecustomize"] = _ours
