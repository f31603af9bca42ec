"""The plan-sweep component."""

from .component import plan_sweep as plan_sweep
