"""A tracefs-recv to send to, and what it is sent."""
import signal
import socket
import struct
import subprocess

WELCOME, ACK, REFUSE = 1, 2, 3
PATIENCE_S = 60
FRAME_BYTES = 40


class Receiver:
    """A tracefs-recv that is ended, whatever happens."""

    def __init__(self, binary, *options, stdout=subprocess.PIPE):
        # Unbuffered: what is read ahead here would be missing at the end.
        self.process = subprocess.Popen([binary, *options], stdout=stdout,
                                        stderr=subprocess.PIPE, bufsize=0)
        self.said = []
        while True:
            line = self.process.stderr.readline().decode()
            self.said.append(line)
            if "listening on" in line or not line:
                break
        self.address = line.rpartition("listening on ")[2].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status") as file:
            return dict(line.split(":", 1) for line in file)[key].strip()

    def end(self):
        """Ends it; exit status, standard output, standard error."""
        self.process.send_signal(signal.SIGTERM)
        return self.await_end()

    def await_end(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return (self.process.returncode, (out or b"").decode(),
                "".join(self.said) + err.decode())


def connect(address, source=None):
    """A connection, of TCP from that address of this host."""
    kind, _, rest = address.partition(":")
    if kind == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection(
            (host, int(port)), source_address=source and (source, 0))
    sock.settimeout(PATIENCE_S)
    return sock


def hello(preamble):
    return (b"TFSNET1\n" + struct.pack("<IHHQ", 24 + len(preamble), 1, 0, 0) +
            preamble)


def replies(sock):
    """Type and fields of each message of a receiver."""
    buffer = b""
    while True:
        while len(buffer) < 4 or len(buffer) < struct.unpack_from(
                "<HH", buffer)[1]:
            more = sock.recv(4096)
            if not more:
                return
            buffer += more
        kind, length = struct.unpack_from("<HH", buffer)
        yield kind, buffer[4:length]
        buffer = buffer[length:]


def frame_ends(trace):
    """Where the preamble of a trace ends, and where each frame does."""
    ends = [struct.unpack_from("<I", trace, 8)[0]]
    while ends[-1] < len(trace):
        payload = struct.unpack_from("<I", trace, ends[-1] + 4)[0]
        ends.append(ends[-1] + FRAME_BYTES + payload)
    return ends


class Refused(AssertionError):
    """A sender was told that its trace is not taken."""


def send(address, trace, source=None):
    """Sends a trace until all of it is acknowledged; the number of the first
    block that it was asked for."""
    with connect(address, source) as sock:
        return send_over(sock, trace)


def send_over(sock, trace):
    """The same, over a connection that stays open."""
    ends = frame_ends(trace)
    answers = replies(sock)

    def expect(wanted):
        kind, fields = next(answers, (0, b""))
        if kind != wanted:
            raise Refused(fields[2:].decode(errors="replace") or "closed")
        return fields

    sock.sendall(hello(trace[:ends[0]]))
    first = struct.unpack_from("<Q", expect(WELCOME), 4)[0]
    sock.sendall(trace[ends[first]:])
    acked = first
    while acked < len(ends) - 1:
        acked = struct.unpack_from("<Q", expect(ACK))[0]
    return first


CRC_TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    CRC_TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class ForgedTraces:
    """Preambles and frames of any serial and content, with right checksums,
    after the pattern of a real trace."""

    def __init__(self, pattern):
        self.pattern = pattern
        self.magic_at = frame_ends(pattern)[0]

    def preamble(self, serial, chain="tcp"):
        """FORMAT.md, section 1."""
        text = chain.encode()
        head = (self.pattern[:8] + struct.pack("<I", 40 + len(text)) +
                self.pattern[12:16])
        body = head + serial + struct.pack("<HH", len(text), 0) + text
        return body + struct.pack("<I", crc32c(body))

    def frame(self, serial, sequence, payload):
        head = self.pattern[self.magic_at:self.magic_at + 4] + struct.pack(
            "<IQ", len(payload), sequence) + serial + struct.pack("<HH", 1, 0)
        return (head + struct.pack("<I", crc32c(head + payload)) + payload)

    def trace(self, number, size=64, blocks=1):
        """One of that serial, with blocks of so many bytes."""
        serial = struct.pack("<QQ", number, 7)
        return self.preamble(serial) + b"".join(
            self.frame(serial, n, bytes(size)) for n in range(blocks))
