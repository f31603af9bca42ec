"""Notes of a soak in words."""

from typing import Final

from orbax_bench_core.reasons import Words

SENTENCES: Final[Words] = {
    "not_measured": "{point}: {said}",
    "no_levels": "{point}: no save on host {host} has the state of its process, {metric}",
    "several_lives": (
        "{point}: {lives} processes made saves on host {host}, since the soak was stopped or a "
        "repeat failed; the longest life, of {saves} saves, is judged, because every process "
        "starts with fresh memory"
    ),
    "repeats_failed": "{point}: {failed} of {repeats} repeats failed: {said}",
}
"""Sentence of each code of a note."""
