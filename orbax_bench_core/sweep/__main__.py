"""`python -m orbax_bench_core.sweep FILE`: expansion in a process that imports anyone's classes.

The suite is read from standard input as JSON, and its points or problems are written to `FILE`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.sweep.expansion import expand_here


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        expansion = expand_here(parse_suite(request["text"], request["file"]))
    except UserError as error:
        return {
            "problems": [
                {"message": p.message, "key": p.key, "file": p.file, "line": p.line}
                for p in error.problems
            ]
        }
    return {"expansion": expansion.model_dump_json(), "files": expansion.files}


Path(sys.argv[1]).write_text(json.dumps(_answer(json.load(sys.stdin))))
