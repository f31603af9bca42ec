"""The author's line in a traceback."""

import traceback

from orbax_bench_core.records import ErrorInfo

HARNESS = "/venv/lib/orbax_bench_core/worker/repeat.py"
MEASURED = "/venv/lib/orbax_bench_core/measure/block.py"
BUILT_IN = "/venv/lib/orbax_bench_core/benchmarks/save_restore.py"
OWN = "/home/u/orbax_bench_core/my_bench.py"
BESIDE = "/home/u/orbax_bench_core/helpers.py"
LIBRARY = "/venv/lib/orbax/save.py"
DISPATCH = "/venv/lib/contextlib.py"


def text(*frames):
    lines = [f'  File "{file}", line {line}, in f\n    call({line})\n' for file, line in frames]
    return f"Traceback (most recent call last):\n{''.join(lines)}ValueError: kaboom\n"


def error(traceback_text):
    return ErrorInfo(type="ValueError", message="kaboom", traceback=traceback_text)


def test_the_place_is_the_authors_deepest_line_and_not_that_of_a_library():
    found = error(text((HARNESS, 1), (OWN, 17), (BESIDE, 5), (DISPATCH, 2), (LIBRARY, 9)))
    assert found.place == "helpers.py:5"
    assert found.said == "ValueError: kaboom (helpers.py:5)"


def test_the_class_of_a_built_in_is_someones_code_too():
    assert error(text((HARNESS, 1), (BUILT_IN, 80), (LIBRARY, 9))).place == "save_restore.py:80"


def test_of_several_exceptions_the_last_one_counts():
    cause = text((HARNESS, 1), (BESIDE, 3))
    both = f"{cause}\nDuring handling of the above exception, another occurred:\n\n"
    assert error(both + text((HARNESS, 1), (OWN, 7))).place == "my_bench.py:7"


def test_without_a_frame_of_the_authors_there_is_no_place():
    for given in ("", "Fatal: killed", text((HARNESS, 1), (MEASURED, 2)), "Traceback, or not"):
        assert error(given).place == ""
        assert error(given).said == "ValueError: kaboom"


def test_the_output_of_a_worker_that_died_is_no_traceback():
    assert error("killed\n" + text((OWN, 7))).place == ""


def test_people_are_shown_the_frames_outside_the_harness():
    shown = error(text((HARNESS, 1), (OWN, 17), (MEASURED, 2), (LIBRARY, 9))).shown
    assert shown == text((OWN, 17), (LIBRARY, 9))


def test_a_traceback_of_the_harness_alone_is_shown_whole():
    whole = text((HARNESS, 1), (MEASURED, 2))
    assert error(whole).shown == whole


def test_an_exception_as_python_prints_it():
    try:
        raise ExceptionGroup("two", [ValueError("kaboom")])
    except ExceptionGroup as failure:
        found = error("".join(traceback.format_exception(failure)))
    assert found.place.startswith("test_frames.py:")
