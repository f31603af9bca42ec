"""The command line, whose workers are fakes: `python -m tests.support.fake_cli run suite.yaml`."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from orbax_bench_core import execute
from orbax_bench_core.cli.main import main
from orbax_bench_core.leases import PACE
from orbax_bench_core.records import Heartbeat
from tests.golden.support import Outcome, orbax_bench
from tests.support.fake_worker import MODULE


def take_fakes(put: Callable[[object, str, object], None]) -> None:
    """Has commands of this process measure with fakes, at the pace that the environment says."""
    # Commands take their settings from the door when they run.
    fake = execute.LocalHost(
        module=os.environ.get("WORKER_MODULE", MODULE),
        lock_file=Path(os.environ.get("LOCK_FILE", execute.LOCK_FILE)),
    )
    put(execute, "RunSettings", functools.partial(execute.RunSettings, host=fake))
    hurry = float(os.environ.get("LEASE_HURRY", "1"))
    for name, seconds in {"beat_s": 3, "stale_s": 60, "poll_s": 0.5}.items():
        put(PACE, name, seconds / hurry)
    put(Heartbeat, "PERIOD_S", float(os.environ.get("HEARTBEAT_S", Heartbeat.PERIOD_S)))


@contextlib.contextmanager
def fake_workers() -> Iterator[None]:
    """Has commands of this process measure with fakes for a while."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        take_fakes(patch.setattr)
        yield


def fake_bench(*arguments: object, columns: int = 200) -> Outcome:
    """Runs a command in this process: what it starts is real, but for the workers."""
    import pytest

    with fake_workers(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        return orbax_bench(*arguments)


if __name__ == "__main__":
    take_fakes(setattr)
    main()
