"""An ordinary user who tries again and again to make directories in a mount, and
says which he could make.

  intruder.py FOLDER PREFIX UID

A line for each that was made, "closed ERRNO" when that changes, until the file
FOLDER/../stop is there. The folder is opened by its name each time, so that
whatever lies there at that moment is what he gets. He ends with whoever started
him, after so many directories, and after so many seconds: nobody is left to fill
a disk.
"""

import ctypes
import os
import signal
import sys
import time

MOST = 20000
SECONDS = 180
PR_SET_PDEATHSIG = 1


def main():
    folder, prefix, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stop = os.path.join(os.path.dirname(folder), "stop")
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    # After the change of user, which takes it back.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    number = 0
    last = 0
    end = time.monotonic() + SECONDS
    while (number < MOST and time.monotonic() < end
           and not os.path.exists(stop)):
        name = f"{prefix}-{number}"
        try:
            os.mkdir(os.path.join(folder, name))
        except OSError as error:
            if error.errno != last:
                last = error.errno
                print(f"closed {last}", flush=True)
            continue
        last = 0
        number += 1
        print(name, flush=True)


main()
