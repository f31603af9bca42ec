"""The choice as people read it: on a terminal, above a sweep's tables, and on pages."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.best import best, best_document, best_section
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.measure import RESIDENT_SHARE, TIME, Sample
from tests.support.figures import undrawn  # noqa: F401 - fixture
from tests.support.pages import assert_whole

TWO = {"use_ocdbt": (True, False), "use_compression": (True, False)}


@pytest.fixture
def found(sweep, stored):
    return best(
        sweep(
            TWO,
            lambda o: 1.0 + 0.3 * o["use_ocdbt"] + o["use_compression"],
            of=lambda o, _: {"inventory": stored(50 if o["use_compression"] else 100)},
        )
    )


def printed(document, width=200):
    console = Console(
        file=io.StringIO(), width=width, force_terminal=width == 80, color_system=None
    )
    print_document(document, console)
    return console.file.getvalue()


def test_the_command_ends_with_the_answer_below_its_code(found):
    text = printed(best_document(found))
    last = text.rstrip().splitlines()[-1]
    assert last.startswith(
        "Best for the time of a save: use_ocdbt=false, use_compression=false save_restore["
    )
    assert "context.array.saving.use_ocdbt = False" in text
    assert "unlike orbax-checkpoint" in text
    assert "# Orbax v0, CheckpointManager: the same options, not measured by this run" in text
    assert "# Orbax v0, Checkpointer: the same options, not measured by this run" in text
    assert "use_compression=false takes 0." in text


def test_options_are_whole_at_80_columns(sweep):
    names = ("use_ocdbt", "use_zarr3", "use_compression", "enable_pinned_host_transfer")
    options = dict.fromkeys(names, (True, False))
    folder = sweep(options, lambda given: 1.0 + given["use_ocdbt"], rounds=2)
    lines = printed(best_document(best(folder)), 80).partition("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 80
    for name in names:
        for value in ("true", "false"):
            assert sum(f"{name}={value}" in line for line in lines) >= 4
    first = next(number for number, line in enumerate(lines) if line.startswith("   1"))
    assert "1.000x" in "".join(lines[first : first + 3])


def test_a_terminal_says_what_its_rows_are_ranked_by_and_what_its_remarks_are(found):
    lines = [line.rstrip() for line in printed(best_document(found), 80).splitlines()]
    assert lines[0].startswith("By time of a save: it alone is best of 4 points")
    assert lines[1].strip() == "in 6 worker processes"
    assert lines[2].split()[:2] == ["rank", "options"]
    assert "  What speaks for use_ocdbt=false, use_compression=false:" in lines
    assert "  The run says nothing of:" in lines


def test_a_sweep_shows_answer_ties_effects_and_where_there_is_more(found):
    text = printed(best_section(found, "/runs/out"))
    assert text.startswith("Best for the time of a save: use_ocdbt=false, use_compression=false")
    assert "it alone is best of 4 points at the 5 % level, over 6 rounds" in text
    assert "orbax-bench best /runs/out" in text
    assert len(text.splitlines()) < 12


def test_a_tie_is_the_headline_and_says_what_would_decide_it(sweep):
    noisy = sweep({"use_ocdbt": (True, False)}, lambda o: 1.0 + o["use_ocdbt"], rounds=3, cv=0.5)
    found = best(noisy)
    (case,) = found.cases
    assert [place.tied for place in case.ranking.places] == [True, True]
    more = case.recommendation.confidence.missing
    last = printed(best_document(found)).rstrip().splitlines()[-1]
    assert last.startswith(
        "Tie for the time of a save: 2 of 2 settings; fastest seen: use_ocdbt=false; to decide "
        f"takes about {more} more rounds (--override num_repeats={more + 3}) save_restore["
    )
    assert "tie with the fastest seen at the 5 % level" in printed(best_document(found))
    assert "Best for" not in printed(best_section(found, "out")) + to_markdown(best_document(found))


def test_ties_that_are_near_enough_say_at_which_risk(sweep):
    text = printed(best_document(best(sweep(TWO, lambda _: 1.0, cv=0.001))))
    last = text.rstrip().splitlines()[-1]
    assert last.startswith("Tie for the time of a save: 4 of 4 settings; fastest seen: ")
    assert "; risk that another is over 5 % better: below 1 %" in last


def test_one_round_says_what_would_decide(sweep):
    last = (
        printed(best_document(best(sweep(TWO, lambda _: 1.0, rounds=1)))).rstrip().splitlines()[-1]
    )
    assert "which are best is unknown; fastest seen: " in last
    assert "to decide takes 3 rounds or more (num_repeats) in order: interleaved" in last


def test_the_ranking_of_loads_says_what_their_cache_was(sweep):
    share = Sample("load", 0, RESIDENT_SHARE.name, 1.0, "ratio")

    def of(options, _):
        samples = [Sample(name, 0, TIME, 1.0 + options["use_ocdbt"], "s") for name in ("load",)]
        return {"samples": (*samples, share)}

    found = best(sweep({"use_ocdbt": (True, False)}, lambda _: 1.0, of=of))
    (case,) = found.cases
    assert case.ranking.cache == "warm"
    text = printed(best_document(found))
    assert text.startswith("By time of a load (warm): ")
    assert "`--override execution.cache=cold`" in text


def test_the_headline_says_why_it_recommends_another_than_the_table_has_first(sweep, stored):
    found = best(
        sweep(
            TWO,
            lambda _: 1.0,
            cv=0.004,
            of=lambda o, _: {"inventory": stored(50 if o["use_compression"] else 100, 3)},
        )
    )
    (case,) = found.cases
    names = {point.point_id: point.options for point in case.points}
    first, chosen = case.ranking.places[0].point_id, case.recommendation.point_id
    assert first != chosen
    assert names[chosen]["use_compression"]
    text = printed(best_document(found))
    by = case.recommendation.chosen_by
    assert f"; recommended by {by}: use_ocdbt=" in text.rstrip().splitlines()[-1]
    rows = [line for line in map(str.rstrip, text.splitlines()) if first in line or chosen in line]
    assert rows[0].endswith(" chosen")
    assert chosen in rows[0]
    assert rows[1].lstrip().startswith("1 ")


def test_pairs_of_options_are_counted_and_not_pairs_of_values(sweep):
    values = {"chunk_byte_size": (1, 2, 3), "save_concurrent_gb": (1.0, 2.0, 3.0)}
    found = best(sweep(values, lambda o: o["chunk_byte_size"] ** o["save_concurrent_gb"], cv=0.001))
    assert "1 of 1 pair of options matter" in printed(best_document(found))


def test_a_page_counts_pairs_of_options_that_do_not_matter_and_not_pairs_of_values(sweep):
    values = {"chunk_byte_size": (1, 2, 3), "save_concurrent_gb": (1.0, 2.0, 3.0)}
    found = best(sweep(values, lambda _: 1.0, cv=0.001))
    assert "1 pair of options shows no interaction that matters" in to_html(best_document(found))


@pytest.mark.parametrize("option", ["restore_concurrent_gb", "restore_devices"])
def test_an_option_of_loads_is_no_advice_for_a_save(sweep, option):
    options = {"use_ocdbt": (True, False), option: (1, 2)}
    folder = sweep(
        options,
        lambda o: 1.0 + o["use_ocdbt"],
        load=lambda o: o[option] + o["use_ocdbt"],
    )
    text = printed(best_document(best(folder)))
    assert (
        text.rstrip()
        .splitlines()[-1]
        .startswith(f"Best for the time of a save: use_ocdbt=false; {option} cannot change it")
    )
    assert f"{option}=2 takes" not in text
    assert "What speaks for use_ocdbt=false:" in text
    of_load = printed(best_document(best(folder, goal="load")))
    assert f"{option}=2 takes" in of_load
    assert f"use_ocdbt=false, {option}=1 save_restore[" in of_load


def test_a_sweep_of_what_cannot_change_the_goal_has_nothing_to_choose(sweep):
    found = best(sweep({"restore_concurrent_gb": (1.0, 2.0)}, lambda _: 1.0))
    assert (
        printed(best_document(found))
        .rstrip()
        .splitlines()[-1]
        .startswith(
            "Nothing to choose for the time of a save; restore_concurrent_gb cannot change it"
        )
    )


def test_a_benchmark_without_code_says_why(sweep):
    options = {"tier": ("local",), "save_interval_steps": (10, 20)}
    benchmark = "training_job"
    found = best(sweep(options, lambda o: o["save_interval_steps"], benchmark=benchmark))
    assert "no code of Orbax: its tier is a manager of local disks" in printed(best_document(found))
    assert "No code of Orbax: its tier" in to_markdown(best_document(found))


def test_pages_are_whole_and_say_what_was_not_measured(found, undrawn):
    document = best_document(found)
    page, text = to_html(document), to_markdown(document)
    assert_whole(page)
    for said in ("not measured: blocking, memory", "Pareto front of save, load, bytes", "is tied"):
        assert said in text or said == "is tied"
    assert "What the run says nothing of" in page


def test_a_user_s_values_are_no_markup(sweep):
    folder = sweep({"use_ocdbt": ("<b>[red]|", "x")}, lambda _: 1.0, rounds=2)
    document = best_document(best(folder))
    assert "<b>[red]|" in printed(document)
    assert "<b>[red]" not in to_html(document)


def test_a_page_draws_its_figures(found):
    page = to_html(best_document(found))
    assert page.count("<svg") == 2
