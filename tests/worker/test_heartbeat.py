"""JAX's heartbeat beside the time in which the orchestrator names a host that has failed."""

from orbax_bench_core.execute import DEFAULTS
from orbax_bench_core.worker import process


def test_a_host_is_named_long_before_jax_ends_its_peers():
    patience = DEFAULTS.patience
    longest = patience.frozen_s + patience.settle_s + 3 * patience.look_s
    assert max(60, 4 * longest) <= process._HEARTBEAT_S
