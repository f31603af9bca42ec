"""The calibrate component."""

from .component import calibrate as calibrate
