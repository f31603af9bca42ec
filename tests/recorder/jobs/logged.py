"""Runs another job with the lines of absl on its standard error.

`logged.py SCRIPT [ARGUMENT...]`
"""

import runpy
import sys

from absl import logging

logging.set_verbosity(logging.INFO)
logging.use_absl_handler()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
