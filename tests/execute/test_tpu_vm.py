"""The place of a TPU VM, from a metadata server that answers as that of Google Cloud does."""

import http.server

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import cluster_sources, detect_cluster, metadata_server
from orbax_bench_core.execute.variables import tpu_hosts
from tests.support.loopback import answering

NEW = {"agent-worker-number": "2", "worker-network-endpoints": "10.0.0.5,10.0.0.6,10.0.0.7"}
OLD = {
    "agent-worker-number": "1",
    "worker-network-endpoints": "unknown:unknown:10.0.0.5,unknown:unknown:10.0.0.6",
}
SLICES = {
    **OLD,
    "tpu-env": "ZONE: 'us'\nMEGASCALE_NUM_SLICES: '2'\nMEGASCALE_SLICE_ID: '1'\n"
    "MEGASCALE_COORDINATOR_ADDRESS: '10.0.0.1:8080'\n",
}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers attributes of an instance, and only whoever says that it wants metadata."""

    def do_GET(self):
        folder, _, key = self.path.rpartition("/")
        text = self.server.attributes.get(key)
        assert folder == "/computeMetadata/v1/instance/attributes"
        assert self.headers["Metadata-Flavor"] == "Google"
        self.server.asked.append(key)
        if self.server.statuses:
            self.send_response(self.server.statuses.pop(0))
            self.end_headers()
            return
        self.send_response(404 if text is None else 200)
        self.send_header("Metadata-Flavor", self.server.flavor)
        self.end_headers()
        self.wfile.write((text or "no such attribute").encode())

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture
def machine():
    """Serves the metadata of a machine; returns its variables."""
    with answering(Handler, asked=[], statuses=[], flavor="Google") as server:

        def serve(attributes, **variables):
            server.attributes = attributes
            host = server.url.removeprefix("http://")
            return {"GCE_METADATA_HOST": host, "ORBAX_BENCH_CLUSTER": "tpu-vm", **variables}

        serve.server = server
        yield serve


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (NEW, "cluster: TPU VM, host 2 of 3, head 10.0.0.5:8463"),
        (OLD, "cluster: TPU VM, host 1 of 2, head 10.0.0.5:8463"),
        (SLICES, "cluster: TPU VM, host 3 of 4, head 10.0.0.1:8463"),
    ],
)
def test_the_metadata_of_a_tpu_vm_give_rank_size_and_head(machine, attributes, said):
    cluster = detect_cluster(machine(attributes))
    assert cluster.said == said
    assert cluster.tpu_hosts == cluster.size


def test_a_machine_with_such_devices_is_asked_and_any_other_is_not(machine, monkeypatch):
    variables = machine(NEW, ORBAX_BENCH_CLUSTER="")
    monkeypatch.setattr(cluster_sources, "has_tpu_devices", lambda: False)
    assert detect_cluster(variables) is None
    assert machine.server.asked == []
    monkeypatch.setattr(cluster_sources, "has_tpu_devices", lambda: True)
    assert detect_cluster(variables).rank == 2
    assert detect_cluster({**variables, "JAX_PLATFORMS": "cpu"}) is None
    assert detect_cluster({**variables, "TPU_SKIP_MDS_QUERY": "1"}) is None


def test_a_machine_whose_devices_are_no_tpus_is_a_host_on_its_own(machine, monkeypatch):
    monkeypatch.setattr(cluster_sources, "has_tpu_devices", lambda: True)
    assert detect_cluster(machine({}, ORBAX_BENCH_CLUSTER="")) is None
    machine.server.flavor = "other"
    assert detect_cluster(machine(NEW, ORBAX_BENCH_CLUSTER="")) is None
    nobody = {"GCE_METADATA_HOST": "127.0.0.1:1"}
    assert detect_cluster(nobody) is None


@pytest.mark.parametrize("asked", ["tpu-vm", ""])
def test_a_server_that_is_starting_is_waited_for(machine, monkeypatch, capsys, asked):
    monkeypatch.setattr(cluster_sources, "has_tpu_devices", lambda: True)
    monkeypatch.setattr(metadata_server, "_PAUSE_S", 0.01)
    machine.server.statuses = [503, 429]
    assert detect_cluster(machine(NEW, ORBAX_BENCH_CLUSTER=asked)).rank == 2
    assert capsys.readouterr().err.count("it answers 503 for agent-worker-number") == 1


def test_whoever_asks_for_it_is_told_why_it_cannot_be(machine, monkeypatch):
    monkeypatch.setattr(metadata_server, "WAIT_S", 0)
    machine.server.flavor = "other"
    with pytest.raises(UserError, match="what answers there is no metadata server"):
        detect_cluster(machine(NEW))
    machine.server.flavor = "Google"
    with pytest.raises(UserError, match="metadata of this host name no TPU worker"):
        detect_cluster(machine({}))
    with pytest.raises(UserError, match=r"metadata server at 127\.0\.0\.1:1 does not tell"):
        detect_cluster({"GCE_METADATA_HOST": "127.0.0.1:1", "ORBAX_BENCH_CLUSTER": "tpu-vm"})


def test_the_hosts_of_a_slice_are_counted_where_tpus_are_used():
    slice_ = {"TPU_WORKER_HOSTNAMES": "a,b", "MEGASCALE_NUM_SLICES": "2"}
    assert tpu_hosts(slice_) == 4
    assert tpu_hosts({**slice_, "JAX_PLATFORMS": "tpu,cpu"}) == 4
    assert tpu_hosts({**slice_, "JAX_PLATFORMS": "cpu"}) == 0
    assert tpu_hosts({}) == 0
