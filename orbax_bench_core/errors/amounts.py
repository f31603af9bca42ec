"""Amounts that a user gives: numbers of 0 or more that have an end."""

from __future__ import annotations

import math

from orbax_bench_core.errors.text import shown
from orbax_bench_core.errors.user_error import UserError


def check_amounts(**amounts: float) -> None:
    """Checks amounts by name, before anything is measured that they would be taken from."""
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise UserError(f"{name}: expected a number of 0 or more, got {shown(amount)}")
