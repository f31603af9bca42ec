"""Outcome of a step in Airflow's terms: try again, or fail at once."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit


def returned(line: str, step: str) -> Any:
    """Returns what a step that ended with 0 says in its last line.

    Raises:
        AirflowFailException: That is no JSON: another program ran, or the step is not one of ours.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        said = f"{step} ended well, and its last line is no JSON: {line[:200]!r}"
        raise AirflowFailException(said) from None


def check(code: int, step: str, said: str = "") -> None:
    """Raises unless a step ended with 0.

    Args:
        code: Its exit code; negative for a signal.
        step: Its name.
        said: The last lines that it printed.

    Raises:
        AirflowFailException: Trying again would end in the same way.
        AirflowException: It may pass when it is tried again.
    """
    if code == Exit.OK:
        return
    known = code in set(Exit)
    reason = MEANINGS[Exit(code)][0] if known else "it was ended from outside"
    message = "\n".join(filter(None, [f"{step} ended with exit code {code}: {reason}", said]))
    final = known and code not in (*RETRIED, Exit.INTERRUPTED)
    raise AirflowFailException(message) if final else AirflowException(message)
