"""Compaction of drawings: the same picture as matplotlib's SVG in about a quarter of the bytes."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from typing import Final

_SPACES: Final = ' xmlns="http://www.w3.org/2000/svg"'
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
USUAL: Final = "font: 9.5px system-ui, sans-serif; fill: var(--dim)"
"""Look of most labels, which a drawing has as a whole."""

_USUAL: Final = ("font-size:9.5px", "font-family:system-ui, sans-serif", "fill:var(--dim)")
"""The same, as declared by each label."""


_CIRCLE: Final = re.compile(r"M0 ([\d.]+)(?:C[^A-Za-z]+){8}z")
"""A round mark, as matplotlib draws it."""

_SQUARE: Final = re.compile(r"M-([\d.]+) \1 \1 \1L\1 -\1L-\1 -\1z")
_TICK: Final = re.compile(r"M0 0 (0|-?[\d.]+) (0|-?[\d.]+)")
_MARK_LOOK: Final = {"fill", "stroke", "stroke-width", "stroke-linejoin"}
_OPACITY: Final = re.compile(r"(?<!-)opacity:")
_INVISIBLE: Final = ("", "fill:none")
_LOOKS: Final = ("style", "clip-path")


def compact(drawn: str) -> str:
    """Returns an `svg` element of matplotlib's without what does not change the picture.

    Numbers keep a tenth of a point, or a hundredth where they are small. Groups without a meaning
    are left out, and marks that look alike share one. Text is drawn last.
    """
    plain = drawn.replace(_SPACES, "").replace("xlink:href", "href")
    plain = re.sub(r' xmlns:xlink="[^"]*"| version="[^"]*"', "", plain)
    root = ElementTree.fromstring(plain)  # noqa: S314 - matplotlib has written it
    referred = dict.fromkeys(re.findall(r'="(?:url\()?#([^")]+)', plain))
    _simplify(root, {name: f"{number}" for number, name in enumerate(referred)})
    _draw_marks(root)
    root.text = "\n"
    shown = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return shown.replace("<svg", f"<svg{_SPACES}", 1)


def _simplify(parent: ElementTree.Element, ids: dict[str, str]) -> None:
    children = list(parent)
    for child in children:
        parent.remove(child)
        _simplify(child, ids)
        _clean(child, ids)
    flat = [each for child in children for each in _opened(child)]
    flat.sort(key=lambda each: each.tag == "text")
    parent.extend(flat)
    if parent.tag not in ("text", "title"):
        parent.text = None


def _clean(element: ElementTree.Element, ids: dict[str, str]) -> None:
    element.tail = None
    given = element.attrib.pop("id", None)
    if given in ids:
        element.set("id", ids[given])
    for name in ("href", "clip-path"):
        if name in element.attrib:
            value = re.sub(r"#([^)]+)", lambda found: f"#{ids[found[1]]}", element.attrib[name])
            element.set(name, value)
    if "rotate(-0 " in element.get("transform", ""):
        del element.attrib["transform"]
    for name in ("d", "x", "y", "width", "height", "transform"):
        if name in element.attrib:
            element.set(name, _NUMBER.sub(_rounded, element.attrib[name]))
    if "d" in element.attrib:
        path = re.sub(r"\s+", " ", element.attrib["d"]).strip()
        path = re.sub(r" ?([A-Za-z]) ?", r"\1", path)
        element.set("d", re.sub(r"(M[^A-Za-z]+)L", r"\1 ", path))
    circle = _CIRCLE.fullmatch(element.get("d", ""))
    if circle:
        element.tag = "circle"
        del element.attrib["d"]
        element.set("r", circle[1])
    style = _declared(element)
    if element.tag == "text":
        style = [each for each in style if each not in _USUAL]
    element.attrib.pop("style", None)
    if style:
        element.set("style", ";".join(style))


def _declared(element: ElementTree.Element) -> list[str]:
    declared = (each.strip() for each in element.get("style", "").split(";"))
    said = [re.sub(r": +", ":", each) for each in declared if each]
    return [each for each in said if each != "stroke-dashoffset:0"]


def _draw_marks(root: ElementTree.Element) -> None:
    """Draws plain marks as strokes, which take a few bytes each, and shares looks again."""
    marks = {each.get("id", ""): each for defs in root.iter("defs") for each in defs}
    for use in root.iter("use"):
        _draw_mark(use, marks[use.get("href", "").removeprefix("#")])
    left = {each.get("href", "").removeprefix("#") for each in root.iter("use")}
    for parent in list(root.iter()):
        for defs in parent.findall("defs"):
            for mark in [each for each in defs if each.tag != "clipPath"]:
                if mark.get("id") not in left:
                    defs.remove(mark)
        children = [each for child in list(parent) for each in _opened(child)]
        parent[:] = list(_shared(children))


def _draw_mark(use: ElementTree.Element, mark: ElementTree.Element) -> None:
    look = dict(each.split(":", 1) for each in _declared(use))
    width, colour = float(look.get("stroke-width", 1)), look.get("stroke", "")
    solid = look.get("fill") == colour and set(look) <= _MARK_LOOK
    size, cap = mark.get("r"), "round"
    path = mark.get("d", "")
    square, tick = _SQUARE.fullmatch(path), _TICK.fullmatch(path)
    if square:
        size, cap = square[1], "square"
    if not solid or not (size or tick):
        return
    start = f"M{use.attrib.pop('x')} {use.attrib.pop('y')}"
    del use.attrib["href"]
    use.tag = "path"
    if tick:
        across, down = tick[1], tick[2]
        use.set("d", start + (f"v{down}" if across == "0" else f"h{across}"))
        use.set("style", f"fill:none;stroke:{colour};stroke-width:{width:g}")
    elif size:
        use.set("d", f"{start}h0")
        whole = 2 * float(size) + width
        use.set("style", f"fill:none;stroke:{colour};stroke-width:{whole:g};stroke-linecap:{cap}")


def _rounded(number: re.Match[str]) -> str:
    value = float(number[0])
    shown = f"{value:.1f}" if abs(value) >= 5 else f"{value:.2f}"
    return shown.rstrip("0").rstrip(".").replace("-0.", "-.").removeprefix("0") or "0"


def _opened(element: ElementTree.Element) -> Iterable[ElementTree.Element]:
    """Returns the content of an element: nothing, its children, or itself."""
    if element.tag == "g" and not element.attrib:
        return list(element)
    if element.tag in ("g", "defs") and not len(element):
        return ()
    invisible = element.get("style", "") in _INVISIBLE
    if element.tag == "path" and not element.get("id") and invisible:
        return ()
    return (element,)


def _shared(elements: Iterable[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """Yields elements, those that follow each other and look alike within one group."""
    for plain, run in itertools.groupby(elements, key=_is_line):
        # Grid and ticks do not hide each other, so that their order is free.
        ordered = list(run)
        if plain:
            ordered.sort(key=_looks)
        for looks, alike in itertools.groupby(ordered, key=_looks):
            found = list(alike)
            if len(found) < 2 or not any(looks) or _OPACITY.search(looks[0]):
                yield from found
                continue
            if _are_lines(found):
                found[0].set("d", "".join(each.get("d", "") for each in found))
                yield found[0]
                continue
            group = ElementTree.Element("g")
            for name, value in zip(_LOOKS, looks, strict=True):
                if value:
                    group.set(name, value)
            for each in found:
                for name in _LOOKS:
                    each.attrib.pop(name, None)
            group.extend(found)
            yield group


def _are_lines(elements: Iterable[ElementTree.Element]) -> bool:
    return all(
        each.tag == "path" and "fill:none" in each.get("style", "") and not each.get("id")
        for each in elements
    )


def _is_line(element: ElementTree.Element) -> bool:
    return element.tag in ("path", "use") and "var(--line)" in element.get("style", "")


def _looks(element: ElementTree.Element) -> tuple[str, str]:
    return (element.get("style", ""), element.get("clip-path", ""))
