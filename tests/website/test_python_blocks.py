"""Python of the pages that no other test runs.

Sessions are run by tests/integration/test_planning_pages.py and tests/plan/test_save_count.py, the
first block of docs/python.md by test_guide.py, files of tutorials by test_walks.py. Calls of `ab`,
`soak` and `recovery` take minutes here; tests of these rooms make small ones. Blocks on pipelines
and Airflow are parts of files that examples/ has whole.
"""

import ast
import functools
import importlib
import re

import pytest

from orbax_bench_core.testing import run_benchmark
from tests.support.blocks import ROOT, blocks_of

pytestmark = pytest.mark.slow

SPEC = {"w": {"dtype": "float32", "shape": [64], "sharding": ["fsdp"]}}
MESH = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def python_of(page):
    return [block for block in blocks_of(page) if block.language == "python"]


def code_of(block):
    """The code of a block; of a session what was typed."""
    if ">>>" not in block.text:
        return block.text
    typed = [line for line in block.text.splitlines() if line.startswith((">>>", "..."))]
    return "\n".join(line[4:] for line in typed)


OURS = [
    block
    for page in PAGES
    if "/reference/" not in page
    for block in python_of(page)
    if "orbax_bench" in block.text
]


@pytest.mark.parametrize("block", OURS, ids=lambda block: block.name)
def test_every_name_that_a_page_imports_is_there(block):
    for node in ast.walk(ast.parse(code_of(block))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("orbax_bench"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"
    core = importlib.import_module("orbax_bench_core")
    for name in re.findall(r"\borbax_bench_core\.(\w+)\(", block.text):
        assert callable(getattr(core, name))


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
