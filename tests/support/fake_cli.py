"""The command line, whose workers are fakes: `python -m tests.support.fake_cli run suite.yaml`."""

import functools
import os
from pathlib import Path

from orbax_bench_core import execute
from orbax_bench_core.cli.main import main
from orbax_bench_core.leases import PACE
from orbax_bench_core.records import Heartbeat
from tests.support.fake_worker import MODULE

if __name__ == "__main__":
    # Commands take their settings from the door when they run.
    fake = execute.LocalHost(
        module=os.environ.get("WORKER_MODULE", MODULE),
        lock_file=Path(os.environ.get("LOCK_FILE", execute.LOCK_FILE)),
    )
    execute.RunSettings = functools.partial(execute.RunSettings, host=fake)
    hurry = float(os.environ.get("LEASE_HURRY", "1"))
    PACE.beat_s, PACE.stale_s, PACE.poll_s = 3 / hurry, 60 / hurry, 0.5 / hurry
    Heartbeat.PERIOD_S = float(os.environ.get("HEARTBEAT_S", Heartbeat.PERIOD_S))
    main()
