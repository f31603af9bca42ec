"""Largest share that a count does not exclude.

C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934)
404.
"""

from __future__ import annotations

from typing import Final

CONFIDENCE: Final = 0.95


def upper_bound(count: int, of: int) -> float:
    """Returns the upper 95 % limit of the share behind a count: 1 where all or none were tried."""
    if count >= of:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(count + 1, of - count, CONFIDENCE))
