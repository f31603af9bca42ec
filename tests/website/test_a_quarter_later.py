"""The page on what changes around a nightly check: every command of it, as it stands there."""

import datetime
import os
import re
import shlex
import site
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.baselines import Registry, capture_run, promote_capture
from orbax_bench_core.publishing import publish
from tests.support.blocks import ROOT, blocks_of, run_in_shell, write_program
from tests.support.paired_runs import make_separate_run  # noqa: F401 - a fixture
from tests.support.webhook import webhook  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
PAGE = "docs/a-quarter-later.md"
SUITE = """
suite_name: a suite
checkpoint_config: {spec: {params: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "uv", "--quiet", "build", "--wheel", "--out-dir", folder, ROOT]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    return folder


@pytest.fixture
def place(tmp_path, make_separate_run, wheel, webhook):
    """A folder after a quarter: nights, a registry with three captures, and an installation.

    Returns what runs a command there. Packages that ours needs are those of the tests; `pip` takes
    ours from the wheel that was just built. What was installed before is the checkout.
    """
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE)
    registry = Registry(str(folder / "baselines"))
    now = datetime.datetime.now(datetime.UTC)
    for number, (name, days) in enumerate((("old", 200), ("before", 2), ("last", 1))):
        seconds = 3.0 if name == "last" else 1.0  # what there is to tell a webhook
        run = make_separate_run(number, seconds, folder=f"place/nightly/{name}")
        info = run.read_info()
        dated = info.model_copy(update={"created_at": now - datetime.timedelta(days=days)})
        run.write_info(dated)
        publish(run)
        capture_run(run, registry, revision=f"v{number}")
    for label in ("v1", "v2"):
        promote_capture(registry, label)
    for programs in (tmp_path / "bin", folder / "venv-before" / "bin"):
        programs.mkdir(parents=True)
        write_program(programs / "orbax-bench", "-m orbax_bench_core.cli")
    environment = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel),
        "PIP_NO_DEPS": "1",
        "PIP_NO_COMPILE": "1",  # the commands run a fifth of the modules
        "PIP_IGNORE_INSTALLED": "1",  # the tests' own is on the path as well
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NEW_ADDRESS": webhook.url,
        "HOME": str(folder),
    }

    def run(command, codes=(0,)):
        # Without the checkout, which would hide what is installed.
        packages = shlex.quote(os.pathsep.join(site.getsitepackages()))
        begin = f"unset ORBAX_BENCH_NOTIFY; export PYTHONPATH={packages}; set -euo pipefail"
        script = f"{begin}\n{command}"
        done = run_in_shell(script, folder, tmp_path / "bin", **environment)
        assert done.returncode in codes, command + done.stdout + done.stderr
        return done.stdout

    run.folder, run.registry, run.posted = folder, registry, webhook.posted
    return run


def test_every_command_of_the_page_runs_in_its_order(place):
    blocks = [block.text for block in blocks_of(PAGE) if block.language == "sh"]
    prune, upgrade, back, bad, certain, lost, again, moved, told, token = blocks
    assert "nightly/old" not in place(prune), "it is among the newest"
    few = place("orbax-bench prune nightly --keep-last 1 --delete")
    assert "/nightly/old (" in few
    place(upgrade)
    assert Path(place.folder / "venv").readlink().name == "venv-next"
    where = "import orbax_bench_core; print(orbax_bench_core.__file__)"
    assert "/place/venv/" in place(f"cd /; {place.folder}/venv/bin/python -c '{where}'")
    place(back)
    assert Path(place.folder / "venv").readlink().name == "venv-before"
    current = set(place.registry.current().values())
    place(bad)
    assert current != set(place.registry.current().values())
    assert {each.partition("/")[0] for each in place.registry.current().values()} == {"v1"}
    place(certain, codes=(3,))
    assert place.registry.promotions()[-1].note == "measured during a backup", "v1 is it already"
    shown = place(lost)
    assert "BROKEN" not in shown
    assert re.search(r"(UNCHANGED|UNKNOWN): .*of \d+ digests \d+ unchanged", shown)
    assert (place.folder / "restored" / "report.html").exists()
    place(again)
    assert list((place.folder / "baselines-again").glob("v2/*.json"))
    assert place.posted == []
    place(moved, codes=(3,))
    assert len(place.posted) == 1
    place(f"export ORBAX_BENCH_NOTIFY=$NEW_ADDRESS\n{told}", codes=(3,))
    assert len(place.posted) == 2, "it is told once more, for the file is gone"
    assert "v2" in place(token)


def test_the_page_names_no_command_that_is_not_run():
    """`text` blocks are lines of other programs, such as cron."""
    languages = {block.language for block in blocks_of(PAGE)}
    assert languages == {"sh", "text"}
