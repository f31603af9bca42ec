"""An async study of a run, written into its directory."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.compare.async_study.model import STUDY_FILE, AsyncStudy
from orbax_bench_core.compare.async_study.parameters import ParameterCounter
from orbax_bench_core.compare.async_study.study import async_study
from orbax_bench_core.records.files import write_atomically
from orbax_bench_core.records.run import ByArm
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.report.async_study.page import study_html, study_markdown
from orbax_bench_core.report.keep_lineage import keep_conclusion

PAGE: Final = "async_study.html"
MARKDOWN: Final = "async_study.md"


def publish_async_study(run: RunDirectory) -> AsyncStudy:
    """Writes `async_study.json`, `async_study.md` and `async_study.html` from the records of a run.

    Args:
        run: A run directory; only its records are read, so this can be repeated at any time.

    Returns:
        What the study found.

    Raises:
        SuiteError: There is no run, or it saved no checkpoint in both ways.
        OSError: A file cannot be written.
    """
    view = ByArm(str(run.root)) if run.read_info().paired else run
    info = view.read_info()
    study = async_study(info, view.records(), ParameterCounter(info.suite_file))
    write_atomically(run.root / STUDY_FILE, study.model_dump_json(indent=1).encode())
    write_atomically(run.root / MARKDOWN, study_markdown(study).encode())
    write_atomically(run.root / PAGE, study_html(study).encode())
    keep_conclusion(run, STUDY_FILE)
    return study
