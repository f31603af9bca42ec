"""Recordings of real training jobs: what they hold, and what is wrong with the job."""

from orbax_bench_core.analysis.recording.diagnosis import diagnosis_of as diagnosis_of
from orbax_bench_core.analysis.recording.lines import Line as Line
from orbax_bench_core.analysis.recording.model import Diagnosis as Diagnosis
from orbax_bench_core.analysis.recording.model import Interval as Interval
from orbax_bench_core.analysis.recording.reading import Life as Life
from orbax_bench_core.analysis.recording.reading import Operation as Operation
from orbax_bench_core.analysis.recording.reading import Part as Part
from orbax_bench_core.analysis.recording.reading import Recording as Recording
from orbax_bench_core.analysis.recording.reading import read_recording as read_recording
from orbax_bench_core.analysis.recording.reading import recording_of as recording_of
from orbax_bench_core.analysis.recording.view import diagnosis_document as diagnosis_document
from orbax_bench_core.analysis.recording.view import headline as headline
