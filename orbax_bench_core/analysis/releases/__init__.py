"""Search over releases, as it is kept and read: its steps, its answer, and the ratio by release."""

from orbax_bench_core.analysis.releases.model import Conclusion as Conclusion
from orbax_bench_core.analysis.releases.model import OperationRatio as OperationRatio
from orbax_bench_core.analysis.releases.model import Purpose as Purpose
from orbax_bench_core.analysis.releases.model import ReleaseSearch as ReleaseSearch
from orbax_bench_core.analysis.releases.model import ReleaseWord as ReleaseWord
from orbax_bench_core.analysis.releases.model import SearchStep as SearchStep
from orbax_bench_core.analysis.releases.view import headline as headline
from orbax_bench_core.analysis.releases.view import search_document as search_document
