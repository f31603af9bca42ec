"""Values of records, with bounds: one number in a file cannot spoil what is computed of all."""

import datetime
from typing import Annotated, Final

import pydantic

MOST_INDEX: Final = 10_000_000
"""Largest index of a repeat, block or operation: none has been seen beyond 100,000."""
MOST_BYTES: Final = 2**63 - 1
MOST_SECONDS: Final = 1e9
"""Longest that anything takes: 30 years."""
MOST_VALUE: Final = 1e100
"""Largest value of any metric, of those that have an end: sums and squares of it have one too."""

Index = Annotated[int, pydantic.Field(ge=0, le=MOST_INDEX)]
Seconds = Annotated[float, pydantic.Field(ge=0, le=MOST_SECONDS)]
Bytes = Annotated[int, pydantic.Field(ge=0, le=MOST_BYTES)]


def _check_year(moment: datetime.datetime) -> datetime.datetime:
    if not 2000 <= moment.year < 3000:
        raise ValueError("a date that computations with it would leave the calendar from")
    return moment


Moment = Annotated[datetime.datetime, pydantic.AfterValidator(_check_year)]
