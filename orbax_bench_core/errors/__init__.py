"""User errors, and text that is safe to show: no control characters, no credentials."""

from orbax_bench_core.errors.redaction import (
    CREDENTIALS,
    has_credentials,
    redacted,
    redacted_deeply,
    without_credentials,
)
from orbax_bench_core.errors.user_error import (
    CONTROL,
    Problem,
    Refusal,
    UserError,
    check_amounts,
    command,
    did_you_mean,
    may_pass,
    one_line,
    presentable,
    printable,
    refusal_of,
    remedy_of,
    shortened,
    shown,
)

__all__ = [
    "CONTROL",
    "CREDENTIALS",
    "Problem",
    "Refusal",
    "UserError",
    "check_amounts",
    "command",
    "did_you_mean",
    "has_credentials",
    "may_pass",
    "one_line",
    "presentable",
    "printable",
    "redacted",
    "redacted_deeply",
    "refusal_of",
    "remedy_of",
    "shortened",
    "shown",
    "without_credentials",
]
