"""Removal of symbol tables from compiled libraries, without a linker's tools.

    python images/trim.py FOLDER...

Of an ELF file a process maps the segments. What lies behind the last one, symbols and the table of
sections, is for debuggers and for the names in crash reports, whose addresses stay what they were:
the same library of the wheel that `requirements.lock` names resolves them. It is a third of jaxlib.
Nothing that is mapped moves, so that libraries with segments added after linking stay sound too.
"""

import struct
import sys
from pathlib import Path

_LITTLE_64 = b"\x7fELF\x02\x01"
_HEADER = 64
_SECTIONS_AT, _SECTIONS = 40, 58
_SEGMENTS_AT, _SEGMENTS = 32, 54
_SEGMENT = "<IIQQQQ"


def trim(library: Path) -> int:
    """Cuts off what no process maps; returns how many bytes that were.

    Args:
        library: A file; one that is no 64-bit ELF of little-endian order is left alone.
    """
    with library.open("r+b") as file:
        header = bytearray(file.read(_HEADER))
        if header[: len(_LITTLE_64)] != _LITTLE_64:
            return 0
        (place,) = struct.unpack_from("<Q", header, _SEGMENTS_AT)
        size, number = struct.unpack_from("<HH", header, _SEGMENTS)
        file.seek(place)
        table = file.read(size * number)
        end = place + len(table)
        for index in range(number):
            _, _, start, _, _, length = struct.unpack_from(_SEGMENT, table, index * size)
            end = max(end, start + length)
        behind = file.seek(0, 2) - end
        if behind <= 0:
            return 0
        struct.pack_into("<Q", header, _SECTIONS_AT, 0)
        struct.pack_into("<HHH", header, _SECTIONS, _HEADER, 0, 0)
        file.seek(0)
        file.write(header)
        file.truncate(end)
        return behind


def main(folders: list[str]) -> None:
    """Trims every library below some folders, and says by how much."""
    libraries = (path for folder in folders for path in Path(folder).rglob("*.so*"))
    cut = sum(trim(path) for path in libraries if path.is_file() and not path.is_symlink())
    print(f"trimmed {cut / 1e6:.0f} MB of symbols")


if __name__ == "__main__":
    main(sys.argv[1:])
