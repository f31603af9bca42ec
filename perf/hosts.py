"""Faults of hosts, each tried on three network namespaces: `tests/support/host_faults.py`.

python -m perf.hosts --fault NAME [--trial N] [--real]

As root. Exit codes: 0 what should be seen was seen, 1 something else was, 2 there can be no network
namespaces here, which proves nothing.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.host_faults import FAULTS, SIZE, strike
from tests.support.namespaces import Lab, why_not


def main() -> int:
    """Makes one trial of one fault, and says in the last line what was seen."""
    parser = argparse.ArgumentParser(prog="python -m perf.hosts", description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, required=True)
    parser.add_argument("--trial", type=int, default=0, help="draws the moment and the host")
    parser.add_argument("--real", action="store_true", help="with real workers, which take longer")
    options = parser.parse_args()
    if reason := why_not():
        print(f"not tried: {reason}")
        return 2
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder, Lab(SIZE) as lab:
        try:
            seen = strike(options.fault, lab, Path(folder), number=options.trial, real=options.real)
        except (AssertionError, OSError) as error:
            print(error)
            return 1
    print(seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
