"""The fake worker of tests, whose saves take as long as its environment says."""

import os

from tests.support.fake_worker import FakeWorker, main

_FACTOR = float(os.environ.get("CHAOS_FACTOR", "1"))


class OtherRelease(FakeWorker):
    """A worker with another release of a library."""

    def _measure(self, operation: str, seconds: float, task) -> None:
        super()._measure(operation, seconds * (_FACTOR if operation == "save" else 1), task)


if __name__ == "__main__":
    main(OtherRelease)
