#!/usr/bin/env python3
"""Many senders that mean harm, at one tracefs-recv: it stays below its memory,
and those who mean well are served.

A hundred of them; a thousand with TRACEFS_FULL_SOAK set.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from receiver_process import (FRAME_BYTES, WELCOME,  # noqa: E402
                              ForgedTraces, Receiver, connect, frame_ends,
                              hello, replies, send)

MAX_BLOCK = 1 << 20
MAX_MEMORY = 64 << 20
# The program itself, its libraries, and what the C library keeps of small
# pieces.
PROGRAM = 48 << 20


def message(msg_id, arguments):
    return struct.pack("<HI", msg_id, 6 + len(arguments)) + arguments


def text(arg_id, value):
    return struct.pack("<HI", 0x8000 | arg_id, len(value)) + value


def payload_of(block):
    return GOLDEN[ENDS[block] + FRAME_BYTES:ENDS[block + 1]]


def compressed(block):
    return struct.pack("<BBHI", 1, 0, 0, len(block)) + zlib.compress(block, 9)


def stored(block):
    return struct.pack("<BBHI", 0, 0, 0, len(block)) + block


def without_watermark(block):
    """Its operations wait for older ones, as long as they may."""
    at = block.index(struct.pack("<H", 144)) + 2
    return block[:at] + bytes(8) + block[at + 8:]


def large(block, size=MAX_BLOCK - 64):
    """The block with a message of no meaning, up to that size."""
    return block + message(60000, text(9999, bytes(size - len(block) - 12)))


def bombs(serial):
    bomb = compressed(large(without_watermark(payload_of(1))))
    frames = [frame(serial, 0, compressed(payload_of(0)))]
    frames += [frame(serial, n, bomb) for n in range(1, 60)]
    return preamble(serial, "compress alg=zlib; tcp"), b"".join(frames)


def nested_bombs(serial):
    def nest(block):
        for level in range(8):
            block = compressed(block) if level % 2 == 0 else stored(block)
        return block
    bomb = nest(large(without_watermark(payload_of(1)), MAX_BLOCK - 4096))
    frames = [frame(serial, 0, nest(payload_of(0)))]
    frames += [frame(serial, n, bomb) for n in range(1, 30)]
    return preamble(serial, 8 * "compress; " + "tcp"), b"".join(frames)


def half_a_block(serial):
    whole = frame(serial, 0, bytes(1000))
    lie = whole[:4] + struct.pack("<I", MAX_BLOCK - 100) + whole[8:]
    return preamble(serial, "tcp"), lie + bytes(MAX_BLOCK // 2)


def behind_the_end(serial):
    last = len(ENDS) - 2
    frames = [frame(serial, n, payload_of(n)) for n in range(last + 1)]
    more = large(payload_of(1), 100_000)
    frames.append(20 * frame(serial, last + 1, more))
    return preamble(serial, "tcp"), b"".join(frames)


def many_names(serial):
    names = b"".join(
        text(161, struct.pack("<HHB", n, 0, 5) + b"A" * 10)
        for n in range(1000, 42_000))
    start = payload_of(0)
    length = struct.unpack_from("<I", start, 2)[0]
    arguments = start[6:length] + names
    block = message(1, arguments) + start[length:]
    return preamble(serial, "tcp"), frame(serial, 0, block[:MAX_BLOCK - 64])


def mutated(serial):
    frames = []
    for n in range(len(ENDS) - 1):
        payload = bytearray(payload_of(n))
        for _ in range(RANDOM.randrange(4)):
            payload[RANDOM.randrange(len(payload))] = RANDOM.randrange(256)
        frames.append(frame(serial, n, bytes(payload)))
    return preamble(serial, "tcp"), b"".join(frames)


def long_chain(serial):
    return preamble(serial, 15 * "compress; " + "tcp"), b""


def long_preamble(serial):
    return preamble(serial, "x" * 60_000 + "; tcp"), b""


def garbage(serial):
    return serial * 500, serial * 20_000


KINDS = [bombs, nested_bombs, half_a_block, behind_the_end, many_names,
         mutated, long_chain, long_preamble, garbage]
# Any chain will do for what is kept in files.
REFUSED = [long_chain, long_preamble, garbage]


class Crowd:
    """Connections that stay open, and what they still have to send."""

    def __init__(self, address):
        self.address = address
        self.left = []

    def add(self, kind, serial):
        first, rest = kind(serial)
        sock = connect(self.address)
        sock.sendall(hello(first) if kind is not garbage else first)
        answer = next(replies(sock), None)
        if kind in REFUSED and answer[0] != WELCOME:
            return
        assert answer[0] == WELCOME, f"{kind.__name__}: {answer}"
        sock.setblocking(False)
        self.left.append([sock, rest])
        self.push()

    def push(self):
        """Each sends what is taken from it at once."""
        for one in self.left:
            sock, rest = one
            try:
                while rest:
                    rest = rest[sock.send(rest[:1 << 18]):]
                while sock.recv(4096):
                    pass
            except BlockingIOError:
                pass
            except OSError:
                rest = b""
            one[1] = rest


def honest_trace(serial):
    return preamble(serial, "tcp") + b"".join(
        frame(serial, n, payload_of(n)) for n in range(len(ENDS) - 1))


def run(count, *mode):
    binary = f"{BIN}/tracefs-recv"
    with Receiver(binary, "--listen", "tcp:127.0.0.1:0", "--max-block",
                  str(MAX_BLOCK), "--max-clients", "3000", "--max-per-peer",
                  "3000", "--quiet", *mode,
                  stdout=subprocess.DEVNULL) as receiver:
        crowd = Crowd(receiver.address)
        slowest = 0
        for n in range(count):
            serial = struct.pack("<QQ", n, 1)
            crowd.add(KINDS[n % len(KINDS)], serial)
            if n % 25 == 24:
                began = time.monotonic()
                send(receiver.address,
                     honest_trace(struct.pack("<QQ", n, 2)))
                slowest = max(slowest, time.monotonic() - began)
        for _ in range(20):
            crowd.push()
            time.sleep(0.05)
        peak = int(receiver.status("VmHWM").split()[0]) << 10
        print(f"{' '.join(mode)}: {count} hostile senders, peak "
              f"{peak >> 20} MiB, an honest trace in at most {slowest:.1f} s")
        status, _, err = receiver.end()
        assert status == 0, err
        assert "sandbox refused" not in err, err
        return peak, slowest


def main():
    global BIN, GOLDEN, ENDS, RANDOM, preamble, frame
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--sanitized", action="store_true")
    given = parser.parse_args()
    BIN = given.bin
    RANDOM = random.Random(1)
    with open(f"{given.golden}/worked_example.trace", "rb") as file:
        GOLDEN = file.read()
    ENDS = frame_ends(GOLDEN)
    forged = ForgedTraces(GOLDEN)
    preamble, frame = forged.preamble, forged.frame
    count = 1000 if os.environ.get("TRACEFS_FULL_SOAK") else 100
    failed = False
    with tempfile.TemporaryDirectory(prefix="tracefs-hostile-") as out:
        for bound, mode in (
                (MAX_MEMORY, ("--format", "jsonl", "--max-memory",
                              str(MAX_MEMORY))),
                (0, ("--out", out, "--max-trace", "64M"))):
            peak, slowest = run(count, *mode)
            if peak > bound + PROGRAM and not given.sanitized:
                print(f"FAILED: more than {(bound + PROGRAM) >> 20} MiB")
                failed = True
            # Fair shares of two busy processors, and no more than that.
            if slowest > 30:
                print("FAILED: honest senders waited")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
