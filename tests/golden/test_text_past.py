"""Views of many runs: baselines, history, calibration, async study."""

import pytest

from tests.golden.text_support import NASTY, shell, tmp_path, transcript  # noqa: F401
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401
from tests.support.paired_runs import make_nightly, make_paired_run, make_separate_run  # noqa: F401


@pytest.fixture
def filled(shell, make_separate_run):
    """A registry `reg` with captures of six runs; returns what the commands said."""
    said = []
    for day in range(6):
        make_separate_run(day)
        flags = ["--promote", "--note", "the first"] if day == 0 else []
        said.append(
            shell("baseline", "capture", "reg", f"day{day:03}", "--label", f"v{day}", *flags)
        )
    return said


def test_capturing_and_promoting(shell, filled, golden):
    later = [
        shell("baseline", "promote", "reg", "--to", "v4", "--note", "why"),
        shell("baseline", "promote", "reg", "--to", "previous"),
        shell("baseline", "promote", "reg", "--to", "v2", "--point", "nothing"),
        shell("baseline", "promote", "reg", "--to", "v9"),
    ]
    golden("text/baseline/capture.txt", transcript(filled[0], filled[1], *later))


@pytest.mark.slow
def test_history_of_ratios(shell, make_nightly, make_point, golden):
    pair = make_point(label=NASTY, candidate=make_point(label=NASTY))
    ratios, versions = [1.0] * 12 + [1.2] * 8, ["0.12.7"] * 12 + ["0.12.8"] * 8
    make_nightly(ratios, versions, pair=pair, blocks=2)
    golden("text/history/changed.txt", shell.views("history", "."))
    assert shell("history", "day*", "--html", "page.html").code == 0
    golden("text/history/changed.html.txt", shell.page("page.html"))


@pytest.mark.slow
def test_async_study(shell, make_sizes, golden):
    make_sizes()
    golden("text/async_study/sizes.txt", shell.views("async-study", "run"))
    golden("text/async_study/async_study.md", shell.read("run/async_study.md"))
    golden("text/async_study/async_study.html.txt", shell.page("run/async_study.html"))
