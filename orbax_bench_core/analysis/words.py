"""Reasons in words, by the table of the answer that they belong to."""

from collections.abc import Callable, Mapping

from orbax_bench_core.reasons import Reason, ReasonCode

Words = Mapping[ReasonCode, str | Callable[..., str]]
"""Words of each code: a text with the names of its values, lists with commas, or a function."""


def in_words(words: Words, *reasons: Reason) -> str:
    """Returns reasons in words, without their operations; empty for none.

    What others said is quoted as it is; `words` has all other codes of the answer.
    """
    return "; ".join(_sentence(words, each) for each in reasons)


def _sentence(words: Words, reason: Reason) -> str:
    found, values = "{said}" if reason.code == "told" else words[reason.code], reason.values
    if callable(found):
        return found(**values)
    lists = {name: each for name, each in values.items() if isinstance(each, tuple)}
    told = {name: ", ".join(map(str, each)) or "none" for name, each in lists.items()}
    return found.format(**{**values, **told})
