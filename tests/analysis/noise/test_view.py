"""The calibration and the passport in the terminal."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.noise import Passport
from orbax_bench_core.analysis.noise.calibration import AaTest, aa_elements, passport_table
from orbax_bench_core.analysis.noise.passport import Noise
from orbax_bench_core.document import Document, print_document
from tests.support.paired_runs import MONDAY


@pytest.fixture
def said():
    """Returns what elements look like in a terminal."""

    def say(*elements, width=160):
        console = Console(file=io.StringIO(), width=width)
        print_document(Document(title="", elements=elements), console)
        return console.file.getvalue()

    return say


def aa(word="PASS", alpha=0.01):
    return AaTest(
        run_id="run",
        place="/aa/[red]",
        point="p[a=1]",
        word=word,
        alpha=alpha,
        operations=20,
        ratio=1.0,
    )


def test_a_rate_as_promised_is_told(said):
    text = said(*aa_elements([aa()] * 99 + [aa("REGRESSION")]))
    assert "1 of 100 A/A tests (1.0%) said REGRESSION where 1.0% may: nothing speaks" in text
    assert "REGRESSION in run run, p[a=1]: /aa/[red]" in text
    assert "99 PASS, 1 REGRESSION; at most 20 operations per arm" in text


def test_too_many_false_alarms_are_told(said):
    assert "that is too many" in said(*aa_elements([aa("REGRESSION")] * 5))


def test_runs_with_other_levels_are_counted_apart(said):
    text = said(*aa_elements([aa(alpha=0.05), aa(alpha=0.01)]))
    assert "where 1.0% may" in text
    assert "where 5.0% may" in text


def test_without_tests_it_says_how_to_make_some(said):
    assert "orbax-bench ab SUITE --output-directory DIR --aa" in said(*aa_elements([]))


@pytest.mark.parametrize("width", [80, 160])
def test_the_passport_tells_noise_and_what_it_lets_find(said, width):
    noise = Noise(
        operation="save_background",
        storage="ext4",
        cpu="EPYC",
        device="TPU v5e",
        size=2**26,
        sigma=0.05,
        n=80,
        series=2,
        repeat_s=3.0,
        points=(),
    )
    found = (noise, noise.model_copy(update={"operation": "load"}))
    lines = said(passport_table(Passport(made_at=MONDAY, noise=found)), width=width).splitlines()
    assert lines[1] == "ext4, EPYC, TPU v5e, 64 MiB to 256 MiB"
    assert [line.split()[0] for line in lines[2:]] == ["save_background", "load"]
    assert max(map(len, lines)) <= 80
    for cell in ("5 %", "80", "3 s", "11.5 %"):
        assert cell in lines[2]
