"""What an async study shows at its end, and its exit code."""

from __future__ import annotations

import pydantic
from rich.console import Console

from orbax_bench_core.analysis.async_study import AsyncStudy, study_document
from orbax_bench_core.cli.measurement import EXIT_FAILED
from orbax_bench_core.document import print_document
from orbax_bench_core.records import STUDY_FILE, RunDirectory
from orbax_bench_pipelines.registry import Finished


def conclude(finished: Finished, console: Console) -> int:
    """Shows what each size saves; repeats that failed, or no study at all, are a failure.

    Args:
        finished: The run.
        console: Where to show it.
    """
    try:
        text = (RunDirectory(finished.directory).root / STUDY_FILE).read_bytes()
        study = AsyncStudy.model_validate_json(text)
    except (OSError, pydantic.ValidationError):
        return EXIT_FAILED
    print_document(study_document(study), console)
    sizes = [size for series in study.series for size in series.sizes]
    failed = sum(size.blocking.failed + size.background.failed for size in sizes)
    return EXIT_FAILED if failed else 0
