"""Options and functions of the installed Orbax that nothing measures: a release's new ones show."""

import json

import pytest

from tests.support.processes import run_cli


@pytest.mark.slow
def test_what_has_neither_a_benchmark_nor_a_reason(golden):
    said = json.loads(run_cli("list", "--orbax", "--json").stdout)
    left = [
        f"{one['group']}: {one['name']}"
        for one in said["names"]
        if not one["measured_by"] and not one["reason"]
    ]
    golden("orbax_names.txt", "".join(f"{line}\n" for line in left))
