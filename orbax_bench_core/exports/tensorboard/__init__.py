"""TensorBoard's files, written from the records of a run with protocol buffers alone.

`EventFiles` is the way in. Neither TensorFlow nor a summary writer is needed: an event file is a
sequence of framed messages, and which of them a run holds follows from its records.
"""

from orbax_bench_core.exports.tensorboard.write import EventFiles

__all__ = [
    "EventFiles",
]
