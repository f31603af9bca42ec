"""Soak: growth per save of memory, descriptors, threads and times, and the verdict on a limit."""

from orbax_bench_core.analysis.soak.growth import DROPPED as DROPPED
from orbax_bench_core.analysis.soak.growth import FEWEST as FEWEST
from orbax_bench_core.analysis.soak.growth import slope_of as slope_of
from orbax_bench_core.analysis.soak.growth import word_of as word_of
from orbax_bench_core.analysis.soak.model import Soak as Soak
from orbax_bench_core.analysis.soak.model import SoakWord as SoakWord
from orbax_bench_core.analysis.soak.soak import LIMIT_MIB as LIMIT_MIB
from orbax_bench_core.analysis.soak.soak import lives_of as lives_of
from orbax_bench_core.analysis.soak.soak import longest as longest
from orbax_bench_core.analysis.soak.soak import soak_of as soak_of
from orbax_bench_core.analysis.soak.view import headline as headline
from orbax_bench_core.analysis.soak.view import soak_document as soak_document
