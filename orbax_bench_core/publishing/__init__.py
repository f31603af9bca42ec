"""Where results go: the files of a run directory, a webhook, JUnit XML, the morning page.

The names below are loaded when they are first used: a command that measures publishes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbax_bench_core.doors import late

if TYPE_CHECKING:
    from orbax_bench_core.publishing.notifiers import Notifiers as Notifiers
    from orbax_bench_core.publishing.reporting import load_writers as load_writers
    from orbax_bench_core.publishing.reporting import publish as publish
    from orbax_bench_core.publishing.reporting import publish_answer as publish_answer
    from orbax_bench_core.publishing.reporting import publish_verdicts as publish_verdicts
    from orbax_bench_core.publishing.reporting import report_of as report_of
    from orbax_bench_core.publishing.reporting import settle as settle
    from orbax_bench_core.publishing.reporting import write_answer as write_answer
    from orbax_bench_core.publishing.retries import note_retried as note_retried
    from orbax_bench_core.publishing.retries import read_retries as read_retries

__getattr__ = late(
    __name__,
    {
        "publishing.notifiers": "Notifiers",
        "publishing.reporting": (
            "load_writers publish publish_answer publish_verdicts report_of settle write_answer"
        ),
        "publishing.retries": "note_retried read_retries",
    },
)
