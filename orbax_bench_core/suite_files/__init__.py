"""Suite files on disk: their schema for editors, drafts, and those of Orbax's own framework."""

from pathlib import Path
from typing import Final

from orbax_bench_core.suite_files.draft import SCHEMA_FILE as SCHEMA_FILE
from orbax_bench_core.suite_files.draft import Devices as Devices
from orbax_bench_core.suite_files.draft import Question as Question
from orbax_bench_core.suite_files.draft import Subject as Subject
from orbax_bench_core.suite_files.draft import draft_suite as draft_suite
from orbax_bench_core.suite_files.moved_module import migrate as migrate
from orbax_bench_core.suite_files.orbax_names import OrbaxCoverage as OrbaxCoverage
from orbax_bench_core.suite_files.orbax_names import OrbaxName as OrbaxName
from orbax_bench_core.suite_files.orbax_names import orbax_coverage as orbax_coverage
from orbax_bench_core.suite_files.schema import SCHEMA_ID as SCHEMA_ID
from orbax_bench_core.suite_files.schema import schema_text as schema_text
from orbax_bench_core.suite_files.schema import suite_schema as suite_schema

UPGRADE_SUITE: Final = Path(__file__).parent / "upgrade.yaml"
"""The suite by which releases of Orbax are compared where nobody names another one."""
