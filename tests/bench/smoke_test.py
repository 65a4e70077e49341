"""bench/run --smoke: every workload, configuration and study works, as far as
its programs are installed, and nothing is left behind. Figures mean nothing."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from evaluation import experiments  # noqa: E402
from evaluation.peers import PEERS  # noqa: E402
from evaluation.scratch import PREFIX, mounts  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("needs root and /dev/fuse")
        return 77
    before = mounts()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        status = subprocess.run(
            [ROOT / "bench/run", "--smoke", "--quiet", "--build", args.build,
             "--out", out], timeout=280, check=False).returncode
        if status != 0:
            print(f"bench/run: status {status}")
            return 1
        summary = json.loads((out / "summary.json").read_text())
        cells = {(c["experiment"], c["configuration"]): c
                 for c in summary["cells"]}
        missing = [
            (e.name, c) for e in experiments.thinned(experiments.EXPERIMENTS)
            for c in e.configurations if (e.name, c) not in cells]
        silent = [k for k, c in cells.items()
                  if "mean" not in c and "error" not in c]
        unrecorded = [
            k for k, c in cells.items()
            if k[1].startswith("full") and k[1] not in PEERS and "mean" in c
            and k[0] not in ("requests",) and not c.get("events")]
        lossy = [k for k, c in cells.items()
                 if k[1].startswith("full-data") and c.get("lost")]
        wrong = [f"{what}: {found}" for what, found in (
            ("no row for", missing), ("neither figure nor reason", silent),
            ("recorded nothing", unrecorded), ("lost events", lossy),
            ("left mounted", [m for m in mounts() if m not in before
                              and PREFIX in m[0]]),
            ("not written", [f for f in ("README.md", "tables.md",
                                         "environment.json", "samples.jsonl",
                                         "finished")
                             if not (out / f).exists()])) if found]
        print("\n".join(wrong))
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
