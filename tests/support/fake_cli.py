"""The command line, whose workers are fakes: `python -m tests.support.fake_cli run suite.yaml`."""

from orbax_bench_core.cli.main import main
from orbax_bench_core.execute.hosts import LocalWorker
from tests.support.fake_worker import MODULE

if __name__ == "__main__":
    LocalWorker.module = MODULE
    main()
