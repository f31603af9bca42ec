"""A machine that notes when workers start."""

import itertools

from orbax_bench_core.execute import LocalHost
from tests.support.fake_worker import MODULE as FAKE_WORKER


class Launches(LocalHost):
    """This machine, which notes each start of a worker among what is watched."""

    def __init__(self, watched, failing=None):
        super().__init__(module=FAKE_WORKER)
        self.watched, self.failing, self.count = watched, failing, 0

    def launch(self, setups, **given):
        workers = super().launch(setups, **given)
        self.watched.append("start")
        self.count += 1
        if self.count == self.failing:
            workers[0].stop()
        return workers


def starts(watched):
    """Returns how many workers were started at once each time that some were."""
    parts = itertools.groupby(watched, lambda event: event == "start")
    return [len([*part]) for started, part in parts if started]
