"""Golden tests: what users already hold, word for word, through any redesign."""

import pytest

from tests.golden import support


def pytest_addoption(parser):
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="Write what the golden tests find as their data, for a review of the diff.",
    )


@pytest.fixture(autouse=True)
def anywhere(monkeypatch):
    """What an image says of itself would be in results; a terminal's width in what is shown."""
    for name in ("ORBAX_BENCH_IMAGE", "ORBAX_BENCH_REVISION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(scope="session")
def golden(request):
    """Compares a text with the file of that name in the golden data."""
    # A run of all tests begins above this folder and does not know the option.
    rewrite = request.config.getoption("--rewrite-golden", default=False)

    def compare(name: str, text: str) -> None:
        __tracebackhide__ = True
        support.check(name, text, rewrite=rewrite)

    return compare
