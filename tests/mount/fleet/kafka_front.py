"""TLS and SASL in front of brokers of Kafka that have neither: the mock cluster
of librdkafka. Each broker gets a second address, which answers say in place of
its own; what has passed TLS, and proved who it is, is handed on."""

import asyncio
import base64
import hashlib
import hmac
import os
import ssl
import struct
import threading

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58


def string(text):
    return struct.pack(">h", len(text)) + text


class Scram:
    """The server's side of RFC 5802, without channel binding."""

    def __init__(self, algorithm, users):
        self.algorithm = algorithm
        self.users = users
        self.first = None

    def hmac(self, key, text):
        return hmac.digest(key, text, self.algorithm)

    def answer(self, message):
        """(bytes for the client, whether it is done); None: it is refused."""
        parts = dict(part.split(b"=", 1)
                     for part in message.split(b",") if b"=" in part)
        if self.first is None:
            bare = message.split(b",", 2)[2]
            parts = dict(part.split(b"=", 1) for part in bare.split(b","))
            self.salt = os.urandom(16)
            self.nonce = base64.b64encode(os.urandom(12))
            self.user = parts[b"n"].decode()
            self.first = (bare, b"r=" + parts[b"r"] + self.nonce + b",s="
                          + base64.b64encode(self.salt) + b",i=4096")
            return self.first[1], False
        if self.user not in self.users:
            return None
        salted = hashlib.pbkdf2_hmac(self.algorithm,
                                     self.users[self.user].encode(), self.salt,
                                     4096)
        client = self.hmac(salted, b"Client Key")
        stored = hashlib.new(self.algorithm, client).digest()
        without_proof = message[:message.rindex(b",p=")]
        whole = b",".join((*self.first, without_proof))
        proof = bytes(a ^ b for a, b in zip(client, self.hmac(stored, whole)))
        # As Kafka's own server looks at it: librdkafka before 2.6 has its own
        # part of it twice.
        if (base64.b64decode(parts[b"p"]) != proof
                or not parts[b"r"].endswith(self.nonce)):
            return None
        server = self.hmac(self.hmac(salted, b"Server Key"), whole)
        return b"v=" + base64.b64encode(server), True


class Plain:
    def __init__(self, users):
        self.users = users

    def answer(self, message):
        _, user, password = message.split(b"\0")
        right = self.users.get(user.decode()) == password.decode()
        return (b"", True) if right else None


class Front:
    """`tls`: an ssl.SSLContext, or None; `users`: {name: password}, who must
    prove it first. What came: `peers`, the names in clients' certificates, and
    `mechanisms`, with which users proved it."""

    def __init__(self, addresses, tls=None, users=None):
        self.tls = tls
        self.users = users
        self.peers = set()
        self.mechanisms = set()
        self.ports = {}
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self.run, args=(addresses.split(","), ready),
                         daemon=True).start()
        ready.wait(30)
        self.addresses = ",".join(f"127.0.0.1:{port}"
                                  for port in self.ports.values())

    def run(self, addresses, ready):
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda *_: None)

        async def start():
            for address in addresses:
                port = int(address.split(":")[1])
                server = await asyncio.start_server(
                    lambda reader, writer, to=port: self.serve(
                        reader, writer, to), "127.0.0.1", 0, ssl=self.tls)
                self.ports[port] = server.sockets[0].getsockname()[1]
        self.loop.run_until_complete(start())
        ready.set()
        self.loop.run_forever()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)

    async def serve(self, reader, writer, port):
        broker = None
        try:
            certificate = writer.get_extra_info("peercert")
            for part in (certificate or {}).get("subject", ()):
                self.peers.update(value for name, value in part
                                  if name == "commonName")
            broker = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(
                self.requests(reader, writer, broker[1]),
                self.answers(broker[0], writer))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass
        finally:
            for one in (writer, broker and broker[1]):
                if one:
                    one.close()

    async def requests(self, reader, writer, broker):
        proof = None
        proven = self.users is None
        try:
            while True:
                size = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack(">i", size)[0])
                api, version, number = struct.unpack(">hhi", body[:8])
                if self.users is None or api not in (SASL_HANDSHAKE,
                                                     SASL_AUTHENTICATE):
                    # Nothing but what versions there are, to strangers.
                    if not proven and api != API_VERSIONS:
                        return
                    if api == API_VERSIONS and self.users is not None:
                        # One that the mock has, so that it can be added to.
                        self.asked.add((id(writer), number))
                    broker.write(size + body)
                    await broker.drain()
                    continue
                at = 10 + max(struct.unpack(">h", body[8:10])[0], 0)
                if api == SASL_HANDSHAKE:
                    length = struct.unpack(">h", body[at:at + 2])[0]
                    name = body[at + 2:at + 2 + length].decode()
                    self.mechanisms.add(name)
                    proof = {"PLAIN": lambda: Plain(self.users),
                             "SCRAM-SHA-256": lambda: Scram("sha256",
                                                            self.users),
                             "SCRAM-SHA-512": lambda: Scram("sha512",
                                                            self.users),
                             }[name]()
                    answer = struct.pack(">hi", 0, 1) + string(name.encode())
                else:
                    length = struct.unpack(">i", body[at:at + 4])[0]
                    said = proof.answer(body[at + 4:at + 4 + length])
                    if said is None:
                        answer = (struct.pack(">h", AUTHENTICATION_FAILED)
                                  + string(b"Authentication failed: wrong "
                                           b"credentials")
                                  + struct.pack(">i", 0))
                    else:
                        proven = said[1]
                        answer = (struct.pack(">hh", 0, -1)
                                  + struct.pack(">i", len(said[0])) + said[0])
                    if version >= 1:
                        answer += struct.pack(">q", 0)
                writer.write(struct.pack(">ii", 4 + len(answer), number)
                             + answer)
                await writer.drain()
        finally:
            broker.close()

    asked = set()

    async def answers(self, broker, writer):
        try:
            while True:
                size = await broker.readexactly(4)
                body = await broker.readexactly(struct.unpack(">i", size)[0])
                number = struct.unpack(">i", body[:4])[0]
                if (id(writer), number) in self.asked:
                    self.asked.discard((id(writer), number))
                    body = self.with_sasl(body)
                for port, ours in self.ports.items():
                    body = body.replace(
                        b"127.0.0.1" + struct.pack(">i", port),
                        b"127.0.0.1" + struct.pack(">i", ours))
                writer.write(struct.pack(">i", len(body)) + body)
                await writer.drain()
        finally:
            writer.close()

    @staticmethod
    def with_sasl(body):
        """ApiVersions: also the two of SASL, in versions 0 and 1."""
        error, count = struct.unpack(">hi", body[4:10])
        if error == 0 and 0 < count < 1000:
            return (body[:6] + struct.pack(">i", count + 2)
                    + struct.pack(">hhh", SASL_HANDSHAKE, 0, 1)
                    + struct.pack(">hhh", SASL_AUTHENTICATE, 0, 1) + body[10:])
        # Version 3: a compact array of entries with tags.
        count = body[6]
        if error == 0 and 0 < count < 120:
            return (body[:6] + bytes([count + 2])
                    + struct.pack(">hhhb", SASL_HANDSHAKE, 0, 1, 0)
                    + struct.pack(">hhhb", SASL_AUTHENTICATE, 0, 1, 0)
                    + body[7:])
        return body


def tls_context(folder, name, clients=True):
    """What a server with that certificate of make_certificates has; `clients`
    must have one, too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, f"{name}.pem"),
                            os.path.join(folder, "server.key"))
    if clients:
        context.load_verify_locations(os.path.join(folder, "ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
    return context
