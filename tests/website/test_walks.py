"""The walks of the site, and the tour, from the built wheel and without the checkout.

Commands and files are those of the pages. What takes minutes is for `make extended`.
"""

import json
import re
import time

import pytest

from tests.support.blocks import ROOT, blocks_of, commands_of, words_of
from tests.support.webhook import webhook  # noqa: F401 - fixture

pytestmark = pytest.mark.nightly

SCRIPTED = """
suite_name: nightly
execution: {{warmups: 0}}
gate: {{looks: [10], margin: 4.0}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {{}}}}]
arms: {{candidate: {{options: {{save_s: {save_s}}}}}}}
"""


class Walk:
    """A page that is followed: files are written, commands run, in one folder."""

    def __init__(self, page, installed, folder):
        self.page = page
        self.commands = commands_of(f"docs/tutorials/{page}.md")
        self.installed, self.folder = installed, folder
        self.said, self.ended_s = {}, {}
        self.began = time.monotonic() - installed.took_s
        for block in blocks_of(f"docs/tutorials/{page}.md"):
            if block.title:
                (folder / block.title).write_text(block.text)

    def follow(self, *, quicker=(), without=(), codes=None, **variables):
        """Runs the commands; `quicker` adds flags to some of them, by name."""
        for command in self.commands:
            words = words_of(command)
            if not words or command.startswith("export "):
                continue
            name = words[1] if words[0] == "orbax-bench" else words[0]
            if name in without:
                continue
            more = dict(quicker).get(name, "")
            done = self.installed.run(f"{command} {more}", self.folder, **variables)
            assert done.returncode in (codes or {}).get(name, {0}), (
                command + done.stdout + done.stderr
            )
            self.said.setdefault(name, []).append(done.stdout)
            self.ended_s.setdefault(name, time.monotonic() - self.began)

    def tell(self, capsys, **first):
        """Prints when the first result, verdict or page was there, by the command that made it."""
        said = [f"first {what} {self.ended_s[name]:.0f} s" for what, name in first.items()]
        with capsys.disabled():
            took = f"installation of {self.installed.took_s:.0f} s included"
            print(f"\n{self.page}, {took}: {', '.join(said)}")


def test_the_tour_without_the_checkout(installed, folder):
    """As the README shows it."""
    (suite,) = (one for one in blocks_of("README.md") if one.language == "yaml")
    (folder / "tour.yaml").write_text(suite.text)
    done = installed.run("orbax-bench run tour.yaml --output-directory tour", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^use_ocdbt +save +load \(warm\)", done.stdout, re.MULTILINE), done.stdout
    records = [
        json.loads(path.read_text())
        for path in (folder / "tour").glob("records/*/repeat_*/host_0.json")
    ]
    assert len(records) == 6
    for record in records:
        operations = {sample["operation"] for sample in record["samples"]}
        assert operations == {"save", "save_blocking", "save_background", "load"}
        assert record["state"] | {"digest": None} == {
            "num_bytes": 2 * 8192 * 8192,
            "digest": None,
            "verified": "saved",
        }
        assert record["provenance"]["devices"]["count"] == 8


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_an_ml_engineer_gets_options_and_a_verdict_on_an_upgrade(installed, folder, capsys, whole):
    walk = Walk("ml-engineer", installed, folder)
    little = "--override num_repeats=2 --override execution.warmups=0 --no-limits"
    quicker = {"run": "" if whole else little}
    walk.follow(quicker=quicker, without=() if whole else ("upgrade",), codes={"upgrade": {0, 3}})
    assert re.search(r"(BEST|TIE|UNDECIDED): (.|\n)*use_ocdbt=", walk.said["run"][0])
    assert "In orbax-checkpoint " in walk.said["best"][0]
    assert (folder / "results" / "report.html").exists()
    assert whole == (folder / "upgrade" / "verdicts.html").exists()
    if whole:
        walk.tell(capsys, result="run", page="run", verdict="upgrade")


def test_a_platform_engineer_hears_of_a_regression_and_sees_it_in_the_morning(
    installed,
    folder,
    webhook,
):
    """With workers that measure nothing; those of the second night are slower."""
    walk = Walk("platform-engineer", installed, folder)
    tests = folder / "path" / "tests"
    tests.parent.mkdir()
    tests.symlink_to(ROOT / "tests")
    bench = installed.bin / "orbax-bench"
    real = bench.read_text()
    bench.write_text(f'#!/bin/sh\nexec "{installed.bin}/python" -m tests.support.fake_cli "$@"\n')
    nights = iter((0.0202, 0.2))
    codes = iter((0, 3))
    try:
        for command in walk.commands:
            if command.startswith("export "):
                assert "ORBAX_BENCH_NOTIFY" in command
                continue
            expected = 0
            if " ab " in command:
                (folder / "suite.yaml").write_text(SCRIPTED.format(save_s=next(nights)))
                expected = next(codes)
            done = installed.run(
                command, folder, ORBAX_BENCH_NOTIFY=webhook.url, PYTHONPATH=str(tests.parent)
            )
            assert done.returncode == expected, command + done.stdout + done.stderr
    finally:
        bench.write_text(real)
    assert webhook.states == ["PASS", "REGRESSION"]
    morning = (folder / "runs" / "index.html").read_text()
    assert "REGRESSION" in morning
    assert "2026-03-02/verdicts.html" in morning
    assert (folder / "runs" / "2026-03-02" / "verdicts.html").exists()


@pytest.mark.extended
def test_the_suite_of_the_platform_engineer_measures(installed, folder, capsys):
    walk = Walk("platform-engineer", installed, folder)
    walk.follow(codes={"ab": {0, 3}})
    assert (folder / "runs" / "2026-03-01" / "verdicts.html").exists()
    walk.tell(capsys, verdict="ab", page="site")


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_an_orbax_maintainer_moves_a_suite_and_a_class_over(installed, folder, capsys, whole):
    walk = Walk("orbax-maintainer", installed, folder)
    little = "--override num_repeats=1 --override execution.warmups=0 --no-limits"
    walk.follow(
        quicker={} if whole else {"run": little},
        without=() if whole else ("ab", "python"),
        codes={"ab": {0, 3}},
    )
    assert "authoring as benchmarks_core" in (folder / "save_load.py").read_text()
    assert "generator: save_restore" in (folder / "suite.yaml").read_text()
    assert "3 points" in walk.said["expand"][0]
    assert "SaveLoad[use_ocdbt=true" in walk.said["run"][0]
    if whole:
        walk.tell(capsys, result="run", page="run", verdict="ab")
