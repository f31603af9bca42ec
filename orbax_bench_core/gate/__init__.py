"""The statistical gate: verdicts on the difference between two arms.

Plain arrays in, verdicts out; nothing here knows of files, runs or JAX.
"""

from orbax_bench_core.gate.blocks import random_labels as random_labels
from orbax_bench_core.gate.blocks import read_blocks as read_blocks
from orbax_bench_core.gate.calibration import RejectRate as RejectRate
from orbax_bench_core.gate.calibration import reject_rate as reject_rate
from orbax_bench_core.gate.decide import Decision as Decision
from orbax_bench_core.gate.decide import Doubt as Doubt
from orbax_bench_core.gate.decide import decide as decide
from orbax_bench_core.gate.decide import together as together
from orbax_bench_core.gate.excess import Excess as Excess
from orbax_bench_core.gate.health import find_regimes as find_regimes
from orbax_bench_core.gate.health import health as health
from orbax_bench_core.gate.judge import Judged as Judged
from orbax_bench_core.gate.judge import false_discovery as false_discovery
from orbax_bench_core.gate.judge import judge as judge
from orbax_bench_core.gate.judge import primary_operations as primary_operations
from orbax_bench_core.gate.location import holm_levels as holm_levels
from orbax_bench_core.gate.nights import NIGHTS as NIGHTS
from orbax_bench_core.gate.nights import NightCount as NightCount
from orbax_bench_core.gate.nights import over_nights as over_nights
from orbax_bench_core.gate.nights import stalls_of_night as stalls_of_night
from orbax_bench_core.gate.noise import NORMAL_MAD as NORMAL_MAD
from orbax_bench_core.gate.noise import cut as cut
from orbax_bench_core.gate.noise import spread as spread
from orbax_bench_core.gate.plan import plan_operations as plan_operations
from orbax_bench_core.gate.power import Chances as Chances
from orbax_bench_core.gate.power import chances_of as chances_of
from orbax_bench_core.gate.power import detectable as detectable
from orbax_bench_core.gate.processes import spread_over_processes as spread_over_processes
from orbax_bench_core.gate.rank_test import log_ratio as log_ratio
from orbax_bench_core.gate.unpaired import arrangements as arrangements
from orbax_bench_core.gate.unpaired import decide_unpaired as decide_unpaired
from orbax_bench_core.gate.unpaired import run_log_ratio as run_log_ratio
from orbax_bench_core.gate.verdict import Endpoint as Endpoint
from orbax_bench_core.gate.verdict import FailureVerdict as FailureVerdict
from orbax_bench_core.gate.verdict import SeriesHealth as SeriesHealth
from orbax_bench_core.gate.verdict import StallVerdict as StallVerdict
from orbax_bench_core.gate.verdict import Verdict as Verdict
from orbax_bench_core.gate.verdict import Word as Word
