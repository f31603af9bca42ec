"""Probe of an interpreter: its modules as JSON. It is run by that interpreter, of any Python 3.

Nothing here may need more than the oldest Python that somebody could name.
"""

import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the current directory; Python 3.10 has no flag that leaves it out

import contextlib
import importlib
import json
from importlib import metadata

print("python", flush=True)  # at once: imports may take a minute
missing, broken, versions = {}, {}, {}
for module, distribution in json.loads(sys.argv[1]).items():
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module + ".").startswith(error.name + "."):
            missing[module] = distribution
        else:
            broken[module] = "no module named " + repr(error.name)
    except Exception as error:  # noqa: BLE001 - whatever it is, the module cannot be used
        broken[module] = type(error).__name__ + ": " + str(error)
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions[distribution] = metadata.version(distribution)

print(
    json.dumps(
        {
            "python": list(sys.version_info[:2]),
            "executable": sys.executable,
            "missing": missing,
            "broken": broken,
            "versions": versions,
        }
    )
)
