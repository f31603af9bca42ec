"""The study-async component."""

from .component import study_async as study_async
