"""Groups of workers on many hosts, which are stand-ins here."""

import threading

from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.worker import WorkerSetup

HOSTS = 64


class Slow:
    """A worker that ends once all of its peers are asked to end as well."""

    def __init__(self, meeting, stopped):
        self._meeting = meeting
        self._stopped = stopped

    def dismiss(self):
        pass

    def stop(self):
        self._meeting.wait()
        self._stopped.append(self)


class Hosts:
    def __init__(self):
        self.stopped = []

    def launch(self, setups, **_):
        meeting = threading.Barrier(len(setups), timeout=60)
        return [Slow(meeting, self.stopped) for _ in setups]


def test_the_workers_of_many_hosts_are_stopped_at_the_same_time(tmp_path):
    setups = [
        WorkerSetup(root=str(tmp_path), x64=False, num_devices=1, process_id=host)
        for host in range(HOSTS)
    ]
    logs = [tmp_path / str(host) for host in range(HOSTS)]
    hosts = Hosts()
    group = WorkerGroup(hosts, setups, environment={}, python="", logs=logs, timeout_s=60)
    group.stop()
    assert len(hosts.stopped) == HOSTS
    group.stop()
    assert len(hosts.stopped) == HOSTS
