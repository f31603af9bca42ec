"""Notes of an async study in words."""

from typing import Final

from orbax_bench_core.reasons import Words

SENTENCES: Final[Words] = {
    "sequential": (
        "the run has `execution.order: sequential`, so one kind of save was measured after the "
        "other: what drifted in between counts as a difference between them, and the intervals do "
        "not cover it"
    ),
    "no_record": "{point}: no repeat has a record yet",
    "repeats_left_out": (
        "{point}: {left_out} of {repeats} repeats failed or were skipped and are left out: {said}"
    ),
    "no_partner": "{point}: has no partner with `{option}: {value}`",
    "no_times": lambda point, operations: (
        f"{point}: no repeat that passed measured {' and '.join(operations)}"
    ),
    "no_bytes": "{point}: its records do not say how many bytes were saved",
    "one_size": "{series}: one size only, so nothing can be said of how the share grows",
    "few_sizes": (
        "{series}: how the times grow with the size is told of {fewest} sizes or more that differ "
        "in bytes"
    ),
    "no_parameters": (
        "{series}: nothing tells the number of parameters of {checkpoints}, so sizes are in bytes"
    ),
}
"""Sentence of each code of a note."""
