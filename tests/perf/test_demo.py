"""The demo and the CI example end in PASS, by the times that they took."""

import pytest

from perf import demo


@pytest.mark.slow
@pytest.mark.parametrize("suite", demo.SUITES)
def test_recorded_times_pass_by_the_rules_of_the_suite(suite):
    words = demo.replay(suite, replays=20)
    assert words["PASS"] >= demo.TARGET * 20, words


@pytest.mark.parametrize("suite", demo.SUITES)
def test_what_was_recorded_is_long_enough_for_every_look(suite):
    runs = demo.recorded(suite)
    assert len(runs) >= 2
    assert all(len(seconds) >= 200 for run in runs for seconds in run.values())


@pytest.mark.slow
def test_default_rules_would_leave_the_demo_open(tmp_path, monkeypatch):
    text = demo.SUITES["demo"].read_text()
    narrow = tmp_path / "narrow.yaml"
    narrow.write_text(text[: text.index("gate:")])
    monkeypatch.setattr(demo, "SUITES", {"demo": narrow})
    words = demo.replay("demo", replays=4)
    assert words["PASS"] < 4


def test_too_few_that_pass_are_an_error(capsys, monkeypatch):
    monkeypatch.setattr(demo, "TARGET", 1.01)
    assert demo.main(["--replays", "2"]) == 1
    assert "demo: of 2 replays PASS 2" in capsys.readouterr().out
