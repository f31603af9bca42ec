"""Names that others gave: no page, card or terminal obeys what is planted in them."""

import re

import pytest

from orbax_bench_core.document import Code, Document, Heading, Paragraph, Span, to_html, to_markdown

PLANTED = "<script>alert(1)</script>\x1b[2J\x9b2J\u202e\u2066[a](javascript:x)![b](http://c/d)"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(params=[True, False], ids=["escaped", "as they are"])
def document(request):
    """A document that says what is planted in each way that there is."""
    return Document(
        title=PLANTED,
        elements=(
            Heading(PLANTED, level=1),
            Paragraph(PLANTED, mark=PLANTED),
            Paragraph(Span(PLANTED, code=True)),
            Paragraph(Span(PLANTED, href="javascript:alert(1)")),
            Code(PLANTED),
        ),
        escape=request.param,
    )


def test_a_page_has_no_element_of_theirs(document):
    page = to_html(document)
    assert "<script>alert" not in page
    assert 'javascript:alert(1)"' not in page
    assert CONTROL.search(page) is None


def test_a_card_has_no_tag_link_or_picture_of_theirs(document):
    card = to_markdown(document)
    assert CONTROL.search(card) is None
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", card)
    assert "<script" not in prose
    assert re.search(r"(?<!\\)\[a(?<!\\)\]\(", prose) is None
    assert re.search(r"!\[b(?<!\\)\]\(", prose) is None
