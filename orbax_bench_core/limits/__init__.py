"""Storage and memory limits: what this machine can do with a checkpoint's bytes, without Orbax."""

from orbax_bench_core.limits.model import Limits as Limits
from orbax_bench_core.limits.model import read as read
from orbax_bench_core.limits.model import read_hosts as read_hosts
from orbax_bench_core.limits.model import write as write
from orbax_bench_core.limits.probes import PROBES as PROBES
from orbax_bench_core.limits.process import ensure_limits as ensure_limits
from orbax_bench_core.limits.process import take_limits as take_limits
from orbax_bench_core.limits.share import limit_columns as limit_columns
from orbax_bench_core.limits.share import operation_limits as operation_limits
from orbax_bench_core.limits.share import with_hosts as with_hosts
from orbax_bench_core.limits.view import limits_document as limits_document
