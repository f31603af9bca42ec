"""Python of the pages that no other test runs.

Sessions are run by tests/integration/test_planning_pages.py and tests/plan/test_save_count.py, the
first block of docs/python.md by test_guide.py, files of tutorials by test_walks.py. Calls of `ab`,
`soak` and `recovery` take minutes here; tests of these rooms make small ones. Blocks on pipelines
and Airflow are parts of files that examples/ has whole.
"""

import functools
import re

import pytest

import orbax_bench_core
from orbax_bench_core.testing import run_benchmark
from tests.support.blocks import ROOT, blocks_of

pytestmark = pytest.mark.slow

SPEC = {"w": {"dtype": "float32", "shape": [64], "sharding": ["fsdp"]}}
MESH = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def python_of(page):
    return [block for block in blocks_of(page) if block.language == "python"]


def test_every_function_that_a_page_calls_is_there():
    """What pages import, tests/golden imports."""
    text = "".join(block.text for page in PAGES for block in python_of(page))
    called = re.findall(r"\borbax_bench_core\.(\w+)\(", text)
    assert called
    assert [name for name in called if not callable(getattr(orbax_bench_core, name))] == []


def test_the_class_on_authoring_measures_and_verifies(tmp_path, monkeypatch):
    (tmp_path / "own_save.py").write_text(python_of("docs/authoring.md")[0].text)
    monkeypatch.syspath_prepend(str(tmp_path))
    outcomes = run_benchmark(
        "own_save.Save",
        str(tmp_path / "out"),
        options={"use_ocdbt": [True, False]},
        checkpoint={"spec": SPEC},
        mesh=MESH,
    )
    assert len(outcomes) == 2
    for outcome in outcomes:
        outcome.assert_verified()
        outcome.assert_measured("save", "load")


def test_the_test_on_authoring_passes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "own_package" / "src"))
    names = {}
    exec(python_of("docs/authoring.md")[2].text, names)
    fixture = functools.partial(_in, directory=str(tmp_path))
    names["test_it_measures_and_verifies"](fixture)


def _in(benchmark, *, directory, **blocks):
    return run_benchmark(benchmark, directory, **blocks)
