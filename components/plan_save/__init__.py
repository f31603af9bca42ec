"""The plan-save component."""

from .component import plan_save as plan_save
