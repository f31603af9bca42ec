"""Outcome of a step in Airflow's terms: try again, or fail at once."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit


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
