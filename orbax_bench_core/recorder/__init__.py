"""Records what Orbax does in a training job. Imports the standard library alone.

Everything here runs inside the job of somebody else: JAX and Orbax are used where the job has
imported them itself, so that `pip install --no-deps orbax-bench` is enough, and nothing that fails
here reaches the job.
"""

from orbax_bench_core.recorder.hooks import time_waits as time_waits
from orbax_bench_core.recorder.launcher import CannotLaunch as CannotLaunch
from orbax_bench_core.recorder.launcher import launch as launch
from orbax_bench_core.recorder.launcher import run_launcher as run_launcher
from orbax_bench_core.recorder.lines import FORMAT as FORMAT
from orbax_bench_core.recorder.lines import METADATA_WAIT as METADATA_WAIT
from orbax_bench_core.recorder.lines import OWN_TIMES as OWN_TIMES
from orbax_bench_core.recorder.lines import SIGNAL_WAIT as SIGNAL_WAIT
from orbax_bench_core.recorder.recorder import Recorder as Recorder
from orbax_bench_core.recorder.recorder import record as record
from orbax_bench_core.recorder.stalls import stall_limit as stall_limit
from orbax_bench_core.recorder.summary import Summary as Summary
