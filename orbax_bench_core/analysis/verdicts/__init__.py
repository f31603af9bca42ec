"""Paired and unpaired verdicts, and their document."""

from orbax_bench_core.analysis.verdicts.evidence import Evidence as Evidence
from orbax_bench_core.analysis.verdicts.headlines import change as change
from orbax_bench_core.analysis.verdicts.headlines import headline as headline
from orbax_bench_core.analysis.verdicts.headlines import nearest_to_trouble as nearest_to_trouble
from orbax_bench_core.analysis.verdicts.headlines import operation_told as operation_told
from orbax_bench_core.analysis.verdicts.headlines import share as share
from orbax_bench_core.analysis.verdicts.headlines import told as told
from orbax_bench_core.analysis.verdicts.model import OperationVerdict as OperationVerdict
from orbax_bench_core.analysis.verdicts.model import PointVerdict as PointVerdict
from orbax_bench_core.analysis.verdicts.model import Unmatched as Unmatched
from orbax_bench_core.analysis.verdicts.model import VerdictReport as VerdictReport
from orbax_bench_core.analysis.verdicts.model import read_verdicts as read_verdicts
from orbax_bench_core.analysis.verdicts.model import read_verdicts_file as read_verdicts_file
from orbax_bench_core.analysis.verdicts.model import write_verdicts as write_verdicts
from orbax_bench_core.analysis.verdicts.paired import evidence_of as evidence_of
from orbax_bench_core.analysis.verdicts.paired import judge_point as judge_point
from orbax_bench_core.analysis.verdicts.paired import judge_run as judge_run
from orbax_bench_core.analysis.verdicts.paired import needs_more as needs_more
from orbax_bench_core.analysis.verdicts.paired import report as report
from orbax_bench_core.analysis.verdicts.paired import version_differences as version_differences
from orbax_bench_core.analysis.verdicts.unpaired import compare_stored as compare_stored
from orbax_bench_core.analysis.verdicts.unpaired import compare_unpaired as compare_unpaired
from orbax_bench_core.analysis.verdicts.view import following as following
from orbax_bench_core.analysis.verdicts.view import verdicts_document as verdicts_document
