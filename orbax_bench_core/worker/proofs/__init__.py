"""Proofs of options: what files, samples, Orbax's events and its log tell of each of them."""

from orbax_bench_core.worker.proofs.evidence import OptionEvidence as OptionEvidence
from orbax_bench_core.worker.proofs.evidence import unproved as unproved
from orbax_bench_core.worker.proofs.orbax_log import LINES as LINES
from orbax_bench_core.worker.proofs.table import NOT_PROVED as NOT_PROVED
from orbax_bench_core.worker.proofs.table import NOT_TRIED as NOT_TRIED
from orbax_bench_core.worker.proofs.table import PROOFS as PROOFS
from orbax_bench_core.worker.proofs.table import UNKNOWN as UNKNOWN
from orbax_bench_core.worker.proofs.table import prove as prove
