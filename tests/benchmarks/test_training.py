"""A train step that writes into the buffers which a save has just read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support.training import Training
from orbax_bench_core.state import digest, spread
from tests.support.processes import say_together

DTYPES = ("bool", "int4", "uint8", "int64", "float8_e4m3fn", "bfloat16", "float32", "complex64")
HOST = """
import json, sys
import jax
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
import jax.numpy as jnp
from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support.training import Training

mesh = jax.sharding.Mesh(jax.devices(), ("x",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
training = Training({"w": jax.jit(lambda: jnp.zeros(8), out_shardings=split)()}, matrix_size=8)
left = [3, 6][jax.process_index()]

def going():
    global left
    left -= 1
    return left >= 0

steps = training.steps_while(going, most=100)
taken = float(training.state["w"].addressable_shards[0].data[0])
print(json.dumps([len(steps), taken, len(training.steps_while(lambda: True, most=2))]))
"""


@pytest.fixture(scope="module")
def tree(make_tree, make_mesh):
    arrays = {dtype: {"dtype": dtype, "shape": [8, 4], "sharding": ["fsdp"]} for dtype in DTYPES}
    spec = {"arrays": arrays, "whole": {"dtype": "float32", "shape": [3]}, "n": "int"}
    return make_tree(spec, make_mesh(replica=2, fsdp=4))


@pytest.fixture
def training(tree):
    return Training(tree, matrix_size=8)


def differing(one, other):
    one, other = digest(one), digest(other)
    return {name for name in one if one[name] != other[name]}


@pytest.mark.slow
def test_a_step_changes_every_array_and_nothing_else(training, tree):
    training.steps(1)
    assert differing(training.state, tree) == {*digest(tree)} - {"n"}


@pytest.mark.slow
def test_a_step_takes_the_buffers_of_the_state_before_it(training):
    before = training.state["whole"]
    where = [shard.data.unsafe_buffer_pointer() for shard in before.addressable_shards]
    training.steps(1)
    after = training.state["whole"].addressable_shards
    assert before.is_deleted()
    assert [shard.data.unsafe_buffer_pointer() for shard in after] == where


@pytest.mark.slow
def test_restarting_gives_the_values_of_the_tree_again_which_never_changes(training, tree):
    before = digest(tree)
    training.steps(2)
    training.restart()
    assert digest(training.state) == digest(tree) == before


@pytest.mark.slow
def test_steps_are_taken_while_something_goes_on_and_are_bounded(training):
    going = iter([True, True, True, False])
    assert len(training.steps_while(lambda: next(going), most=100)) == 3
    assert len(training.steps_while(lambda: True, most=5)) == 5


@pytest.mark.parametrize("tree", [None, {"n": 3, "name": "x"}, {"key": jax.random.key(0)}])
def test_without_an_array_there_is_nothing_to_train(tree):
    with pytest.raises(UnmetNeed, match="nothing to train"):
        Training(tree, matrix_size=8)


@pytest.mark.slow
def test_a_random_key_stays_as_it_is():
    training = Training({"key": jax.random.key(0), "w": jnp.zeros(3)}, matrix_size=8)
    training.steps(1)
    assert jax.random.key_data(training.state["key"]).tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 8])
def test_arrays_that_were_loaded_without_a_mesh_can_be_trained(count):
    sharding = spread((16, 4), jax.devices()[:count])
    training = Training({"w": jax.device_put(np.zeros((16, 4)), sharding)}, matrix_size=8)
    training.steps(1)
    assert training.state["w"].sharding == sharding


@pytest.mark.slow
def test_every_device_multiplies_matrices_of_the_size_asked_for(tree):
    training = Training(tree, matrix_size=64)
    step = training._step.lower(training._arrays, *training._matrices, training._flags[True])
    flops = step.compile().cost_analysis()["flops"]
    assert 2 * 64**3 <= flops < 1.2 * 2 * 64**3


@pytest.mark.slow
def test_nothing_stays_on_the_devices_when_training_is_over(tree):
    Training(tree, matrix_size=8)
    held = len(jax.live_arrays())
    Training(tree, matrix_size=24).steps(1)
    assert len(jax.live_arrays()) == held


@pytest.mark.nightly
@pytest.mark.slow
def test_processes_train_on_until_it_ended_for_all():
    # Six steps for the slower host, and one more in which both see that it is over.
    assert say_together(HOST) == [[3, 7.0, 2], [6, 7.0, 2]]
