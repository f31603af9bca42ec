"""Suite files on disk: their schema for editors, drafts, and those of Orbax's own framework."""

from orbax_bench_core.suite_files.draft import (
    SCHEMA_FILE,
    Devices,
    Question,
    Subject,
    draft_suite,
)
from orbax_bench_core.suite_files.schema import SCHEMA_ID, modeline, schema_text, suite_schema

__all__ = [
    "SCHEMA_FILE",
    "SCHEMA_ID",
    "Devices",
    "Question",
    "Subject",
    "draft_suite",
    "modeline",
    "schema_text",
    "suite_schema",
]
