"""What the kernel's proc connector tells of processes: forks, programs that are
run, ends. It takes root in the initial namespaces."""

import os
import socket
import struct
import threading

NETLINK_CONNECTOR = 11
CN_IDX_PROC = 1
FORK, EXEC, EXIT = 0x1, 0x2, 0x80000000
SO_RCVBUFFORCE = 33


class KernelEvents:
    """Between `with` and its end; then `.forks` as (parent pid, child tid, child
    pid), `.execs` as pids, `.ends` as (tid, pid, status). OSError where there
    is no connector."""

    def __enter__(self):
        self.forks, self.execs, self.ends = [], [], []
        self.lost = False
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM,
                                     NETLINK_CONNECTOR)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._socket.bind((0, CN_IDX_PROC))
        self._ask(1)
        self._socket.settimeout(5)
        self._socket.recv(4096)  # the answer
        self._socket.settimeout(0.2)
        self._stop = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()
        self._ask(2)
        self._socket.close()

    def _ask(self, operation):
        body = struct.pack("=IIIIHHI", CN_IDX_PROC, 1, 0, 0, 4, 0, operation)
        self._socket.send(struct.pack("=IHHII", 16 + len(body), 3, 0, 0,
                                      os.getpid()) + body)

    def _listen(self):
        while True:
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                if self._stop:
                    return
                continue
            except OSError:  # ENOBUFS
                self.lost = True
                continue
            self._take(data)

    def _take(self, data):
        # nlmsghdr 16, cn_msg 20, what, cpu, time 16; then what it is about.
        what, = struct.unpack_from("=I", data, 36)
        first, second, third, fourth = struct.unpack_from("=IIII", data, 52)
        if what == FORK:
            self.forks.append((second, third, fourth))
        elif what == EXEC:
            self.execs.append(second)
        elif what == EXIT:
            self.ends.append((first, second, third))

    def below(self, pid):
        """This process, and all that it and its children made."""
        found = {pid}
        for parent, _, child in self.forks:
            if parent in found:
                found.add(child)
        return found
