import numpy as np
import pytest

from orbax_bench_core.gate import random_labels
from orbax_bench_core.gate.blocks import Blocks, read_blocks


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def paired(rng):
    """Builds seconds and labels: `paired(blocks, ratio=1.2, sigma=0.05, per_life=2)`."""

    def build(blocks, ratio=1.0, sigma=0.05, per_life=None, tau=0.0):
        labels = random_labels(blocks, rng)
        if per_life is None:
            return np.exp(sigma * rng.standard_normal(labels.shape)) * ratio**labels, labels
        logs = sigma * rng.standard_normal((*labels.shape, per_life))
        logs += (tau * rng.standard_normal(labels.shape) + np.log(ratio) * labels)[..., None]
        return np.exp(logs), labels

    return build


@pytest.fixture
def blocks(paired):
    """Builds blocks that were read: `blocks(5, ratio=1.2)`."""

    def build(*args, **kwargs):
        found = read_blocks(*paired(*args, **kwargs))
        assert isinstance(found, Blocks)
        return found

    return build
