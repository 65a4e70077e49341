#!/usr/bin/env python3
"""What the commands are made of, as SPDX 2.3 in JSON: the libraries they need when
they run, and those that were linked or included when they were built. The same
files give the same bits: nothing of the clock or of chance is in it, but the time
in SOURCE_DATE_EPOCH."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess

# Header-only, or linked statically: nothing in a binary tells of them.
BUILT_IN = ("libboost-dev", "nlohmann-json3-dev", "libstdc++-12-dev")


def output(*command):
    return subprocess.run([str(word) for word in command], check=True,
                          capture_output=True, text=True).stdout


def needed(binary):
    return set(re.findall(r"NEEDED.*\[(.*?)\]", output("readelf", "-d", binary)))


def package_of(library):
    """Name and version of the Debian package that brings a library."""
    places = output("ldconfig", "-p")
    found = re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", places, re.M)
    if not found:
        return None
    for path in (found[1], os.path.realpath(found[1]),
                 found[1].removeprefix("/usr"),
                 os.path.realpath(found[1]).removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", path], capture_output=True,
                              text=True, check=False)
        if done.returncode == 0:
            return version_of(done.stdout.split(":")[0])
    return None


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}",
                           package], capture_output=True, text=True,
                          check=False)
    return tuple(done.stdout.split()) if done.returncode == 0 else None


def libfuse_of(folder):
    """That of scripts/setup, by its stamp and its bits."""
    stamp = folder / "libfuse/stamp"
    archive = folder / "libfuse/lib/libfuse3.a"
    if not stamp.exists() or not archive.exists():
        return None
    version = re.search(r"version (\S+)", stamp.read_text())
    return (version[1] if version else "unknown",
            hashlib.sha256(archive.read_bytes()).hexdigest())


def identity(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def entry(name, version, licence="NOASSERTION", supplier="NOASSERTION", **more):
    return {"SPDXID": identity(name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "supplier": supplier, "licenseConcluded": licence,
            "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--deps", type=pathlib.Path, required=True,
                        help="what scripts/setup has built")
    parser.add_argument("folder", type=pathlib.Path, help="with the binaries")
    parser.add_argument("out", type=pathlib.Path)
    given = parser.parse_args()

    binaries = sorted(path for path in given.folder.rglob("*")
                      if path.is_file() and not path.is_symlink() and
                      path.open("rb").read(4) == b"\x7fELF")
    digest = hashlib.sha256()
    ours, links = [], []
    for path in binaries:
        bits = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(bits.encode())
        ours.append(entry(path.name, given.version, "MIT",
                          checksums=[{"algorithm": "SHA256",
                                      "checksumValue": bits}]))
    libraries = {}
    for path in binaries:
        for library in sorted(needed(path)):
            if library.startswith("libtracefs-reader"):
                continue
            found = package_of(library)
            if found is None:
                raise SystemExit(f"sbom: no package brings {library}")
            libraries[found[0]] = found[1]
            links.append((identity(path.name), "DYNAMIC_LINK",
                          identity(found[0])))
    others = [entry(name, version, supplier="Organization: Debian")
              for name, version in sorted(libraries.items())]
    for name in BUILT_IN:
        found = version_of(name)
        if found:
            others.append(entry(*found, supplier="Organization: Debian"))
            links.append((identity(name), "BUILD_DEPENDENCY_OF",
                          identity("tracefs")))
    libfuse = libfuse_of(given.deps)
    if libfuse:
        others.append(entry("libfuse", libfuse[0], "LGPL-2.1-only", checksums=[
            {"algorithm": "SHA256", "checksumValue": libfuse[1]}]))
        for path in binaries:
            if path.name in ("tracefs-mount", "tracefs-run"):
                links.append((identity(path.name), "STATIC_LINK",
                              identity("libfuse")))
    whole = entry("tracefs", given.version, "MIT")
    links += [(identity("tracefs"), "CONTAINS", one["SPDXID"]) for one in ours]
    links.append(("SPDXRef-DOCUMENT", "DESCRIBES", identity("tracefs")))
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT", "name": f"tracefs-{given.version}",
        "documentNamespace": "urn:tracefs:sbom:" + digest.hexdigest(),
        "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: tracefs-packaging-sbom"]},
        "packages": [whole, *ours, *others],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind,
             "relatedSpdxElement": other}
            for one, kind, other in sorted(set(links))]}
    given.out.write_text(json.dumps(document, indent=1) + "\n",
                         encoding="utf-8")


if __name__ == "__main__":
    main()
