"""Recovery drills: phases from a kill to the first step, steps lost, and how many came back."""

from orbax_bench_core.analysis.recovery.drills import PhaseName as PhaseName
from orbax_bench_core.analysis.recovery.drills import Recovery as Recovery
from orbax_bench_core.analysis.recovery.drills import recovery_of as recovery_of
from orbax_bench_core.analysis.recovery.view import headline as headline
from orbax_bench_core.analysis.recovery.view import lacking as lacking
from orbax_bench_core.analysis.recovery.view import recovery_document as recovery_document
