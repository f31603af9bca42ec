"""A choice of options as people see it: the answer, the code for it, and what is left open."""

import json

import pytest

from orbax_bench_core.analysis.best import best, best_document, best_line
from orbax_bench_core.answers import BEST
from orbax_bench_core.config import with_overrides
from orbax_bench_core.measure import RESIDENT_SHARE, TIME, Sample
from orbax_bench_core.pages import share, to_html, to_markdown
from orbax_bench_core.records import RunDirectory, RunFile, StoreTrouble
from tests.support.shown import assert_tells, terminal

TWO = {"use_ocdbt": (True, False), "use_compression": (True, False)}
SETTINGS = "use_ocdbt=false, use_compression=false"


def document_of(found):
    return best_document(found.model_copy(update={"suite_file": "suite.yaml"}), "out")


@pytest.fixture
def found(sweep, stored):
    """A choice with one winner."""
    return best(
        sweep(
            TWO,
            lambda o: 1.0 + 0.3 * o["use_ocdbt"] + o["use_compression"],
            of=lambda o, _: {"inventory": stored(50 if o["use_compression"] else 100)},
        )
    )


def said(folder, **asked):
    """Returns word and sentence of the choice of a sweep."""
    headline = document_of(best(folder, **asked)).headline
    return headline.word, headline.text


def test_every_number_of_a_winner_is_shown(found):
    assert_tells(found, document_of, unless=("weights",))


def test_every_number_of_a_tie_is_shown(sweep, stored):
    def of(options, number):
        if options["use_ocdbt"] and options["use_compression"] and number == 1:
            return {"status": "failed", "times": {}}
        return {"inventory": stored(100, 3), "peak_mb": 100.0 + number}

    folder = sweep({**TWO, "chunk_byte_size": (1, 2, 3)}, lambda _: 1.0, cv=0.2, of=of)
    found = best(folder, goal="save=2,load=1", peak_memory=2**30)
    assert document_of(found).headline.word == "TIE"
    assert_tells(found, document_of, unless=("weights",))
    assert "67.7\xa0% save" in to_html(
        document_of(found.model_copy(update={"cases": (_weighted(found.cases[0]),)}))
    )


def _weighted(case):
    """Returns a case whose goal has other weights."""
    first = case.ranking
    goal = first.goal.model_copy(update={"weights": {"save": 0.677, "load": 0.323}})
    rankings = (first.model_copy(update={"goal": goal}), *case.rankings[1:])
    return case.model_copy(update={"rankings": rankings})


def test_a_winner_says_what_it_takes_and_gains(found):
    word, text = document_of(found).headline.word, document_of(found).headline.text
    assert word == "BEST"
    assert text.startswith(f"`{SETTINGS}` for saves, ")
    (case,) = found.cases
    assert f"{100 * (case.recommendation.against_defaults[0] - 1):+.0f} %" in text
    assert "against Orbax's defaults" in text
    assert "the next settings take +" in text
    assert best_line(found) == document_of(found).headline.said


def test_its_code_is_short_and_the_rest_is_asked_for(found):
    brief = terminal(document_of(found))
    assert "context.array.saving.use_ocdbt = False\n" in brief
    assert "with context: ocp.save(path, tree)\n" in brief
    assert brief.endswith("\nNext: orbax-bench best out --code\n")
    whole = terminal(best_document(found, "out", code=True))
    assert "restored = ocp.load(path, target)" in whole
    assert "- generator: save_restore" in whole
    assert "Unlike the defaults of orbax-checkpoint" in whole


def test_a_tie_says_what_decides_it_and_how_to_go_on(sweep):
    root = sweep({"use_ocdbt": (True, False)}, lambda o: 1.0 + o["use_ocdbt"], rounds=3, cv=0.5)
    run, changed = RunDirectory(root), "execution.warmups=0"
    info = run.read_info()
    text = with_overrides(info.suite_text, [changed])
    run.write_info(info.model_copy(update={"suite_text": text}))
    found = best(root)
    (case,) = found.cases
    document, more = document_of(found), case.recommendation.confidence.missing
    assert document.headline.word == "TIE"
    assert document.headline.text.startswith("2 of 2 settings for saves cannot be told apart, ")
    assert f"about {more} more rounds would decide" in document.headline.text
    again = f"orbax-bench run suite.yaml --override {changed} --output-directory out"
    assert document.following.text == f"{again} --override num_repeats={more + 3}"


@pytest.mark.parametrize(
    ("noise", "took_s"),
    [pytest.param(2.0, 10.0, id="many times the rounds"), pytest.param(0.5, 4e3, id="days")],
)
def test_rounds_that_nobody_would_measure_are_no_advice(sweep, noise, took_s):
    folder = sweep(
        {"use_ocdbt": (True, False)},
        lambda o: 1.0 + o["use_ocdbt"],
        rounds=4,
        cv=noise,
        of=lambda *_: {"duration_s": took_s},
    )
    found = best(folder)
    sure, document = found.cases[0].recommendation.confidence, document_of(found)
    assert document.headline.word == "TIE"
    assert "more rounds" not in terminal(document)  # the page has them
    within = f"; no other is over {share(sure.within)} better, at a risk of 5 %"
    assert within in document.headline.text
    assert document.following.text == "orbax-bench best out --code"


def test_the_headline_names_the_one_to_take_which_need_not_be_the_fastest(sweep, stored):
    folder = sweep(
        TWO,
        lambda _: 1.0,
        cv=0.004,
        of=lambda o, _: {"inventory": stored(50 if o["use_compression"] else 100, 3)},
    )
    found = best(folder)
    (case,) = found.cases
    assert case.ranking.places[0].point_id != case.recommendation.point_id
    assert case.recommendation.chosen_by == "size and defaults"
    assert "take `use_ocdbt=true, use_compression=true`, 996 ms" in document_of(found).headline.text
    assert terminal(document_of(found)).splitlines()[1].startswith("take ")


def test_loads_say_what_their_cache_was(sweep):
    share = Sample("load", 0, RESIDENT_SHARE.name, 1.0, "ratio")

    def of(options, _):
        time = Sample("load", 0, TIME, 1.0 + options["use_ocdbt"], "s")
        return {"samples": (time, share)}

    found = best(sweep({"use_ocdbt": (True, False)}, lambda _: 1.0, of=of))
    assert " for warm loads, " in document_of(found).headline.text
    assert "`--override execution.cache=cold`" in to_markdown(document_of(found))


@pytest.mark.parametrize("option", ["restore_concurrent_gb", "restore_devices"])
def test_an_option_of_loads_is_no_advice_for_a_save(sweep, option):
    folder = sweep(
        {"use_ocdbt": (True, False), option: (1, 2)},
        lambda o: 1.0 + o["use_ocdbt"],
        load=lambda o: o[option] + o["use_ocdbt"],
    )
    word, text = said(folder)
    assert (word, text.startswith("`use_ocdbt=false` for saves, ")) == ("BEST", True)
    assert f"`{option}` cannot change it" in text
    (case,) = best(folder).cases
    assert [each.options for each in case.effects.main] == [("use_ocdbt",)]
    assert f"`use_ocdbt=false, {option}=1` for loads" in said(folder, goal="load")[1]


def test_a_sweep_of_what_cannot_change_the_goal_has_nothing_to_choose(sweep):
    word, text = said(sweep({"restore_concurrent_gb": (1.0, 2.0)}, lambda _: 1.0))
    assert word == "NOTHING TO CHOOSE"
    assert text == ("`restore_concurrent_gb` cannot change saves")


def test_a_file_of_the_version_before_is_made_again(sweep):
    folder = sweep(TWO, lambda o: 1.0 + o["use_ocdbt"])
    run = RunDirectory(folder)
    (run.root / RunFile.BEST).write_text(json.dumps({"schema_version": 1, "cases": []}))
    assert BEST.read(run) == best(folder)


def test_flags_of_version_2_say_what_they_said(sweep):
    def of(options, number):
        trouble = StoreTrouble(operation="save", occurrence=0, kind="throttled", count=3)
        return {"store_troubles": (trouble,) if number == 0 else ()}

    run = RunDirectory(sweep(TWO, lambda o: 1.0 + o["use_ocdbt"], of=of))
    content = {**best(str(run.root)).model_dump(mode="json"), "schema_version": 2}
    (remark,) = content["cases"][0]["remarks"]
    assert remark["flags"] == [{"code": "storage_trouble", "values": {"name": "save"}}]
    now = to_markdown(document_of(best(str(run.root))))
    remark["flags"] = ["trouble with storage in save"]
    (run.root / RunFile.BEST).write_text(json.dumps(content))
    assert to_markdown(document_of(BEST.read(run))) == now
    assert "had trouble with storage in save; without them" in now
