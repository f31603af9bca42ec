"""State that is checkpointed: synthetic pytrees, meshes, shardings, digests."""

from orbax_bench_core.state.cache import StateCache
from orbax_bench_core.state.digests import Digest, check_digest, digest, start_digest
from orbax_bench_core.state.layout import check_dtype, split_axes, spread
from orbax_bench_core.state.loading import (
    DIGESTS_FILE,
    Location,
    describe,
    described_arrays,
    load_checkpoint,
    load_targets,
    locate,
    record_digest,
    recorded_digest,
    save_fixture,
    with_targets,
)
from orbax_bench_core.state.many_hosts import (
    NotOnPathways,
    initialize_if_used,
    join_processes,
    require_pathways,
)
from orbax_bench_core.state.mesh import MeshDoesNotFit, build_mesh, first_devices
from orbax_bench_core.state.orbax_api import make_context
from orbax_bench_core.state.sharding_file import read_sharding_file, sharding_targets
from orbax_bench_core.state.synthetic import generate
from orbax_bench_core.state.tree import (
    StateError,
    available_bytes,
    load_fits,
    named_leaves,
    release_freed,
    tree_bytes,
)

__all__ = [
    "DIGESTS_FILE",
    "Digest",
    "Location",
    "MeshDoesNotFit",
    "NotOnPathways",
    "StateCache",
    "StateError",
    "available_bytes",
    "build_mesh",
    "check_digest",
    "check_dtype",
    "describe",
    "described_arrays",
    "digest",
    "first_devices",
    "generate",
    "initialize_if_used",
    "join_processes",
    "load_checkpoint",
    "load_fits",
    "load_targets",
    "locate",
    "make_context",
    "named_leaves",
    "read_sharding_file",
    "record_digest",
    "recorded_digest",
    "release_freed",
    "require_pathways",
    "save_fixture",
    "sharding_targets",
    "split_axes",
    "spread",
    "start_digest",
    "tree_bytes",
    "with_targets",
]
