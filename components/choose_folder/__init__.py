"""The choose-folder component."""

from .component import choose_folder as choose_folder
