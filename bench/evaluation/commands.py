"""Commands that are run to their end."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import tempfile


class Failure(Exception):
    """Why a cell has no figure; the text is what its row says."""


def wait_exactly(process, timeout_s):
    """As Popen.wait(timeout), which looks every 50 ms only."""
    fd = os.pidfd_open(process.pid)
    try:
        if not select.select([fd], [], [], timeout_s)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout_s)
    finally:
        os.close(fd)
    return process.wait()


def run_command(argv, timeout_s, cwd=None):
    """Runs to the end or raises Failure; returns its standard output. It has a
    session of its own, so that all it started can be ended."""
    environment = dict(os.environ, LC_ALL="C", CCACHE_DISABLE="1")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen([str(a) for a in argv], stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL,
                                       cwd=cwd, env=environment,
                                       start_new_session=True)
        except OSError as error:
            raise Failure(f"{argv[0]}: {error.strerror}") from None
        try:
            status = wait_exactly(process, timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass  # it hangs in a file system; its end comes with that
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failure(f"hangs: not done after {timeout_s:.0f} s: "
                              f"{argv[0]}") from None
            raise
        out.seek(0)
        text = out.read().decode(errors="replace")
        if status != 0:
            err.seek(0)
            last = err.read().decode(errors="replace").strip().splitlines()
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise Failure(f"{pathlib.Path(str(argv[0])).name}: {how}"
                          + (f": {last[-1]}" if last else ""))
        return text
