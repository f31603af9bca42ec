"""`orbax-bench upgrade`, with releases and comparisons that are known."""

import shlex
from pathlib import Path

import pytest

from orbax_bench_core import environments, provenance
from orbax_bench_core.analysis.verdicts import judge_run, verdicts_document
from orbax_bench_core.environments import EnvironmentFailed, Interpreter
from orbax_bench_core.errors import UserError
from orbax_bench_core.experiments import Comparison, Conclusion
from tests.support.shown import assert_accepted, next_command
from tests.support.verdicts import build_operation, build_point, build_report

RELEASES = ["0.11.12", "0.11.32", "0.12.7", "0.12.8"]


@pytest.fixture
def index(monkeypatch):
    """A package index and environments, of which none is made; returns what was made."""
    from packaging.version import Version

    made = []

    def make(configs, *, folder, say):
        made.extend(config.requirements for config in configs)
        return {config.name: Interpreter("python", {}) for config in configs}

    def check(package, version):
        if version not in RELEASES:
            raise UserError(f"{package} has no release {version}")

    monkeypatch.setattr(environments, "newest_release", lambda _: Version(RELEASES[-1]))
    monkeypatch.setattr(environments, "check_release", check)
    monkeypatch.setattr(environments, "is_made", lambda config, folder: False)
    monkeypatch.setattr(environments, "make_environments", make)
    real = provenance.package_version
    installed = {"orbax-checkpoint": "0.12.7"}
    monkeypatch.setattr(
        provenance, "package_version", lambda name: installed.get(name) or real(name)
    )
    return made


@pytest.fixture
def judged():
    """The verdicts of what is not measured; a test may put others into the list."""
    return [build_report(build_point("p", build_operation("save", "REGRESSION", 1.3)))]


@pytest.fixture
def compared(monkeypatch, judged):
    """Compares nothing; returns the suites that would be compared, and where."""
    found = []

    def measure(self, session, *, lock):
        found.append((session.suite.suite, str(session.directory.root)))

    def conclude(self, run):
        self.verdicts = judged[-1]
        self.show(self.told(verdicts_document(self.verdicts, str(run.root)), run))
        return Conclusion(outcome=self.verdicts.outcome, verdicts=self.verdicts)

    monkeypatch.setattr(Comparison, "measure", measure)
    monkeypatch.setattr(Comparison, "conclude", conclude)
    return found


@pytest.fixture
def upgrade(index, compared, orbax_bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("upgrade", *arguments)


def test_two_releases_are_compared_by_a_suite_of_ours(upgrade, index, compared, tmp_path):
    done = upgrade("--from", "0.11.32", "--to", "0.12.8")
    assert done.code == 3, done.err
    assert index == [("orbax-checkpoint==0.11.32",), ("orbax-checkpoint==0.12.8",)]
    ((suite, root),) = compared
    assert str(suite.arms.candidate) == "environment=orbax-checkpoint-0.12.8"
    assert root == str(tmp_path / "upgrade-0.11.32-0.12.8")
    assert {entry.generator for entry in suite.benchmarks} == {"save_restore", "pytree_checkpoint"}


def test_a_regression_is_followed_by_the_search_for_the_release(upgrade, tmp_path):
    said = upgrade("--from", "0.11.32", "--to", "0.12.8").out
    assert (
        "orbax-checkpoint 0.11.32 and 0.12.8, through save_restore (v1), pytree_checkpoint (v0)"
        in said
    )
    assert_accepted(said)
    name, suite, *words = next_command(said)
    assert name == "bisect"
    assert Path(suite).is_file()
    known = ["--package", "orbax-checkpoint", "--good", "0.11.32", "--bad", "0.12.8"]
    assert words == [*known, "-o", str(tmp_path / "upgrade-0.11.32-0.12.8-bisect")]


@pytest.mark.parametrize("own", [False, True])
def test_what_is_unfinished_goes_on_by_upgrade_on_every_page_and_in_the_terminal(
    index, orbax_bench, tmp_path, monkeypatch, write_suite, own
):
    def measure(self, session, *, lock):
        open_ = build_point("p", build_operation("save", "INCONCLUSIVE", 1.1), next_look=40)
        found = judge_run(session.directory)
        self.verdicts = found.model_copy(update={"points": (open_,), "word": "INCONCLUSIVE"})

    monkeypatch.setattr(Comparison, "measure", measure)
    monkeypatch.chdir(tmp_path)
    suite = ("--suite", str(write_suite())) if own else ()
    both = ["upgrade", *suite, "--from", "0.11.32", "--to", "0.12.8", "--with", "jax==0.10.2"]
    both += ["--override", "execution.warmups=0"]
    said = orbax_bench(*both).out
    assert_accepted(said)
    again = [*both, "-o", str(tmp_path / "upgrade-0.11.32-0.12.8")]
    assert next_command(said) == again
    for page in ("verdicts.md", "verdicts.html"):
        text = Path(again[-1], page).read_text()
        assert shlex.join(["orbax-bench", *again]) in text, page


def test_it_says_beforehand_how_long_that_takes(upgrade):
    said = upgrade("--from", "0.11.32", "--to", "0.12.8").out
    assert "2 points, up to 60 operations per side" in said
    assert "About 1 to 15 minutes with some MiB" in said
    assert "First 2 environments to install, once: a minute or two" in said


def test_the_installed_release_and_the_newest_are_compared_unless_named(upgrade, index):
    upgrade()
    assert index == [("orbax-checkpoint==0.12.7",), ("orbax-checkpoint==0.12.8",)]


def test_a_suite_of_ones_own_keeps_its_requirements(upgrade, index, compared, write_suite):
    suite = write_suite(extra="environments: [{name: mine, requirements: [flax==0.12.0]}]")
    upgrade("--suite", suite, "--with", "jax==0.10.2", "-o", "out")
    assert index[0] == ("orbax-checkpoint==0.12.7", "jax==0.10.2", "flax==0.12.0")
    assert compared[0][0].suite_name == "s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "0.12.9"), "orbax-checkpoint has no release 0.12.9"),
        (("--from", "0.12.8", "--to", "0.11.32"), "--from 0.12.8 is not older than --to 0.11.32"),
        (("--from", "0.12.8"), "orbax-checkpoint 0.12.8 is the newest release: there is nothing"),
        (("--from", "9.9.9"), "orbax-checkpoint has no release 9.9.9"),
        (("--from", "newest"), "--from: 'newest' is no version; write one such as 0.12.8"),
        (("--from", "0.11.2"), "orbax-checkpoint 0.11.12 is the oldest release with the v1"),
        (("--suite", "nowhere.yaml"), "nowhere.yaml: no such file"),
    ],
)
def test_what_cannot_be_compared_is_one_message(upgrade, compared, arguments, message):
    done = upgrade(*arguments)
    assert (done.code, len(done.err.splitlines()), compared) == (2, 1, [])
    assert message in done.err


def test_releases_that_are_made_need_no_index(upgrade, index, compared, monkeypatch):
    def offline(*_):
        raise UserError("cannot ask the package index")

    monkeypatch.setattr(environments, "check_release", offline)
    assert upgrade("--from", "0.11.32", "--to", "0.12.8").code == 2
    monkeypatch.setattr(environments, "is_made", lambda config, folder: True)
    done = upgrade("--from", "0.11.32", "--to", "0.12.8")
    assert (done.code, "to install" in done.out) == (3, False)


def test_an_environment_that_cannot_be_made_ends_it(upgrade, compared, monkeypatch):
    def make(configs, *, folder, say):
        return {configs[0].name: EnvironmentFailed("uv: no"), configs[1].name: None}

    monkeypatch.setattr(environments, "make_environments", make)
    done = upgrade("--from", "0.11.32", "--to", "0.12.8")
    assert (done.code, compared) == (2, [])
    assert done.err == "error: environment orbax-checkpoint-0.11.32 cannot be made: uv: no\n"
