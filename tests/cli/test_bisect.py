"""`orbax-bench bisect`, with comparisons whose verdicts are known."""

import datetime
import json
import types

import pytest

from orbax_bench_core.analysis.releases import ReleaseSearch, search_document
from orbax_bench_core.analysis.verdicts import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.answers import BISECT
from orbax_bench_core.cli import series
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import Verdict
from orbax_bench_core.reasons import because
from tests.support.shown import assert_tells

SUITE = """\
suite_name: releases
benchmarks: [{generator: save_restore, options: {}}]
"""
ARMS = """\
environments:
- {name: old, requirements: [planted==1.0]}
- {name: new, requirements: [planted==9.9, jax==0.10.2]}
arms:
  baseline: {environment: old}
  candidate: {environment: new, options: {use_ocdbt: false}, processes: 2}
"""


@pytest.fixture
def wheels(tmp_path):
    """A folder of wheels, by name only."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("1.0", "1.1", "1.2", "1.3", "1.10"):
        (folder / f"planted-{version}-py3-none-any.whl").touch()
    return folder


@pytest.fixture
def bisect(monkeypatch, orbax_bench, tmp_path, wheels):
    """Runs the search; `word` gives the verdict of each two releases. Returns what was measured."""
    made = []

    def run(word, extra="", more=()):
        class Known:
            def __init__(self, experiment, suite, directory, how):
                self.experiment = experiment
                info = types.SimpleNamespace(gate=None, designs={})
                self.session = types.SimpleNamespace(directory=directory, pairs=(), info=info)
                self.suite = suite.suite
                made.append(self)
                self.folder = directory.rsplit("/", 1)[-1]
                names = [environment.name for environment in self.suite.environments]
                self.pair = tuple(name.rsplit("-")[-1] for name in reversed(names))

            def measure(self):
                self.experiment.verdicts = report(word(*self.pair))

        monkeypatch.setattr(series, "Measurement", Known)
        monkeypatch.setattr(series.passports, "usual_minutes", lambda *_: (2.0, 15.0))
        monkeypatch.setattr(series, "publish_verdicts", lambda run, found: "verdicts.html")
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE + extra)
        done = orbax_bench(
            *("bisect", suite, "-o", tmp_path / "out", "--package", "planted", "--good", "1.0"),
            *("--bad", "1.10", "--wheels", wheels, "--only-wheels", *more),
        )
        return done, made

    return run


def report(word):
    ratio = {"REGRESSION": 1.5, "PASS": 1.0}.get(word, 1.1)
    verdict = Verdict(
        word="INCONCLUSIVE" if word == "FAILED" else word,
        ratio=ratio,
        reason=because("no_block") if word == "INCONCLUSIVE" else (),
        low=ratio - 0.05,
        high=ratio + 0.05,
    )
    operation = OperationVerdict(
        operation="save", primary=True, verdict=verdict, health={}, times={}
    )
    point = PointVerdict(
        point_id="p",
        point="save_restore[]",
        word=verdict.word,
        failed=word == "FAILED",
        reason="it broke" if word == "FAILED" else "",
        mode="paired",
        operations=(operation,),
    )
    return VerdictReport(
        suite="s",
        run_id="r",
        baseline="",
        candidate="",
        word=verdict.word,
        gate=GateConfig(),
        points=(point,),
        judged_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    )


def step_at_1_3(release, against):
    slow = ("1.3", "1.10")
    return "REGRESSION" if release in slow and against not in slow else "PASS"


def test_a_release_is_named_with_exit_code_3_and_a_page(bisect, tmp_path):
    done, _ = bisect(step_at_1_3)
    assert done.code == 3, done.err
    said = "planted 1.3 is the first release in which save regressed, 1.2 the last good one"
    assert f"✗ REGRESSION: {said}: save +50 % (+45 to +55 %)" in done.out
    assert "\nNext: pip install planted==1.2\n" in done.out
    answer = json.loads((tmp_path / "out" / "bisect.json").read_text())
    assert (answer["conclusion"], answer["last_good"], answer["first_bad"]) == (
        "named",
        "1.2",
        "1.3",
    )
    assert answer["steps"][0]["ratios"][0]["ratio"] == 1.5
    assert answer["steps"][-1]["purpose"] == "confirm"
    assert "<svg" in (tmp_path / "out" / "bisect.html").read_text()
    assert "| 1.3 | 1.2 | confirmation |" in (tmp_path / "out" / "bisect.md").read_text()
    assert_tells(ReleaseSearch.model_validate(answer), lambda found: search_document(found, "out"))


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("PASS", 0, "nothing to search for: save +0 % (-5 to +5 %)"),
        ("INCONCLUSIVE", 4, "so no search: save +10 % (+5 to +15 %); save: no block is complete"),
        ("FAILED", 1, "planted 1.10 could not be compared with 1.0: it broke"),
    ],
)
def test_ends_without_a_regression_have_exit_codes_of_their_own(bisect, word, code, said, tmp_path):
    done, made = bisect(lambda release, against: word)
    assert (done.code, len(made)) == (code, 1)
    assert said in " ".join(done.out.split())
    answer = json.loads((tmp_path / "out" / BISECT.file).read_text())
    reason = answer["steps"][0].pop("reason")
    assert [each["code"] for each in reason] == {"PASS": [], "FAILED": ["told"]}.get(
        word, ["no_block"]
    )
    answer["steps"][0]["why"] = "it had a sentence"  # as earlier files have
    earlier = ReleaseSearch.model_validate(answer)
    assert earlier.steps[0].reason == because("told", said="it had a sentence")


def test_releases_left_open_are_a_range_with_exit_code_3(bisect):
    def word(release, against):
        return "INCONCLUSIVE" if release in {"1.1", "1.2"} else step_at_1_3(release, against)

    done, _ = bisect(word)
    assert done.code == 3
    said = "save regressed between planted 1.0 and 1.3 (save +50 % (+45 to +55 %)); no single"
    assert f"{said} release can be named" in done.out
    assert "there is no verdict on 1.1, 1.2" in done.out


def test_how_long_it_takes_is_said_before_it_starts_and_after_the_first(bisect):
    done, _ = bisect(step_at_1_3)
    before, _, after = done.out.partition("planted 1.10 against 1.0")
    assert "4 comparisons if one release is behind it, 10 at most, of about 2 to " in before
    assert "15 minutes each; the first of them" in before
    assert "About 3 comparisons more; as long as the first:" in after


def test_a_release_in_between_must_rule_out_half_of_the_regression(bisect):
    _, made = bisect(step_at_1_3)
    margins = {known.folder: known.suite.gate.margin for known in made}
    assert margins["1.0_and_1.10"] == 0.15
    assert margins["1.0_and_1.2"] == pytest.approx(1.45**0.5 - 1)
    assert margins["1.2_and_1.3"] == 0.15
    assert all(known.suite.gate.primary == ("save",) for known in made[1:])


def test_the_release_after_the_good_one_is_confirmed_in_a_directory_of_its_own(bisect):
    done, made = bisect(lambda release, against: "REGRESSION" if against == "1.0" else "PASS")
    assert done.code == 3
    assert [known.folder for known in made][-2:] == ["1.0_and_1.1", "1.0_and_1.1_again"]
    assert made[-1].suite.gate.margin == 0.15


def test_of_a_suite_with_arms_both_sides_are_the_candidate(bisect):
    done, made = bisect(step_at_1_3, ARMS)
    assert done.code == 3, done.err
    for name in ("baseline", "candidate"):
        arm = made[0].suite.arm(name)
        assert (arm.options, arm.processes) == ({"use_ocdbt": False}, 2)
    requirements = [environment.requirements for environment in made[0].suite.environments]
    assert [each[0].rsplit("/")[-1] for each in requirements] == [
        "planted-1.0-py3-none-any.whl",
        "planted-1.10-py3-none-any.whl",
    ]
    assert all(each[1:] == ("jax==0.10.2",) for each in requirements)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ("environments: [{name: here, interpreter: /py}]\n", "'here' is an interpreter"),
        (
            "environments: [{name: a, requirements: [x==1]}, {name: b, requirements: [x==2]}]\n",
            "sweeps 2 environments (a, b), and bisect puts releases into one",
        ),
    ],
)
def test_an_environment_that_takes_no_release_is_refused(bisect, extra, problem):
    done, made = bisect(step_at_1_3, extra)
    assert (done.code, made) == (2, [])
    assert problem in done.err
