"""What `orbax-bench limits` tells."""

from orbax_bench_core.limits import PROBES, limits_document
from orbax_bench_core.reasons import because
from tests.support.limits import GIB, made_up
from tests.support.shown import assert_tells, terminal

UNSHOWN = ("requested_bytes", "duration_s", "available_memory_bytes", "free_disk_bytes")


def test_speeds_of_files_and_of_tensorstore_are_told():
    seconds = {name: (place + 1) / 10 for place, name in enumerate(PROBES)}
    little = because("little_room", asked=8 * GIB, place="disk", free=2 * GIB)
    found = made_up(seconds, capped_by=little)
    assert_tells(found, limits_document, unless=(*UNSHOWN, "page_bytes"))
    assert limits_document(found).headline.said == (
        "/disk: files are written at 10 GiB/s and read cold at 5 GiB/s, arrays of TensorStore "
        "written at 1.25 GiB/s and read cold at 1.11 GiB/s."
    )
    capped = "8192 MiB was asked for, but only half of the 2048 MiB of free disk may be used"
    assert capped in " ".join(terminal(limits_document(found)).split())
    earlier = made_up(seconds, capped_by=capped, schema_version=1)
    assert limits_document(earlier) == limits_document(found)
