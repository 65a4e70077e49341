#!/usr/bin/env python3
"""Lists every message of a trace, knowing its syntax and nothing else.

Written from tracefs/format/FORMAT.md alone, with Python's standard library
only: names, widths and types come from the trace's own START message. Tests use
it as the oracle for the reading library, and it shows that a third party can
read a trace.

usage: independent_reader.py TRACE

Prints one line a message: its block, its name and its arguments (numbers in
decimal, everything else in hex), and a line for whatever could not be read.
Exits with 1 if there was any such line.
"""

import struct
import sys

PREAMBLE_MAGIC = b"TRACEFS\n"
FRAME_MAGIC = b"TFB\x1a"
HEADER_BYTES = 40
MAX_PAYLOAD_BYTES = 67108864
FORMAT_VERSION = 1
HAS_LENGTH = 0x8000
PART, PART_END, SNAPSHOT = 16, 17, 18  # section 2.1
START_WIDTHS = {140: 8, 141: 8, 151: 4}  # section 5: the same in every version


def make_crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Refused(Exception):
    """The input is not a trace that this reader can read."""


def read_preamble(data):
    """Section 1. Returns (bytes of the preamble, serial, chain text)."""
    if data[:8] != PREAMBLE_MAGIC:
        raise Refused("not a trace")
    if len(data) < 12:
        raise Refused("cut within the preamble")
    (length,) = struct.unpack_from("<I", data, 8)
    if not 40 <= length <= 65536:
        raise Refused("preamble length out of range")
    if len(data) < length:
        raise Refused("cut within the preamble")
    if struct.unpack_from("<I", data, length - 4)[0] != crc32c(
            data[:length - 4]):
        raise Refused("wrong CRC of the preamble")
    _version, min_reader = struct.unpack_from("<HH", data, 12)
    if min_reader > FORMAT_VERSION:
        raise Refused("needs reader version %d, this one is %d" %
                      (min_reader, FORMAT_VERSION))
    (chain_length,) = struct.unpack_from("<H", data, 32)
    if chain_length > length - 40:
        raise Refused("chain text out of range")
    return length, data[16:32], data[36:36 + chain_length]


def frame_at(data, offset, serial):
    """Section 2. The frame at an offset: (sequence, kind, payload), or None."""
    header = data[offset:offset + HEADER_BYTES]
    if len(header) < HEADER_BYTES or header[:4] != FRAME_MAGIC:
        return None
    length, sequence = struct.unpack_from("<IQ", header, 4)
    kind, _reserved, crc = struct.unpack_from("<HHI", header, 32)
    payload = data[offset + HEADER_BYTES:offset + HEADER_BYTES + length]
    if (length > MAX_PAYLOAD_BYTES or header[16:32] != serial or
            len(payload) < length or crc32c(header[:36] + payload) != crc):
        return None
    return sequence, kind, payload


def frames(data, offset, serial):
    """Yields (sequence, kind, payload); strings tell of what was skipped."""
    last = -1
    preamble = data[:offset]
    elsewhere = 0  # blocks below, but for block 0, are in parts before
    head_may_follow = snapshot = False
    while offset < len(data):
        if data.startswith(preamble, offset):
            offset += len(preamble)
            continue
        frame = frame_at(data, offset, serial)
        if frame is None:
            begin = offset
            while frame is None and offset < len(data):
                offset = data.find(FRAME_MAGIC, offset + 1)
                if offset < 0:
                    offset = len(data)
                else:
                    frame = frame_at(data, offset, serial)
            yield "skipped %d bytes at %d" % (offset - begin, begin)
            if frame is None:
                return
        sequence, kind, payload = frame
        if kind in (PART, PART_END, SNAPSHOT):
            if kind == PART:
                head_may_follow = True
                if last < 0:
                    elsewhere = struct.unpack_from("<Q", payload, 8)[0]
            snapshot = snapshot or kind == SNAPSHOT
            offset += HEADER_BYTES + len(payload)
            continue
        copy = head_may_follow and sequence == 0 and last >= 0
        head_may_follow = False
        if copy:
            offset += HEADER_BYTES + len(payload)
            continue
        if last == 0 and elsewhere:
            last = min(elsewhere, sequence) - 1
        if sequence <= last:
            yield "duplicate block %d" % sequence
        else:
            if sequence != last + 1 and not snapshot:
                yield "missing %d blocks from %d" % (sequence - last - 1,
                                                     last + 1)
            last = sequence
            yield frame
        offset += HEADER_BYTES + len(payload)


def messages(block):
    """Section 4. Yields (msg_id, bytes of the arguments), or None at a lie."""
    offset = 0
    while offset < len(block):
        if len(block) - offset < 6:
            yield None
            return
        msg_id, length = struct.unpack_from("<HI", block, offset)
        if length < 6 or length > len(block) - offset:
            yield None
            return
        yield msg_id, block[offset + 6:offset + length]
        offset += length


def arguments(data, widths):
    """Section 4. Yields (arg_id, has_length, value), or None at a lie."""
    offset = 0
    while offset < len(data):
        if len(data) - offset < 2:
            yield None
            return
        (arg_id,) = struct.unpack_from("<H", data, offset)
        offset += 2
        has_length = bool(arg_id & HAS_LENGTH)
        arg_id &= ~HAS_LENGTH
        if has_length:
            if len(data) - offset < 4:
                yield None
                return
            (width,) = struct.unpack_from("<I", data, offset)
            offset += 4
        else:
            width = widths.get(arg_id, 0)
            if width == 0:
                yield None
                return
        if width > len(data) - offset:
            yield None
            return
        yield arg_id, has_length, data[offset:offset + width]
        offset += width


class Trace:
    """What START says: names of messages; names, widths, types of arguments."""

    def __init__(self):
        self.messages = {}
        self.names = {}
        self.types = {}
        self.widths = dict(START_WIDTHS)

    def learn(self, start):
        for argument in arguments(start, START_WIDTHS):
            if argument is None:
                return
            arg_id, _has_length, value = argument
            if arg_id == 160 and len(value) >= 2:
                (msg_id,) = struct.unpack_from("<H", value)
                self.messages[msg_id] = value[2:].decode()
            elif arg_id == 161 and len(value) >= 5:
                described, width, kind = struct.unpack_from("<HHB", value)
                self.names[described] = value[5:].decode()
                self.types[described] = kind
                if width:
                    self.widths[described] = width
                else:
                    self.widths.pop(described, None)

    def message_name(self, msg_id):
        return self.messages.get(msg_id, "MSG_%d" % msg_id)

    def show(self, argument):
        if argument is None:
            return "UNREADABLE"
        arg_id, has_length, value = argument
        name = self.names.get(arg_id, "ARG_%d" % arg_id)
        if has_length or len(value) not in (1, 2, 4, 8):
            return "%s=0x%s" % (name, value.hex())
        signed = self.types.get(arg_id) == 1
        return "%s=%d" % (name, int.from_bytes(value, "little",
                                               signed=signed))


def list_trace(data, out):
    """Writes the listing; returns whether all was well."""
    length, serial, chain = read_preamble(data)
    out.write("preamble serial=%s chain=%s\n" % (serial.hex(), chain.decode()))
    filters = [stage.split()[0] for stage in chain.decode().split(";")][:-1]
    for stage in filters:
        if stage not in ("async", "throttle"):
            raise Refused("cannot undo " + stage)
    trace = Trace()
    fine = True
    for frame in frames(data, length, serial):
        if isinstance(frame, str):
            out.write(frame + "\n")
            fine = False
            continue
        sequence, kind, payload = frame
        if kind != 1:
            out.write("%d unknown kind %d\n" % (sequence, kind))
            continue
        for message in messages(payload):
            if message is None:
                out.write("%d UNREADABLE\n" % sequence)
                fine = False
                continue
            msg_id, args = message
            if msg_id == 1:
                trace.learn(args)
            shown = [trace.show(a) for a in arguments(args, trace.widths)]
            fine = fine and "UNREADABLE" not in shown
            out.write("%d %s%s\n" % (sequence, trace.message_name(msg_id),
                                     "".join(" " + s for s in shown)))
    return fine


def main():
    if len(sys.argv) != 2:
        sys.stderr.write(__doc__)
        return 2
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    try:
        return 0 if list_trace(data, sys.stdout) else 1
    except Refused as reason:
        sys.stderr.write("%s: %s\n" % (sys.argv[1], reason))
        return 1


if __name__ == "__main__":
    sys.exit(main())
