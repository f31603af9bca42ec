"""Flags of a choice of options in words."""

from typing import Final

from orbax_bench_core.reasons import Words

SENTENCES: Final[Words] = {
    "storage_trouble": "trouble with storage in {name}",
    "cached": "pages of the checkpoint were cached before a cold load",
    "not_cached": "pages of the checkpoint were not cached before a warm load",
}
"""Sentence of each code of a flag."""
