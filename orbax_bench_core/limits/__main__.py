"""`python -m orbax_bench_core.limits`: a process that measures limits and prints them."""

import json
import os
import sys

from orbax_bench_core import worker
from orbax_bench_core.errors import UserError


def main(text: str) -> int:
    """Measures by the arguments in `text`, and prints the limits as one line of JSON."""
    worker.die_with_parent(os.getppid())
    with worker.importing("jax"):
        import jax

        from orbax_bench_core.limits.measure import measure_limits

    asked = json.loads(text)
    worker.simulate_devices(asked["parallelism"] or len(os.sched_getaffinity(0)))
    jax.config.update("jax_enable_x64", True)
    try:
        limits = measure_limits(**asked)
    except (UserError, OSError, ValueError, MemoryError) as error:
        print(str(error).partition("\n")[0] or type(error).__name__, file=sys.stderr)
        return 1
    print(limits.model_dump_json())
    worker.collect_for_the_last_time()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
