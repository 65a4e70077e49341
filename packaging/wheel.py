#!/usr/bin/env python3
"""Makes a wheel of the Python module and the library that it reads with: a zip file
as PEP 427 has it, the same whenever it is made of the same."""

import argparse
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: tracefs
Version: {version}
Summary: Reads file-system traces that Tracefs has recorded
License: MIT
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"

Operations, processes and losses of traces as Python objects, tables and Arrow streams:

    import tracefs
    with tracefs.open("x.trace") as trace:
        trace.by("op")

Reports (Trace.report) and other tables are made by tracefs-report, which is not in
this wheel.
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: tracefs packaging/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def digest(data):
    sha = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + sha.decode().rstrip("=")


def files_of(module, library, version, tag):
    """The contents by name, the list of them last."""
    files = {}
    for path in sorted(module.rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            files[f"tracefs/{path.relative_to(module)}"] = path.read_bytes()
    # Where tracefs/_library.py looks first.
    files["tracefs/lib/libtracefs-reader.so.1"] = library.read_bytes()
    about = f"tracefs-{version}.dist-info"
    files[f"{about}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{about}/WHEEL"] = WHEEL.format(tag=tag).encode()
    record = "".join(f"{name},{digest(data)},{len(data)}\n"
                     for name, data in files.items())
    files[f"{about}/RECORD"] = (record + f"{about}/RECORD,,\n").encode()
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--module", required=True, type=pathlib.Path,
                        help="the folder of the module")
    parser.add_argument("--library", required=True, type=pathlib.Path,
                        help="libtracefs-reader.so.1")
    parser.add_argument("--machine", default=os.uname().machine)
    parser.add_argument("folder", type=pathlib.Path, help="where it goes")
    given = parser.parse_args()
    tag = f"py3-none-linux_{given.machine}"
    files = files_of(given.module, given.library, given.version, tag)
    if "tracefs/__init__.py" not in files:
        sys.exit(f"wheel.py: {given.module} is not the module: it has no "
                 "__init__.py; next: --module tracefs/reader/python/tracefs")
    # No zip file has earlier times.
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800)
    date = time.gmtime(epoch)[:6]
    place = given.folder / f"tracefs-{given.version}-{tag}.whl"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, date)
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data)
    print(place)


if __name__ == "__main__":
    main()
