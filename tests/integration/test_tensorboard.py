"""A small real run, as TensorBoard serves it and as a browser shows it."""

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from tests.support.browser import headless
from tests.support.processes import run_cli

pytestmark = pytest.mark.slow

SUITE = """\
suite_name: ocdbt or not
num_repeats: 2
checkpoint_config:
  spec:
    params: {dtype: float32, shape: [256, 256], sharding: [fsdp]}
mesh_config:
  mesh_axes: ["fsdp"]
  ici_parallelism: {"fsdp": 2}
benchmarks:
  - generator: save_restore
    options:
      use_ocdbt: [true, false]
      enable_trace: true
"""
STATE_BYTES = 256 * 256 * 4
# Text of the page as a reader sees it: most of TensorBoard lies in shadow roots, which neither
# --dump-dom nor document.body.innerText reaches.
TEXT_OF_PAGE = """(() => {
  const text = (node) =>
    node.nodeType === Node.TEXT_NODE ? node.textContent.trim()
    : ['SCRIPT', 'STYLE', 'TEMPLATE'].includes(node.tagName) ? ''
    : [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes]
        .map(text).filter(Boolean).join('\\n');
  return text(document.body);
})()"""


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorboard")
    (folder / "suite.yaml").write_text(SUITE)
    places = ("-o", folder / "out", "--no-lock", "--no-limits")
    done = run_cli("run", folder / "suite.yaml", *places)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


class Server:
    """TensorBoard, serving one directory at `url`."""

    def __init__(self, url):
        self.url = url

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as response:
            return json.load(response)

    def post(self, path, body):
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def wait_for_runs(self, count):
        deadline = time.monotonic() + 60
        while len(self.get("data/runs")) < count:
            assert time.monotonic() < deadline, f"runs: {self.get('data/runs')}"
            time.sleep(0.2)


@contextlib.contextmanager
def serving(directory, *, load_fast):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tensorboard.main", "--port", "0", "--host", "localhost"),
            *("--logdir", str(directory), f"--load_fast={load_fast}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            found = re.search(r"at (http://\S+)", line)
            if found:
                break
        else:
            pytest.fail("TensorBoard ended without serving")
        server = Server(found.group(1))
        server.wait_for_runs(5)
        yield server
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def default_server(run_directory):
    with serving(run_directory / "tensorboard", load_fast="auto") as server:
        yield server


@pytest.fixture(scope="module")
def python_server(run_directory):
    with serving(run_directory / "tensorboard", load_fast="false") as server:
        yield server


@pytest.fixture(params=["default_server", "python_server"])
def server(request):
    """TensorBoard with each of its two loaders, which do not accept the same files."""
    return request.getfixturevalue(request.param)


def session_groups(server, **column):
    body = {
        "experimentName": "",
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        "colParams": [column],
        "startIndex": 0,
        "sliceSize": 100,
    }
    return server.post("data/plugin/hparams/session_groups", body)["sessionGroups"]


def test_every_point_is_a_run_per_host_and_a_summary_with_a_step_per_repeat(server):
    runs = server.get("data/runs")
    assert sum(run.endswith("/__summary__") for run in runs) == 2
    [host, _] = [run for run in runs if run.endswith("/host_0")]
    points = server.get(
        f"data/plugin/scalars/scalars?run={host.replace('/', '%2F')}&tag=save_0_basics%2Ftime_s"
    )
    assert [step for _, step, _ in points] == [0, 1]


def test_the_hparams_tab_has_one_row_per_point_with_typed_cells_and_every_metric(server):
    groups = session_groups(server, hparam="use_ocdbt")
    cells = [group["hparams"] for group in groups]
    assert sorted(cell["use_ocdbt"] for cell in cells) == [False, True]
    assert {cell["mesh"] for cell in cells} == {"fsdp2"}
    assert {cell["checkpoint_bytes"] for cell in cells} == {STATE_BYTES}
    experiment = server.post("data/plugin/hparams/experiment", {"experimentName": ""})
    columns = {metric["displayName"] for metric in experiment["metricInfos"]}
    assert {"save [s]", "save [GiB/s]", "load [s]", "load [GiB/s]"} <= columns
    for group in groups:
        assert len(group["metricValues"]) == len(experiment["metricInfos"])


def test_defect_22_no_scalar_of_a_real_run_is_a_time_since_the_epoch(run_directory):
    tags = set()
    for file in Path(run_directory, "tensorboard").glob("*/host_0/*tfevents*"):
        events = EventAccumulator(str(file), size_guidance={"tensors": 0}).Reload()
        for tag in events.Tags()["tensors"]:
            tags.add(tag)
            if tag.endswith(("_s", "_ms")):
                values = [float(make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]
                assert max(map(abs, values)) < 1e6, tag
    assert "save_2_save_breakdown/total_async_s" in tags


class Page:
    """A page of TensorBoard as a browser shows it."""

    def __init__(self, browser):
        self._browser = browser

    def text_once(self, *wanted):
        """The text of the page as soon as all of `wanted` is in it."""
        deadline, reload_at = time.monotonic() + 90, time.monotonic() + 15
        while True:
            # A page that asked before the server had read the run does not ask again by itself.
            if time.monotonic() > reload_at:
                self._browser.reload()
                reload_at = time.monotonic() + 15
            text = self._browser.run(TEXT_OF_PAGE)
            missing = [words for words in wanted if words not in text]
            if not missing:
                return text
            assert time.monotonic() < deadline, f"not on the page: {missing}\n{text}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def browser():
    with headless() as started:
        yield started


@pytest.fixture
def open_page(default_server, browser):
    def opened(address):
        browser.open(default_server.url + address)
        return Page(browser)

    return opened


@pytest.mark.nightly
def test_defect_18_the_page_of_texts_tells_data_from_metadata(open_page):
    open_page("#text&tagFilter=^inventory$").text_once(
        "ocdbt_data", "ocdbt_manifest", "zarr3_chunk", "zarr3_metadata"
    )
