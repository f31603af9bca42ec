"""Prices of accelerators, from a table that the user gives; none is known here."""

from __future__ import annotations

import datetime
from typing import Any

import pydantic

from orbax_bench_core.config import ConfigModel, Source, explain
from orbax_bench_core.errors import Problem, UserError, did_you_mean
from orbax_bench_core.files import read_at_most


class Price(ConfigModel):
    """Price of one accelerator.

    Attributes:
        price_per_hour: For one device and hour.
        currency: Such as USD.
        as_of: Day that it was looked up.
        source: Where.
    """

    price_per_hour: pydantic.PositiveFloat = pydantic.Field(strict=False)
    currency: str
    as_of: datetime.date = pydantic.Field(strict=False)
    source: str

    @property
    def note(self) -> str:
        """Where the price is from."""
        return f"{self.source}, {self.as_of}"


def read_price(file: str, accelerator: str) -> Price:
    """Reads the price of an accelerator."""
    try:
        table: Any = Source(read_at_most(file).decode(), file).data
    except (OSError, ValueError, ImportError) as error:
        message = f"cannot be read: {' '.join(str(error).split())}"
        raise UserError(Problem(message, file=file)) from None
    if not isinstance(table, dict):
        message = f"a price table maps accelerators to prices, got {type(table).__name__}"
        raise UserError(Problem(message, file=file))
    if accelerator not in table:
        message = f"has no price of {accelerator!r}; {did_you_mean(accelerator, map(str, table))}"
        raise UserError(Problem(message, file=file))
    try:
        return Price.model_validate(table[accelerator])
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, (accelerator, *first["loc"])))
        raise UserError(Problem(explain(first, Price.model_fields), key=key, file=file)) from None
