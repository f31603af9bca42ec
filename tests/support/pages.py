"""Checks that every rendered page must pass."""

import html.parser
import re

_VOID = {"meta", "br", "use", "path", "rect"}


class _Nesting(html.parser.HTMLParser):
    """Checks that every element that is opened is closed in its order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag


def assert_whole(text):
    """Fails unless every element is closed and the page needs no other file.

    It may link to files beside it.
    """
    checker = _Nesting()
    checker.feed(text)
    assert checker.open == []
    linked = re.sub(r"""<a href="(?!\w+:|/)[^"]*">""", "", text)
    assert not re.search(r"""(?:src|href)=["'](?!#)""", linked)
