"""The choice as people read it: on a terminal, above a sweep's tables, and on pages."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.best import best, best_document, best_section
from orbax_bench_core.document import print_document, to_html, to_markdown
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
    assert lines[1].split()[:2] == ["rank", "options"]
    assert "  What speaks for use_ocdbt=false, use_compression=false:" in lines
    assert "  The run says nothing of:" in lines


def test_a_sweep_shows_answer_ties_effects_and_where_there_is_more(found):
    text = printed(best_section(found, "/runs/out"))
    assert text.startswith("Best for the time of a save: use_ocdbt=false, use_compression=false")
    assert "it alone is best of 4 points at the 5 % level, over 6 rounds" in text
    assert "orbax-bench best /runs/out" in text
    assert len(text.splitlines()) < 12


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
