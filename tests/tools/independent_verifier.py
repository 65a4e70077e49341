#!/usr/bin/env python3
"""Checks and undoes the output filters of a trace: FORMAT.md, sections 1, 2
and 11, and nothing of our own code. Usage: independent_verifier.py TRACE KEY...
Prints "NUMBER ok SHA256-OF-THE-BLOCK" or "NUMBER bad REASON" for each frame.
Needs the openssl command; age and zstd where the trace does, and the module
cryptography for AES-GCM and ChaCha20-Poly1305."""
import collections, hashlib, hmac, re, struct, subprocess, sys, tempfile, zlib


def run(*command, data=b""):
    return subprocess.run(command, input=data, check=True,
                          capture_output=True).stdout


def crc32c(data, crc=0):
    crc ^= 0xffffffff
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def crc_entry(i):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    return i


CRC = [crc_entry(i) for i in range(256)]


def hkdf(key, salt, info, length):
    seed = hmac.digest(salt or bytes(32), key, "sha256")
    out = block = b""
    while len(out) < length:
        block = hmac.digest(seed, block + info + bytes([len(out) // 32 + 1]),
                            "sha256")
        out += block
    return out[:length]


def leaf(seed, number):
    for bit in range(63, -1, -1):
        seed = hmac.digest(seed, b"tracefs-key-tree" +
                           bytes([number >> bit & 1]), "sha256")
    return seed


class Keys:
    def __init__(self, paths):
        self.by_id, self.identities = {}, []
        for path in paths:
            text = open(path).read()
            for word, digits in re.findall(r"^(tracefs-[a-z-]+-1) (\w{64})$",
                                           text, re.M):
                key = bytes.fromhex(digits)
                key_id = hashlib.sha256(b"tracefs-key-id-1" + key).digest()[:8]
                self.by_id[word, key_id] = key
            if "AGE-SECRET-KEY-1" in text:
                self.identities.append(path)


def signed(public, message, signature):
    der = bytes.fromhex("302a300506032b6570032100") + public
    with tempfile.NamedTemporaryFile() as key, \
            tempfile.NamedTemporaryFile() as sig, \
            tempfile.NamedTemporaryFile() as msg:
        for file, data in (key, der), (sig, signature), (msg, message):
            file.write(data)
            file.flush()
        return subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER",
             "-inkey", key.name, "-rawin", "-in", msg.name, "-sigfile",
             sig.name], capture_output=True).returncode == 0


def checksum(payload, serial, number, keys):
    alg, flags, head, _, key_id, sign_id, epoch = struct.unpack(
        "<BBHI8s8sQ", payload[:32])
    end = len(payload) - (64 if flags & 4 else 0)
    tagged = end - {1: 4, 2: 16, 3: 32}[alg]
    where = serial + struct.pack("<Q", number)
    message = b"tracefs-checksum" + where + payload[:tagged]
    if alg == 1:
        tag = struct.pack("<I", crc32c(message))
    else:
        if flags & 2:
            verify = keys.by_id["tracefs-seal-verify-1", key_id]
            key = leaf(hkdf(leaf(verify, epoch), serial, b"tracefs-seal-root",
                            32), number)
        else:
            key = keys.by_id["tracefs-secret-1", key_id]
        name = {2: "md5", 3: "sha256"}[alg]
        tag = run("openssl", "mac", "-digest", name, "-macopt",
                  "hexkey:" + key.hex(), "-binary", "HMAC", data=message)
    if not hmac.compare_digest(tag, payload[tagged:end]):
        raise ValueError("tag")
    if flags & 4 and not signed(
            keys.by_id["tracefs-sign-public-1", sign_id],
            hashlib.sha256(b"tracefs-signed-1" + where +
                           payload[:end]).digest(), payload[end:]):
        raise ValueError("signature")
    return payload[head:tagged]


def encrypt(payload, serial, number, keys):
    cipher, place, wrapped, _, key_id, salt, n = struct.unpack(
        "<BBHI8s16sQ", payload[:40])
    head, body = payload[:40 + wrapped], payload[40 + wrapped:]
    if place == 1:
        secret = keys.by_id["tracefs-secret-1", key_id]
    else:
        secret = run("age", "-d", "-i", keys.identities[0], data=head[40:])
    name, key_size, iv_size = {
        1: ("aes-256-gcm", 32, 12), 2: ("chacha20-poly1305", 32, 12),
        3: ("aes-128-ctr", 16, 16), 4: ("bf-cbc", 16, 8)}[cipher]
    root = hkdf(secret, serial + salt, b"tracefs-encrypt-root", 32)
    both = hkdf(leaf(root, n), b"", b"tracefs-encrypt " + name.encode(),
                key_size + iv_size)
    key, iv = both[:key_size], both[key_size:]
    if cipher > 2:
        legacy = ["-provider", "legacy", "-provider", "default"]
        return run("openssl", "enc", "-d", "-" + name, "-K", key.hex(), "-iv",
                   iv.hex(), *(legacy if cipher == 4 else []), data=body)
    from cryptography.hazmat.primitives.ciphers import aead
    kind = aead.AESGCM if cipher == 1 else aead.ChaCha20Poly1305
    return kind(key).decrypt(iv, body, b"tracefs-encrypt1" + serial +
                             struct.pack("<Q", number) + head)


def compress(payload, serial, number, keys):
    method, length = payload[0], struct.unpack("<I", payload[4:8])[0]
    block = payload[12 if method > 2 else 8:]
    if method:
        block = (zlib.decompress(block) if method % 2 else
                 run("zstd", "-d", "-c", data=block))
    if method > 2:
        if len(block) != struct.unpack("<I", payload[8:12])[0]:
            raise ValueError("length of the columns")
        block = merge(block)
    if len(block) != length:
        raise ValueError("length")
    return block


def merge(columns):
    at = 8

    def take(size):
        nonlocal at
        at += size
        return columns[at - size:at]

    def planes(count, width):
        value = [take(count) for _ in range(width)]
        return [int.from_bytes(bytes(column), "little")
                for column in zip(*value)]

    shapes = []
    count, messages = struct.unpack("<II", columns[:8])
    for _ in range(count):
        message, slots = struct.unpack("<HH", take(4))
        shapes.append((message, [struct.unpack("<HB", take(3))
                                 for _ in range(slots)]))
    order = planes(messages, 2)
    counts, widths = collections.Counter(), {}
    for number in order:
        message, slots = shapes[number]
        counts.update((argument, message) for argument, _ in slots)
        widths.update(slots)
    values = {}
    for key in sorted(counts):
        width = widths[key[0]]
        if width in (4, 8):
            column = planes(counts[key], width)
        else:
            lengths = ([width] * counts[key] if width else
                       planes(counts[key], 4))
            column = [take(length) for length in lengths]
        values[key] = iter(column)
    last, block = collections.Counter(), b""
    for number in order:
        message, slots = shapes[number]
        body = b""
        for argument, width in slots:
            value = next(values[argument, message])
            body += struct.pack("<H", argument)
            if width in (4, 8):
                value = (value + last[argument]) % 256 ** width
                if argument == 2:  # ARG_DURATION_NS: added to ARG_TIME_NS
                    last[1] += value
                else:
                    last[argument] = value
                value = value.to_bytes(width, "little")
            elif not width:
                body += struct.pack("<I", len(value))
            body += value
        block += struct.pack("<HI", message, len(body) + 6) + body
    return block


def main(path, *key_paths):
    keys = Keys(key_paths)
    data = open(path, "rb").read()
    size, = struct.unpack("<I", data[8:12])
    serial = data[16:32]
    chain = data[36:36 + struct.unpack("<H", data[32:34])[0]].decode()
    stages = [stage.split()[0] for stage in chain.split(";")][:-1]
    at = size
    while at < len(data):
        if data.startswith(data[:size], at):  # parts that follow each other
            at += size
            continue
        magic, length, number, of, kind, _, crc = struct.unpack(
            "<4sIQ16sHHI", data[at:at + 40])
        payload = data[at + 40:at + 40 + length]
        if (magic, of) != (b"TFB\x1a", serial) or \
                crc != crc32c(data[at:at + 36] + payload):
            raise SystemExit(f"no frame at byte {at}")
        if kind in (16, 17, 18):  # marks: section 2.1
            at += 40 + length
            continue
        try:
            for stage in reversed(stages):
                if stage not in ("async", "throttle"):
                    payload = globals()[stage](payload, serial, number, keys)
            print(number, "ok", hashlib.sha256(payload).hexdigest())
        except (ValueError, KeyError, zlib.error,
                subprocess.CalledProcessError) as error:
            print(number, "bad", repr(error))
        at += 40 + length


if __name__ == "__main__":
    main(*sys.argv[1:])
