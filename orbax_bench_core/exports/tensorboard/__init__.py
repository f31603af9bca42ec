"""TensorBoard's files, written from the records of a run without TensorFlow.

`EventFiles` is the way in.
"""

from orbax_bench_core.exports.tensorboard.write import EventFiles as EventFiles
