"""Choice of options: rankings with ties, effects, Pareto front, and recommendation."""

from orbax_bench_core.analysis.best.build import best, best_of, read_best
from orbax_bench_core.analysis.best.confidence import NEAR, separation
from orbax_bench_core.analysis.best.factorial import FactorialLayout, analyse
from orbax_bench_core.analysis.best.model import Best
from orbax_bench_core.analysis.best.observations import Observer, parse_goal
from orbax_bench_core.analysis.best.ranking import LEVEL, rank
from orbax_bench_core.analysis.best.view import best_document, best_section
from orbax_bench_core.analysis.best.words import best_line

__all__ = [
    "LEVEL",
    "NEAR",
    "Best",
    "FactorialLayout",
    "Observer",
    "analyse",
    "best",
    "best_document",
    "best_line",
    "best_of",
    "best_section",
    "parse_goal",
    "rank",
    "read_best",
    "separation",
]
