"""The comparison with golden data shows what changed, and says how to accept it."""

import pytest

from tests.golden import support


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(support, "DATA", tmp_path)
    return tmp_path


def test_a_rewritten_file_is_what_is_wanted_from_then_on(data):
    support.check("folder/a b.txt", "one\r\ntwo\n", rewrite=True)
    support.check("folder/a b.txt", "one\r\ntwo\n")


def test_a_difference_is_shown_with_the_command_that_accepts_it(data):
    support.check("a.txt", "one\ntwo\nthree\n", rewrite=True)
    with pytest.raises(AssertionError) as failed:
        support.check("a.txt", "one\n2\nthree\n")
    message = str(failed.value)
    assert "-two\n+2\n" in message
    assert support.REWRITE in message


def test_a_long_difference_is_cut(data):
    with pytest.raises(AssertionError, match=r"and 43 more lines"):
        support.check("a.txt", "".join(f"{number}\n" for number in range(100)))


def test_other_line_ends_are_a_difference(data):
    support.check("a.txt", "one\n", rewrite=True)
    with pytest.raises(AssertionError):
        support.check("a.txt", "one\r\n")
