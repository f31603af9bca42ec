"""Past runs in the order of time, and flags where what they measure has changed."""

from orbax_bench_core.analysis.history.build import history as history
from orbax_bench_core.analysis.history.build import measured_in as measured_in
from orbax_bench_core.analysis.history.changes import LEAST as LEAST
from orbax_bench_core.analysis.history.changes import MOST as MOST
from orbax_bench_core.analysis.history.model import History as History
from orbax_bench_core.analysis.history.model import PastOperation as PastOperation
from orbax_bench_core.analysis.history.trends import latest as latest
from orbax_bench_core.analysis.history.trends import new_in as new_in
from orbax_bench_core.analysis.history.trends import trend as trend
from orbax_bench_core.analysis.history.trends import trends_of as trends_of
from orbax_bench_core.analysis.history.trends import what_ran_in as what_ran_in
from orbax_bench_core.analysis.history.trends import worst as worst
from orbax_bench_core.analysis.history.view import history_document as history_document
