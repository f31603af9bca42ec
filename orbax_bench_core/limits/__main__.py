"""`python -m orbax_bench_core.limits`: a process that measures limits and prints them."""

import os
import sys

import pydantic

from orbax_bench_core import worker
from orbax_bench_core.errors import UserError
from orbax_bench_core.limits.process import LimitsRequest


def main(text: str) -> int:
    """Measures what a request asks for, and prints the limits as one line of JSON."""
    worker.die_with_parent(os.getppid())
    with worker.importing("jax"):
        import jax

        from orbax_bench_core.limits.measure import measure_limits

    try:
        request = LimitsRequest.model_validate_json(text)
    except pydantic.ValidationError as error:
        return _fail(error)
    worker.simulate_devices(request.parallelism or len(os.sched_getaffinity(0)))
    jax.config.update("jax_enable_x64", True)
    try:
        limits = measure_limits(**request.model_dump())
    except (UserError, OSError, ValueError, MemoryError) as error:
        return _fail(error)
    print(limits.model_dump_json())
    worker.collect_for_the_last_time()
    return 0


def _fail(error: Exception) -> int:
    print(str(error).partition("\n")[0] or type(error).__name__, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
