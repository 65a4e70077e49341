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

# What scripts/setup builds.
OWN_LIBRARIES = {"libfuse": "libfuse3.a", "libmicrohttpd": "libmicrohttpd.a"}

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


def own_library(folder, name):
    """One that scripts/setup has built, by its stamp and its bits."""
    stamp = folder / name / "stamp"
    archive = folder / name / "lib" / OWN_LIBRARIES[name]
    if not stamp.exists() or not archive.exists():
        return None
    version = re.search(r"version (\S+)", stamp.read_text())
    return (version[1] if version else "unknown",
            hashlib.sha256(archive.read_bytes()).hexdigest())


def programs(folder):
    return sorted(path for path in folder.rglob("*")
                  if path.is_file() and not path.is_symlink() and
                  path.open("rb").read(4) == b"\x7fELF")


def parts_of(file, deps):
    """Name and version of the packages whose archives a linker took, by what it
    wrote down for make(1)."""
    found = set()
    for word in file.read_text().replace("\\\n", " ").split():
        path = pathlib.Path(word.rstrip(":"))
        if path.suffix not in (".a", ".o") or not path.is_absolute():
            continue
        path = path.resolve()
        for library in OWN_LIBRARIES:
            if path.is_relative_to((deps / library).resolve()):
                found.add((library, own_library(deps, library)[0]))
        done = subprocess.run(["dpkg-query", "-S", path], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            done = subprocess.run(
                ["dpkg-query", "-S", str(path).removeprefix("/usr")],
                capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.add(version_of(done.stdout.split(":")[0]))
    if not found:
        raise SystemExit(f"sbom: {file} names no archive")
    return sorted(found)


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
    parser.add_argument("--static", type=pathlib.Path,
                        help="a folder with binaries that are linked statically")
    parser.add_argument("--parts", type=pathlib.Path,
                        help="what their linker has said of them, NAME.parts")
    parser.add_argument("folder", type=pathlib.Path, help="with the binaries")
    parser.add_argument("out", type=pathlib.Path)
    given = parser.parse_args()

    binaries = programs(given.folder)
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
    for path in programs(given.static) if given.static else ():
        bits = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(bits.encode())
        name = path.name + "-static"
        ours.append(entry(name, given.version, "MIT",
                          checksums=[{"algorithm": "SHA256",
                                      "checksumValue": bits}]))
        for package, version in parts_of(given.parts / f"{path.name}.parts",
                                         given.deps):
            libraries[package] = version
            links.append((identity(name), "STATIC_LINK", identity(package)))
    others = [entry(name, version, supplier="Organization: Debian")
              for name, version in sorted(libraries.items())
              if name not in OWN_LIBRARIES]
    for name in BUILT_IN:
        found = version_of(name)
        if found:
            if name not in libraries:
                others.append(entry(*found, supplier="Organization: Debian"))
            links.append((identity(name), "BUILD_DEPENDENCY_OF",
                          identity("tracefs")))
    for name, licence in (("libfuse", "LGPL-2.1-only"),
                          ("libmicrohttpd", "LGPL-2.1-or-later")):
        built = own_library(given.deps, name)
        if built and (name == "libfuse" or name in libraries):
            others.append(entry(name, built[0], licence, checksums=[
                {"algorithm": "SHA256", "checksumValue": built[1]}]))
    if own_library(given.deps, "libfuse"):
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
