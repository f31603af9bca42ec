"""The publish-baseline component."""

from .component import publish_baseline as publish_baseline
