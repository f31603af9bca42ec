"""One trial: `python -m perf.chaos.trial --of SCENARIO --by DISTURBANCE --number N`.

It exits with 1 when something else was seen than should be; its folder is kept then.
"""

import argparse
import random
import shutil
import signal
import sys
from pathlib import Path

from perf.chaos import checks, disturbances
from perf.chaos.disturbances import Disturbance
from perf.chaos.place import NotHeld, Undisturbed, prepared
from perf.chaos.scenarios import SCENARIOS

STATE = Path("build/chaos")


def trial(state: Path, of: str, disturb: Disturbance, *, seed: str) -> str:
    """Makes one trial, whose seed is also the name of its folder, and returns what was done.

    Raises:
        NotHeld: Something else was seen than should be.
    """
    scenario, draw = SCENARIOS[of], random.Random(seed)
    undisturbed = Undisturbed(state, scenario)
    folder = state / "trials" / seed
    shutil.rmtree(folder, ignore_errors=True)
    place = prepared(folder, scenario, state)
    try:
        said = disturb(place, undisturbed, draw)
        checks.check_gone(place)
        place.finish()
        checks.check_gone(place)
        checks.check_results(place, undisturbed.found)
        checks.check_clean(place)
    except NotHeld as found:
        raise NotHeld(f"{place.folder}: {found}") from None
    finally:
        place.end()
    place.remove()
    return said


def main() -> int:
    """Makes the trial that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m perf.chaos.trial", description=__doc__)
    parser.add_argument("--of", choices=SCENARIOS, required=True)
    parser.add_argument("--by", choices=disturbances.BY_NAME, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--state", type=Path, default=STATE)
    options = parser.parse_args()
    # A child takes over what is ignored, as in the background or by `nohup`.
    for number in checks.KINDLY:
        signal.signal(number, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    seed = f"{options.of}_{options.by}_{options.seed}_{options.number}"
    try:
        said = trial(options.state, options.of, disturbances.BY_NAME[options.by], seed=seed)
    except NotHeld as found:
        print(found)
        return 1
    print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
