"""Running one repeat of a benchmark in this process, on eight simulated devices."""

import itertools
import json

import pytest
from etils import epath

from orbax_bench_core.authoring import TestContext
from orbax_bench_core.config import CheckpointConfig, MeshConfig
from orbax_bench_core.state import (
    Digest,
    build_mesh,
    check_digest,
    digest,
    generate,
    orbax_api,
)

TIME = "0_basics/time_s"
ARRAYS = {
    "array": {"dtype": "bfloat16", "shape": [512, 256], "sharding": ["model"]},
    "nested": {"replicated": {"dtype": "float32", "shape": [64, 64]}},
}
SPEC = {**ARRAYS, "step": "int"}


class Outcome:
    """What one repeat measured, left on storage and verified."""

    def __init__(self, result, folder, verified):
        self.metrics = result.metrics
        self.inventory_path = result.inventory_path
        self.folder = folder
        self.verified = bool(verified)
        self.against = verified

    @property
    def blocks(self):
        """The operations in the order in which they ended, each as often as it ran."""
        return [sample.operation for sample in self.metrics.samples if sample.metric == TIME]

    @property
    def operations(self):
        return set(self.blocks)

    def value(self, operation, metric):
        return self.metrics.results[f"{operation}_{metric}"][0]

    def files(self, pattern, below="."):
        return sorted(path for path in (self.folder / below).rglob(pattern) if path.is_file())

    def num_bytes(self, below="."):
        return sum(path.stat().st_size for path in self.files("*", below))


class Pages:
    """Notes before which operation which checkpoint's pages were set."""

    durable = False

    def __init__(self):
        self.prepared = []

    def make_durable(self, checkpoint):
        raise AssertionError("durability was not asked for")

    def prepare_load(self, operation, checkpoint):
        assert checkpoint.exists()
        self.prepared.append(operation)


@pytest.fixture(scope="session")
def make_mesh():
    def make(**sizes):
        return build_mesh(MeshConfig(mesh_axes=tuple(sizes), ici_parallelism=sizes))

    return make


@pytest.fixture(scope="session")
def make_tree(make_mesh):
    def make(spec=SPEC, mesh=None):
        parsed = CheckpointConfig.model_validate({"spec": spec}).spec
        return generate(parsed, seed=0, mesh=mesh or make_mesh(replica=2, model=4))

    return make


@pytest.fixture
def sharding_file(tmp_path):
    """Writes a sharding file of `ARRAYS` over a mesh: one entry for both, or one for each."""

    def write(mesh, array, replicated=None):
        described = {"shape": list(mesh.values()), "axes": list(mesh)}
        forms = {
            "array": ([512, 256], "bfloat16", array),
            "nested.replicated": ([64, 64], "float32", replicated or array),
        }
        content = {
            name: {"shape": shape, "dtype": dtype, "sharding": {"mesh": described, "spec": spec}}
            for name, (shape, dtype, spec) in forms.items()
        }
        file = tmp_path / "sharding.json"
        file.write_text(json.dumps(content))
        return str(file)

    return write


@pytest.fixture
def checkpoint(tmp_path, make_tree):
    """A checkpoint of `ARRAYS`, as Orbax saves it."""
    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(ARRAYS))
    return tmp_path / "given"


@pytest.fixture
def run(tmp_path, make_mesh, make_tree):
    """Runs one repeat; `spec` None gives no data, `verify` False switches verification off."""
    repeats = itertools.count()

    def repeat(
        generator, *, spec=SPEC, mesh=None, local_path=None, verify=True, checkpoint=None, **options
    ):
        mesh = make_mesh(replica=2, model=4) if mesh is None else mesh
        tree = None if spec is None else make_tree(spec, mesh)
        saved = Digest() if tree is None else digest(tree)
        folder = tmp_path / f"repeat_{next(repeats)}"
        folder.mkdir()
        verified, pages = [], Pages()

        def compare(restored, expected):
            check_digest(restored, saved if expected is None else expected)

        context = TestContext(
            pytree=tree,
            path=epath.Path(folder),
            options=generator.options_class(**options),
            mesh=mesh,
            local_path=local_path,
            conditioner=pages,
            verifier=compare if verify else None,
            on_verified=verified.append,
            checkpoint=checkpoint,
        )
        result = generator().test_fn(context)
        outcome = Outcome(result, folder, verified)
        outcome.prepared = pages.prepared
        return outcome

    return repeat
