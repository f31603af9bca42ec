"""Choice of options: rankings with ties, effects, Pareto front, and recommendation."""

from orbax_bench_core.analysis.best.build import best as best
from orbax_bench_core.analysis.best.build import best_of as best_of
from orbax_bench_core.analysis.best.factorial import NEAR as NEAR
from orbax_bench_core.analysis.best.factorial import FactorialLayout as FactorialLayout
from orbax_bench_core.analysis.best.factorial import analyse as analyse
from orbax_bench_core.analysis.best.factorial import separation as separation
from orbax_bench_core.analysis.best.headline import best_line as best_line
from orbax_bench_core.analysis.best.model import Best as Best
from orbax_bench_core.analysis.best.model import Confidence as Confidence
from orbax_bench_core.analysis.best.observations import Observer as Observer
from orbax_bench_core.analysis.best.observations import parse_goal as parse_goal
from orbax_bench_core.analysis.best.orbax_code import orbax_attributes as orbax_attributes
from orbax_bench_core.analysis.best.ranking import LEVEL as LEVEL
from orbax_bench_core.analysis.best.ranking import by_process as by_process
from orbax_bench_core.analysis.best.ranking import rank as rank
from orbax_bench_core.analysis.best.view import best_document as best_document
