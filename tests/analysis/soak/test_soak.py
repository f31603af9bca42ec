"""Growth per save, its interval, and the verdict on a limit."""

import json

import numpy as np
import pytest

from orbax_bench_core.analysis.soak import FEWEST, soak_document, soak_of
from orbax_bench_core.analysis.soak.growth import slope_of, word_of
from orbax_bench_core.analysis.soak.model import Slope
from orbax_bench_core.analysis.soak.reasons import SENTENCES
from orbax_bench_core.answers import SOAK
from orbax_bench_core.config import with_overrides
from orbax_bench_core.measure import ANON, HBM_IN_USE, OPEN_FILES, RSS, THREADS, TIME, Sample
from orbax_bench_core.publishing import publish_answer
from orbax_bench_core.reasons import in_words
from orbax_bench_core.records import Run
from perf.soak.__main__ import SERIES, words_of
from tests.support.shown import assert_tells, terminal


def document_of(found):
    return soak_document(found, "out")


def slope(value, spread=0.01):
    return Slope(per_save=value, low=value - spread, high=value + spread)


def test_a_line_has_its_slope_and_no_width():
    found = slope_of([5 + 0.25 * save for save in range(40)])
    assert (found.per_save, found.low, found.high) == (0.25, 0.25, 0.25)


def test_one_spike_moves_nothing():
    levels = [100.0] * 60
    levels[30] = 900.0
    assert slope_of(levels).per_save == 0


@pytest.mark.parametrize("stride", [1, 3])
def test_the_interval_is_that_of_independent_noise_where_it_is_independent(stride):
    """A Theil-Sen slope of n values has a variance of 12 / n^3 over its efficiency, 3 / pi."""
    count = 360 * stride
    levels = np.random.default_rng(0).normal(size=count) + 0.01 * np.arange(count)
    found, deviation = slope_of(levels.tolist()), np.sqrt(12 / count**3 * np.pi / 3)
    assert found.per_save == pytest.approx(0.01, abs=3 * deviation)
    assert found.low < found.per_save < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.25)


@pytest.mark.slow
def test_of_a_long_series_means_are_taken_and_the_slope_stays_per_save():
    levels = SERIES["leak"](np.random.default_rng(0), np.arange(2050))
    found = slope_of(levels.tolist())
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.01


@pytest.mark.parametrize(
    ("whole", "half", "word"),
    [
        (0.2, 0.2, "LEAK"),
        (0.2, 0.05, "INCONCLUSIVE"),
        (0.05, 0.2, "INCONCLUSIVE"),
        (0.02, 0.03, "PASS"),
        (0.095, 0.02, "INCONCLUSIVE"),
    ],
)
def test_a_verdict_holds_for_all_saves_and_for_the_second_half(whole, half, word):
    assert word_of(slope(whole), slope(half), 0.1) == word


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ar1", "step", "warm_up"])
def test_what_only_looks_like_a_leak_is_none(kind):
    assert words_of(kind, 2)["LEAK"] == 0


@pytest.mark.slow
def test_a_leak_in_noise_is_found():
    assert words_of("leak", 2) == {"LEAK": 2}


@pytest.fixture
def make_life(make_record):
    """Makes the record of one repeat with many saves of one process, each level a function."""

    def make(saves=FEWEST, *, repeat=0, worker="host:1:1", operation="save", of=None, **levels):
        given = {
            RSS: lambda save: 300.0,
            OPEN_FILES: lambda save: 14.0,
            THREADS: lambda save: 30.0,
            **{METRICS[name]: level for name, level in levels.items()},
        }
        samples = [
            Sample(operation, save, metric.name, float(level(save)), metric.unit)
            for save in range(saves)
            for metric, level in given.items()
        ]
        samples += [Sample(operation, save, TIME, 0.1, "s") for save in range(saves)]
        return make_record(of, repeat, samples=tuple(samples), worker=worker)

    return make


METRICS = {
    "rss": RSS,
    "device": HBM_IN_USE,
    "anon": ANON,
    "open_files": OPEN_FILES,
    "threads": THREADS,
}


@pytest.fixture
def judge(make_run, tmp_path):
    def call(*records):
        run = make_run(records, folder=f"run{len(list(tmp_path.iterdir()))}")
        info = run.read_info()
        text = with_overrides(info.suite_text, ["num_repeats=200", "execution.warmups=0"])
        known = {"suite_file": "suites/soak.yaml", "suite_text": text}
        run.write_info(info.model_copy(update=known))
        return soak_of(Run(run))

    return call


def test_memory_that_stays_passes(judge, make_life):
    soak = judge(make_life())
    assert soak.word == "PASS"
    growth = soak.series[0].growth("rss")
    assert (growth.first, growth.whole.per_save, growth.word) == (300, 0, "PASS")


def test_a_soak_that_a_failure_ended_has_not_passed(judge, make_life, make_record):
    failed = make_record(repeat=1, status="failed", error={"type": "OSError", "message": "gone"})
    soak = judge(make_life(), failed)
    assert (soak.word, soak.series[0].word, soak.outcome.incomplete) == (
        "INCONCLUSIVE",
        "PASS",
        True,
    )
    leaking = judge(make_life(rss=lambda save: 10 + save), failed)
    assert leaking.word == "LEAK"


@pytest.mark.parametrize(
    ("level", "grown"),
    [("rss", 1.0), ("device", 1.0 / 1024), ("open_files", 1), ("threads", 1)],
)
def test_whatever_grows_with_each_save_leaks(judge, make_life, level, grown):
    soak = judge(make_life(**{level: lambda save: 10 + grown * save}))
    assert soak.word == "LEAK"
    (leaking,) = (growth for growth in soak.series[0].growths if growth.word == "LEAK")
    assert (leaking.level, leaking.whole.per_save) == (level, pytest.approx(1.0))


def test_a_limit_of_ones_own(make_run, make_life):
    run = Run(make_run([make_life(rss=lambda save: 300 + 0.05 * save)]))
    assert (soak_of(run).word, soak_of(run, 0.01).word) == ("PASS", "LEAK")


def test_too_few_saves_of_one_process_give_no_verdict(judge, make_life):
    soak = judge(make_life(FEWEST - 1))
    assert (soak.word, soak.series[0].needed, soak.series[0].growths) == ("INCONCLUSIVE", 200, ())


def test_of_several_processes_the_longest_is_judged(judge, make_life):
    old = make_life(50, worker="host:1:1", rss=lambda save: 300 + 9 * save)
    new = make_life(FEWEST, repeat=1, worker="host:2:2")
    soak = judge(old, new)
    (series,) = soak.series
    assert (soak.word, series.lives, series.worker) == ("PASS", (50, FEWEST), "host:2:2")
    (note,) = soak.notes
    assert note.code == "several_lives"
    assert note.values == {"point": series.name, "lives": 2, "host": 0, "saves": FEWEST}


def test_notes_of_version_1_say_what_they_said(make_run, make_life):
    run = make_run([make_life(50, worker="host:1:1"), make_life(FEWEST, repeat=1, worker="b")])
    found = soak_of(Run(run))
    now = terminal(document_of(found))
    content = {**found.model_dump(mode="json"), "schema_version": 1}
    content["notes"] = [in_words(SENTENCES, note) for note in found.notes]
    (run.root / SOAK.file).write_text(json.dumps(content))
    assert terminal(document_of(SOAK.read(run))) == now
    assert "2 processes made saves on host 0" in now


def test_saves_of_many_repeats_are_one_series(judge, make_life):
    half = FEWEST // 2
    soak = judge(
        make_life(half, rss=lambda save: 300 + save),
        make_life(half, repeat=1, rss=lambda save: 300 + half + save),
    )
    assert (soak.word, soak.series[0].saves) == ("LEAK", FEWEST)


def test_a_table_has_a_row_per_level(judge, make_life):
    table = judge(make_life(rss=lambda save: 300 + save)).table().set_index("level")
    assert table.loc["rss", "word"] == "LEAK"
    assert table.loc["rss", "per_save"] == 1
    assert list(table.index) == ["rss", "open_files", "threads", "time"]


@pytest.mark.parametrize(
    ("levels", "said", "then"),
    [
        (
            {"rss": lambda save: 300 + save},
            "✗ LEAK: the process keeps 1 MiB (1 to 1) per save",
            "out --limit 1.2",
        ),
        (
            {"rss": lambda save: 300 + 200 * save},
            "✗ LEAK: the process keeps 200 MiB (200 to 200) per save",
            "out --limit 240",
        ),
        (
            {"open_files": lambda save: 10 + save},
            "✗ LEAK: open file descriptors grow by 1 (1 to 1) per save",
            "out --details",
        ),
        ({"rss": lambda save: 300 + 0.02 * save}, "✓ PASS: the process keeps 0.020 MiB", None),
        (
            {"rss": lambda save: 300 + 0.1 * save},
            "more saves would not tell",
            "out --limit 0.12",
        ),
        (
            {"rss": lambda save: 300 + save * (save < 150)},
            "about 400 would tell",
            "suites/soak.yaml --override execution.warmups=0 --saves 400 -o out",
        ),
    ],
)
def test_the_verdict_is_told_with_what_to_do_next(judge, make_life, levels, said, then):
    brief = terminal(document_of(judge(make_life(**levels))))
    assert said in " ".join(brief.split())
    assert brief.endswith(f"\nNext: orbax-bench soak {then}\n" if then else "over 200 saves\n")


def test_after_a_failure_the_headline_says_why_it_is_no_pass(judge, make_life, make_record):
    failed = make_record(repeat=1, status="failed", error={"type": "OSError", "message": "gone"})
    brief = terminal(document_of(judge(make_life(), failed)))
    assert "? INCONCLUSIVE: 1 repeat failed, so this is not a pass; until then the" in brief
    assert "OSError: gone" in brief


def test_every_number_is_told(judge, make_life, make_point):
    levels = {"rss": lambda save: 300 + 0.08 * save, "anon": lambda save: 1000 - save / 3}
    levels["device"] = lambda save: 2.0 + (save % 7) / 1024
    assert_tells(judge(make_life(50, worker="a"), make_life(repeat=1, **levels)), document_of)
    grown = judge(make_life(rss=lambda save: 300 + save * (save < 150)))
    assert grown.series[0].needed is not None
    assert_tells(grown, document_of)
    several = [
        make_life(of=make_point(options={"a": number}, label=f"a={number}"), rss=levels["rss"])
        for number in range(5)
    ]
    assert_tells(judge(*several), document_of)


@pytest.mark.slow
def test_three_files_are_written_and_read_anew_with_another_limit(make_run, make_life):
    run = make_run([make_life(rss=lambda save: 300 + 0.05 * save)])
    assert publish_answer(run, SOAK, limit_mib=0.1).word == "PASS"
    assert publish_answer(run, SOAK, limit_mib=0.01).word == "LEAK"
    assert "LEAK" in (run.root / "soak.md").read_text()
    assert "<svg" in (run.root / "soak.html").read_text()
    assert '"word": "LEAK"' in (run.root / "soak.json").read_text()
