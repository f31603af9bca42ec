"""Tables of a run as text."""

import hashlib
import itertools
import json
from pathlib import Path

OF_A_RECORD = 19
"""As many columns, from the first on, say the same of all samples of a record."""


def parquet_schema(run):
    """Returns names and types of the columns of `samples.parquet`."""
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(Path(run) / "samples.parquet")
    return "".join(f"{field.name}: {field.type}\n" for field in schema)


def parquet_rows(run):
    """Returns every row of `samples.parquet`: the columns of each record, then its samples."""
    return "\n".join(
        f"{head}\n" + "".join(f"  {line}\n" for line in lines) for head, lines in _by_record(run)
    )


def parquet_of_a_run(run):
    """Returns all rows of one record, and a digest of those of each other."""
    texts = []
    for index, (head, lines) in enumerate(_by_record(run)):
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
        shown = [f"{len(lines)} samples, sha256 {digest}", *(lines if index == 0 else [])]
        texts.append(f"{head}\n" + "".join(f"  {line}\n" for line in shown))
    return "\n".join(texts)


def _by_record(run):
    import pyarrow.parquet

    # One file, which is no data set: its folder may be named like a partition.
    table = pyarrow.parquet.ParquetFile(Path(run) / "samples.parquet").read()
    names = table.column_names
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    for head, found in itertools.groupby(rows, key=lambda row: row[:OF_A_RECORD]):
        common = zip(names[:OF_A_RECORD], head, strict=True)
        lines = [json.dumps(row[OF_A_RECORD:], ensure_ascii=False) for row in found]
        yield "\n".join(f"{name}: {value!r}" for name, value in common), lines


def tensorboard(run, point):
    """Returns what TensorBoard's own reader finds of a run as a whole, and of one point."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    root, texts = Path(run) / "tensorboard", []
    for folder in (root / "__summary__", *sorted((root / point).iterdir())):
        reader = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()
        names = sorted(file.name for file in folder.iterdir() if file.is_file())
        lines = [f"# {folder.relative_to(root)}", *names]
        lines += [line for tag in sorted(reader.Tags()["tensors"]) for line in _tag(reader, tag)]
        texts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(texts)


def _tag(reader, tag):
    from google.protobuf import json_format
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util.tensor_util import make_ndarray

    metadata = reader.SummaryMetadata(tag)
    plugin = metadata.plugin_data.plugin_name
    if plugin == "hparams":
        data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
        yield f"{tag} ({plugin})"
        ((_, document),) = json_format.MessageToDict(data).items()
        for field, value in sorted(document.items()):
            items = sorted(value.items()) if isinstance(value, dict) else value
            for item in items if isinstance(items, list) else [items]:
                yield f"  {field}: {json.dumps(item, sort_keys=True)}"
        return
    name = f"{tag} ({', '.join(filter(None, (plugin, metadata.summary_description)))})"
    for event in reader.Tensors(tag):
        value = make_ndarray(event.tensor_proto)
        if plugin == "scalars":
            yield f"{name} {event.step} at {event.wall_time:.3f}: {float(value):.7g}"
        else:
            yield f"{name} {event.step} at {event.wall_time:.3f}:"
            yield from (f"  {line}" for line in value.item().decode().splitlines())
