"""The enforce-verdict component."""

from .component import enforce_verdict as enforce_verdict
