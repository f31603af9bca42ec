"""User errors, and text that is safe to show: no control characters, no credentials."""

from orbax_bench_core.errors.redaction import CREDENTIALS as CREDENTIALS
from orbax_bench_core.errors.redaction import has_credentials as has_credentials
from orbax_bench_core.errors.redaction import log_pieces as log_pieces
from orbax_bench_core.errors.redaction import redacted as redacted
from orbax_bench_core.errors.redaction import redacted_deeply as redacted_deeply
from orbax_bench_core.errors.redaction import without_credentials as without_credentials
from orbax_bench_core.errors.refusals import may_pass as may_pass
from orbax_bench_core.errors.refusals import refusal_of as refusal_of
from orbax_bench_core.errors.refusals import remedy_of as remedy_of
from orbax_bench_core.errors.text import CONTROL as CONTROL
from orbax_bench_core.errors.text import listed as listed
from orbax_bench_core.errors.text import on_a_screen as on_a_screen
from orbax_bench_core.errors.text import one_line as one_line
from orbax_bench_core.errors.text import presentable as presentable
from orbax_bench_core.errors.text import printable as printable
from orbax_bench_core.errors.text import shortened as shortened
from orbax_bench_core.errors.text import shown as shown
from orbax_bench_core.errors.text import without_orders as without_orders
from orbax_bench_core.errors.user_error import Problem as Problem
from orbax_bench_core.errors.user_error import UserError as UserError
from orbax_bench_core.errors.user_error import check_amounts as check_amounts
from orbax_bench_core.errors.user_error import command as command
from orbax_bench_core.errors.user_error import did_you_mean as did_you_mean
from orbax_bench_core.errors.user_error import first_fault as first_fault
