"""Arms of a comparison from flags of the command line."""

import pytest

from orbax_bench_core.analysis.verdicts import judge_run
from orbax_bench_core.cli.arm_flags import with_arms
from orbax_bench_core.config import parse_suite
from orbax_bench_core.experiments import Comparison
from tests.support.fake_cli import fake_bench
from tests.support.scripted import NAME as SCRIPTED
from tests.support.shown import next_command
from tests.support.verdicts import build_operation, build_point

SUITE = "suite_name: s\nbenchmarks:\n- {generator: g, options: {}}\n"


def loaded(extra=""):
    return parse_suite(SUITE + extra, "suite.yaml")


def test_flags_give_a_suite_arms():
    found = with_arms(loaded(), [], ["use_ocdbt=false", "processes=2"], same=False).suite
    assert found.arm("candidate").options == {"use_ocdbt": False}
    assert found.arm("candidate").processes == 2
    assert found.arm("baseline").options == {}


def test_what_flags_add_is_in_the_text_so_that_another_process_reads_it_too():
    text = with_arms(loaded(), ["a=1"], ["a=[2]"], same=False).text
    assert parse_suite(text).suite.arm("candidate").options == {"a": [2]}
    assert text.startswith(SUITE)


def test_a_suite_beside_itself_has_a_worker_per_slot_unless_it_says_otherwise():
    found = with_arms(loaded(), [], [], same=True).suite
    assert (found.gate.lives, found.arms.baseline) == ("always", found.arms.candidate)
    kept = with_arms(loaded("gate: {lives: auto}\n"), [], [], same=True).suite
    assert kept.gate.lives == "auto"


SAME = "arms: {candidate: {options: {use_ocdbt: true}}}\n"  # as it is without


@pytest.mark.parametrize(
    ("extra", "flags"),
    [
        (SAME, ()),
        ("arms: {baseline: {}, candidate: {}}\n", ()),
        ("", ("--candidate", "use_ocdbt=true")),
        ("", ("--baseline", "use_zarr3=false", "--candidate", "use_zarr3=false")),
    ],
)
def test_arms_that_measure_the_same_are_refused_before_anything_is_written(
    orbax_bench, write_suite, tmp_path, extra, flags
):
    suite = write_suite(extra=extra)
    ended = orbax_bench("ab", suite, "-o", tmp_path / "out", *flags)
    assert ended.code == 2
    assert "both arms measure the same" in ended.err
    assert "--aa" in ended.err
    assert not (tmp_path / "out").exists()


def test_an_arm_whose_value_is_no_yaml_is_refused_by_its_flag(orbax_bench, write_suite, tmp_path):
    ended = orbax_bench("ab", write_suite(), "-o", tmp_path / "out", "--candidate", "use_ocdbt=[")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: --candidate use_ocdbt=[: the value cannot be read")


def test_a_pipeline_refuses_arms_that_measure_the_same(orbax_bench, write_suite, tmp_path):
    plan = ("step", "plan-sweep", "--output-directory", tmp_path / "out")
    refused = orbax_bench(*plan, write_suite(extra=SAME))
    assert refused.code == 2
    assert "both arms measure the same" in refused.err
    assert orbax_bench(*plan, write_suite(extra="arms: {}\n")).code == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--candidate", "use_ocdbt=false"),
        ("--baseline", "use_zarr3=false"),
        ("--aa", "--override", "execution.warmups=0", "--override", "gate.margin=0.3"),
    ],
)
def test_the_command_that_goes_on_has_the_flags_that_say_the_arms(
    orbax_bench, write_suite, tmp_path, monkeypatch, flags
):
    def measure(self, session, *, lock):
        open_ = build_point("p", build_operation("save", "INCONCLUSIVE", 1.1), next_look=40)
        found = judge_run(session.directory)
        self.verdicts = found.model_copy(update={"points": (open_,), "word": "INCONCLUSIVE"})

    monkeypatch.setattr(Comparison, "measure", measure)
    suite, folder = str(write_suite()), str(tmp_path / "out")
    said = orbax_bench("ab", suite, "-o", folder, *flags).out
    assert next_command(said) == ["ab", suite, *flags, "-o", folder]


@pytest.mark.slow
def test_the_same_is_compared_on_purpose_and_said_first(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        f"suite_name: s\nbenchmarks:\n- {{generator: {SCRIPTED}, options: {{}}}}\n"
        "arms: {candidate: {options: {save_s: 0.02}}}\ngate: {looks: [4]}\n"  # as it is without
    )
    ended = fake_bench("ab", suite, "-o", tmp_path / "out", "--no-lock", "--aa")
    assert ended.code in (0, 4)
    assert "Both measure the same" in ended.out + ended.err
