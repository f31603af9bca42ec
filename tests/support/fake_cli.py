"""The command line, whose workers are fakes: `python -m tests.support.fake_cli run suite.yaml`."""

import functools

from orbax_bench_core import execute
from orbax_bench_core.cli.main import main
from tests.support.fake_worker import MODULE

if __name__ == "__main__":
    # Commands take their settings from the door when they run.
    fake = execute.LocalHost(module=MODULE)
    execute.RunSettings = functools.partial(execute.RunSettings, host=fake)
    main()
