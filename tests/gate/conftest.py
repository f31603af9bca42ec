import numpy as np
import pytest

from orbax_bench_core.gate import random_labels


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def paired(rng):
    """Builds seconds and labels: `paired(blocks, ratio=1.2, sigma=0.05)`."""

    def build(blocks, ratio=1.0, sigma=0.05):
        labels = random_labels(blocks, rng)
        logs = sigma * rng.standard_normal(labels.shape) + np.log(ratio) * labels
        return np.exp(logs), labels

    return build
