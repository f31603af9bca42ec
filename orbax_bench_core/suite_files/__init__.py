"""Suite files on disk: their schema for editors, drafts, and those of Orbax's own framework."""

from pathlib import Path
from typing import Final

from orbax_bench_core.suite_files.draft import SCHEMA_FILE, Devices, Question, Subject, draft_suite
from orbax_bench_core.suite_files.moved_suite import migrate
from orbax_bench_core.suite_files.schema import SCHEMA_ID, schema_text, suite_schema

__all__ = [
    "SCHEMA_FILE",
    "SCHEMA_ID",
    "UPGRADE_SUITE",
    "Devices",
    "Question",
    "Subject",
    "draft_suite",
    "migrate",
    "schema_text",
    "suite_schema",
]

UPGRADE_SUITE: Final = Path(__file__).parent / "upgrade.yaml"
"""The suite by which releases of Orbax are compared where nobody names another one."""
