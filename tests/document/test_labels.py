"""Labels beside marks cover neither each other nor a mark."""

import itertools

import pytest

from orbax_bench_core.document.figures import Rectangle, places

ROOM = Rectangle(0, 0, 400, 200)


@pytest.mark.parametrize(
    "marks",
    [
        [(100, 100)] * 5,
        [(100 + number, 100 - number) for number in range(8)],
        [(395 - 3 * number, 10 + 8 * number) for number in range(8)],
        [(2, 198), (390, 3), (200, 100), (202, 101)],
    ],
)
def test_no_label_covers_another_or_a_mark_or_leaves_the_axes(marks):
    found = places(marks, [120.0] * len(marks), 10.0, marks=marks, room=ROOM)
    assert None not in found
    assert all(one.within(ROOM) for one in found)
    assert not any(one.meets(other) for one, other in itertools.combinations(found, 2))
    assert not any(
        one.left <= x <= one.right and one.bottom <= y <= one.top for one in found for x, y in marks
    )


def test_what_has_no_room_has_no_label():
    assert places([(50, 50)], [900.0], 10.0, marks=[], room=ROOM) == [None]
