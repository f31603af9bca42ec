"""`python -m orbax_bench_core.suite_files [FILE]`: the schema of a suite into `docs/schema`."""

import sys
from pathlib import Path

from orbax_bench_core.suite_files import schema_text

Path(sys.argv[1] if sys.argv[1:] else "docs/schema/suite.json").write_text(schema_text())
