"""Figures that are made and not drawn, for tests of what stands around them."""

import pytest


@pytest.fixture
def undrawn(monkeypatch):
    """Lets every figure be an empty picture: drawing takes longer than all else on a page."""
    from matplotlib.figure import Figure

    def save(figure, file, *, format, **options):  # noqa: A002 - its name in matplotlib
        empty = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
        file.write(b"\x89PNG\r\n\x1a\n" if format == "png" else empty)

    monkeypatch.setattr(Figure, "savefig", save)
