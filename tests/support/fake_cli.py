"""The command line, whose workers are fakes: `python -m tests.support.fake_cli run suite.yaml`."""

from orbax_bench_core.cli.main import main
from orbax_bench_core.execute.hosts import LocalWorker

FAKE_WORKER = "tests.support.fake_worker"

if __name__ == "__main__":
    LocalWorker.module = FAKE_WORKER
    main()
