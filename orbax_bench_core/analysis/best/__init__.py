"""Choice of options: rankings with ties, effects, Pareto front, recommendation, and the search."""

from orbax_bench_core.analysis.best.build import best, best_of, default_goal, read_best, read_search
from orbax_bench_core.analysis.best.factorial import Layout, analyse
from orbax_bench_core.analysis.best.goals import parse_goal
from orbax_bench_core.analysis.best.halving import FIRST_ROUNDS, NEAR, look, separation
from orbax_bench_core.analysis.best.model import Best, Goal, Search, Stage
from orbax_bench_core.analysis.best.observations import Observed, Observer, values_for
from orbax_bench_core.analysis.best.ranking import LEVEL, complete_rounds, rank
from orbax_bench_core.analysis.best.view import best_document, best_section
from orbax_bench_core.analysis.best.words import best_line

__all__ = [
    "FIRST_ROUNDS",
    "LEVEL",
    "NEAR",
    "Best",
    "Goal",
    "Layout",
    "Observed",
    "Observer",
    "Search",
    "Stage",
    "analyse",
    "best",
    "best_document",
    "best_line",
    "best_of",
    "best_section",
    "complete_rounds",
    "default_goal",
    "look",
    "parse_goal",
    "rank",
    "read_best",
    "read_search",
    "separation",
    "values_for",
]
