"""Reference pages that follow from the code."""

import pytest

from website import generated
from website.suite import suite_page

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", generated.PAGES)
def test_a_page_is_what_the_code_says(name):
    assert (generated.DOCS / name).read_text() == generated.PAGES[name](), (
        "stale: run `python -m website`"
    )


def test_keys_of_a_suite_have_type_default_and_meaning():
    page = suite_page()
    assert "| `num_repeats` | integer | `1` | Measured repeats of each sweep point. |" in page
    assert "| `use_ocdbt` | true or false | `true` |" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.replace("\\|", "").count("|") != 5] == []
    assert [row for row in rows if row.endswith("|  |")] == []
