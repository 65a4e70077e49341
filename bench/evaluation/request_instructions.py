"""What the daemon itself does for each operation: instructions, allocations,
locks and copies, as callgrind counted them, and switches of its threads.

These are the same on every host that runs the same program; only the switches
are as the scheduler of this one had them."""

import pathlib
import re
import subprocess
import time

from .scratch import run_command

# What is counted by its calls, by the names that libraries give it.
COUNTED = {
    "allocations": ("malloc", "calloc", "realloc", "operator new"),
    "locks": ("pthread_mutex_lock", "pthread_rwlock_rdlock",
              "pthread_rwlock_wrlock"),
    "copies": ("memcpy", "memmove"),
}


class Callgrind:
    """A daemon under callgrind: words before its command, then one dump for
    each operation."""

    def __init__(self, folder, shim):
        """`shim`: workload/older_kernel.cc, built."""
        self.folder = pathlib.Path(folder)
        self.prefix = ["env", f"LD_PRELOAD={shim}", "valgrind",
                       "--tool=callgrind", "--quiet",
                       f"--callgrind-out-file={self.folder}/instructions"]
        self.pid = None
        self.dumps = 0

    def dump(self):
        """What was counted since the last dump."""
        run_command(["callgrind_control", f"--dump=n{self.dumps}",
                     str(self.pid)], 30)
        self.dumps += 1
        path = self.folder / f"instructions.{self.dumps}"
        end = time.monotonic() + 10
        while not (path.exists() and "totals:" in
                   path.read_text(errors="replace")[-200:]):
            if time.monotonic() > end:
                raise OSError(f"callgrind wrote no {path.name}")
            time.sleep(0.02)
        return counts(path.read_text(errors="replace"))


def counts(text):
    """{"instructions": n, "allocations": n, ...} of one dump."""
    found = dict.fromkeys(COUNTED, 0)
    found["instructions"] = int(re.findall(r"^(?:summary|totals): (\d+)", text,
                                           re.M)[-1])
    names = dict(re.findall(r"^c?fn=\((\d+)\) (.+)$", text, re.M))
    callee = None
    for line in text.splitlines():
        if line.startswith("cfn="):
            number = re.match(r"cfn=\((\d+)\)", line)[1]
            callee = re.sub(r"@.*|'\d+$", "", names.get(number, ""))
        elif line.startswith("calls=") and callee is not None:
            times = int(line[6:].split()[0])
            for what, functions in COUNTED.items():
                if callee.startswith(functions) or any(
                        f"__{f}_" in callee for f in functions):
                    found[what] += times
            callee = None
    return found


def switches(pid):
    """Context switches of all threads so far, and their processor time, ns."""
    total = ns = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
            ns += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has ended
        total += sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)",
                                                status))
    return total, ns


def missing():
    """Why nothing can be counted here, or None."""
    try:
        subprocess.run(["valgrind", "--version"], capture_output=True,
                       check=True)
    except (OSError, subprocess.CalledProcessError):
        return "valgrind is not installed (scripts/setup --bench)"
    return None
