"""Comparisons of a series, `bisect` and `calibrate`: what their pages say to do next."""

import shlex

import pytest

from orbax_bench_core import environments
from orbax_bench_core.analysis.verdicts import judge_run
from orbax_bench_core.environments import Interpreter
from orbax_bench_core.experiments import Comparison
from tests.support.verdicts import build_operation, build_point


def commands(suite, folder):
    """Yields each command of a series, and its first comparison."""
    for version in ("1.0", "1.1"):
        (folder / f"planted-{version}-py3-none-any.whl").touch()
    ends = ("--package", "planted", "--good", "1.0", "--bad", "1.1", "--wheels", folder)
    yield ("bisect", suite, *ends, "--with", "jax==0.10.2", "--only-wheels"), "1.0_and_1.1"
    passport = folder / "passport.json"
    yield ("calibrate", "--suite", suite, "--minutes", "0", "--save", passport), "aa_000"


@pytest.mark.parametrize("number", [0, 1], ids=["bisect", "calibrate"])
@pytest.mark.parametrize("settled", [False, True])
def test_a_comparison_of_a_series_goes_on_by_the_command_of_the_series_or_not_at_all(
    orbax_bench, write_suite, tmp_path, monkeypatch, number, settled
):
    def measure(self, session, *, lock):
        known = {"settled": settled, "time_word": "INCONCLUSIVE", "operations": 20}
        save = build_operation("save", "INCONCLUSIVE", 1.1, verdict={**known, "more_blocks": 1})
        open_ = build_point("p", save, settled=settled, next_look=None if settled else 40)
        found = judge_run(session.directory)
        self.verdicts = found.model_copy(update={"points": (open_,), "word": "INCONCLUSIVE"})

    def make(configs, *, folder, say):
        return {config.name: Interpreter("python", {}) for config in configs}

    monkeypatch.setattr(Comparison, "measure", measure)
    monkeypatch.setattr(environments, "make_environments", make)
    words, first = list(commands(write_suite(), tmp_path))[number]
    place = tmp_path / "out"
    orbax_bench(*words, "-o", place)
    page = (place / first / "verdicts.md").read_text()
    again = shlex.join(["orbax-bench", *map(str, words), "-o", str(place)])
    assert (again in page) is not settled
    assert "orbax-bench ab " not in page
    assert ("operations per side would probably tell, but" in page) is settled
