"""Checks that every rendered page must pass."""

import html.parser
import re

_VOID = {"meta", "br", "use", "path", "rect"}


class Outline(html.parser.HTMLParser):
    """Collects tags, ids, addresses and text, and checks that elements are closed in their order.

    `open` has the elements that are not closed.
    """

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.text, self.addresses, self.ids = [], [], "", [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [found[key] for key in ("src", "href", "xlink:href") if key in found]

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data.replace("\xa0", " ")


def assert_whole(text):
    """Fails unless every element is closed and the page needs no other file.

    It may link to files beside it.
    """
    assert Outline(text).open == []
    linked = re.sub(r"""<a href="(?!\w+:|/)[^"]*">""", "", text)
    assert not re.search(r"""(?:src|href)=["'](?!#)""", linked)
