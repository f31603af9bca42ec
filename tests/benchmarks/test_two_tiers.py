"""The managers of two storage tiers: options, and what they need."""

import jax
import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext, UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import two_tiers
from orbax_bench_core.benchmarks.multislice_broadcast import MultisliceBroadcast
from orbax_bench_core.benchmarks.support.replicas import hosts_in_step
from orbax_bench_core.benchmarks.two_tiers import (
    EmergencyCheckpointManager,
    EmergencyCheckpointManagerOptions,
    P2pCheckpointManager,
    P2pCheckpointManagerOptions,
)
from orbax_bench_core.measure import Metrics

from .conftest import ARRAYS

MANAGERS = [EmergencyCheckpointManager, P2pCheckpointManager]
OPTIONS = [EmergencyCheckpointManagerOptions, P2pCheckpointManagerOptions]


@pytest.mark.parametrize("benchmark", [*MANAGERS, MultisliceBroadcast])
def test_one_process_is_not_enough(run, benchmark):
    with pytest.raises(UnmetNeed, match="needs 2 or more processes"):
        run(benchmark, spec=ARRAYS)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", [*MANAGERS, MultisliceBroadcast])
def test_one_replica_is_not_enough(run, make_mesh, benchmark):
    with pytest.raises(UnmetNeed, match="two or more replicas"):
        run(benchmark, spec=ARRAYS, mesh=make_mesh(replica=1, model=8))


@pytest.mark.parametrize("options", OPTIONS)
def test_replica_axis_index(options):
    assert options(replica_axis_index=1).manager_options().replica_axis_index == 1


def test_experimental_flags_have_orbaxs_names():
    for name in ("use_distributed_id_for_mesh_consistency", "orbax_use_distributed_process_id"):
        flag = f"experimental_{name}"
        assert EmergencyCheckpointManagerOptions(**{flag: False}).flags[flag] is False
        assert EmergencyCheckpointManagerOptions().flags[flag] is True


@pytest.fixture
def context(tmp_path):
    def make(local=None):
        return TestContext(
            pytree=None,
            path=epath.Path(tmp_path) / "repeat",
            options=BenchmarkOptions(),
            local_path=local,
        )

    return make


def test_each_host_has_a_directory_of_its_own(context, tmp_path):
    local, persistent = two_tiers.make_directories(context(), "steps")
    assert local == tmp_path / "repeat" / "local" / "steps" / "process_0"
    assert persistent == tmp_path / "repeat" / "persistent" / "steps"
    assert local.is_dir()
    assert persistent.is_dir()


def test_a_local_path_is_used_and_emptied(context, tmp_path):
    given = epath.Path(tmp_path) / "ramdisk"
    stale = given / "steps" / "process_0" / "4"
    stale.mkdir(parents=True)
    local, _ = two_tiers.make_directories(context(given), "steps")
    assert local == given / "steps" / "process_0"
    assert not stale.exists()


def test_hosts_agree_again_on_what_orbax_keeps_per_process():
    from orbax.checkpoint._src.futures.future import AwaitableSignalsContract as Contract

    before = Contract.awaitable_signals_contract_prefix
    with hosts_in_step():
        Contract.awaitable_signals_contract_prefix += "_1"
    assert Contract.awaitable_signals_contract_prefix == before


class Falling:
    """A manager that restores from persistent storage, as Orbax's does when all else fails."""

    class Persistent:
        def restore(self, step, args):
            return {"state": args}

    def __init__(self):
        self._persistent_manager = self.Persistent()

    def restore(self, step, args):
        return self._persistent_manager.restore(step, args=args)


def test_a_restore_from_elsewhere_is_found(tmp_path, make_tree):
    context = TestContext(
        pytree=make_tree(ARRAYS), path=epath.Path(tmp_path), options=BenchmarkOptions()
    )
    with pytest.raises(VerificationError, match="from peer and came from persistent storage"):
        two_tiers._restore(
            Metrics(), context, Falling(), lambda state: jax.numpy.ones(2), "peer", 2
        )
