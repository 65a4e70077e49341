#!/usr/bin/env python3
"""feed = ocsf | ecs | cef: what files, sockets and a real rsyslogd get is what
a native trace beside it has, as the published schemas want it."""

import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

from counting_suite import CountingSuite, work  # finds the harness
import schemas
from certificates import make_certificates
from tracefs_harness import Skip, expect, expect_equal, wait_until

TRACER = '{ { %s } { stream = { STR_ALL } } { %s } }'
# Failures are events, too; names of every kind.
NAMES = ["plain.c", "two words", 'quo"te', "back\\slash", "new\nline", "bar|bar",
         "eq=ual a=b", "n\u00e4me", os.fsdecode(b"\xff\xfe"), "]square"]


def awkward_work(point):
    work(point, files=12)
    for name in NAMES:
        path = os.path.join(point, name)
        with open(path, "wb", buffering=0) as out:
            out.write(b"x" * 10)
        os.rename(path, path + ".2")
        os.chmod(path + ".2", 0o4755)
        os.unlink(path + ".2")


def printable(path):
    """As the feeds write what is not UTF-8."""
    try:
        path.encode()
        return path
    except UnicodeEncodeError:
        # Backslashes and line ends are escaped with it.
        raw = os.fsencode(path)
        return "".join(chr(b) if 0x20 <= b < 0x7f and b != 0x5c
                       else "\\\\" if b == 0x5c else "\\x%02x" % b
                       for b in raw)


def wanted(events):
    return collections.Counter(settle((
        e["op"], printable(e["path2"] if e["op"] == "rename" else e["path"]),
        e.get("errno"))) for e in events if "path" in e)


def settle(key):
    """The kernel sends a release when it likes: one tracer may still find the
    file's old name, another the new one."""
    return (key[0], "", key[2]) if key[0] == "release" else key


OF_OCSF = (json.loads, schemas.check_ocsf, lambda e: (
    e["unmapped"]["op"], e["file_result" if e["activity_id"] == 5 else "file"]
    .get("path"), e.get("status_code")))
OF_ECS = (json.loads, schemas.check_ecs, lambda e: (
    e["event"]["action"], e["file"].get("path"),
    e.get("error", {}).get("code")))
OF_CEF = (lambda line: line, schemas.check_cef, lambda line: (
    lambda p: (p["act"], p.get("filePath"), p.get("reason")))(
        schemas.parse_cef(line)[1]))
FEEDS = {"ocsf": OF_OCSF, "ecs": OF_ECS, "cef": OF_CEF}


def got(lines, feed):
    read, check, key = FEEDS[feed]
    counter = collections.Counter()
    for line in lines:
        event = read(line)
        check(event)
        if key(event)[1] is not None:
            counter[settle(key(event))] += 1
    return counter


def compare(have, want, what):
    missing = want - have
    extra = have - want
    expect(not missing and not extra,
           f"{what}: missing {list(missing.items())[:5]}, "
           f"too many {list(extra.items())[:5]}")
    expect(sum(have.values()) > 150, f"{what}: only {sum(have.values())}")


def run(suite, name, output, also=lambda: None):
    """Works below a mount with a native tracer and one with `output`."""
    source = suite.folder(name, "source")
    point = suite.folder(name, "mnt")
    native = suite.path(name, "native")
    mount = suite.mount(source, point, TRACER % ("", f'file = "{native}"'),
                        TRACER % ("", output))
    also()
    awkward_work(point)
    mount.unmount()
    return wanted(suite.read(native))


def a_file_gets_events(suite):
    for feed in FEEDS:
        path = suite.path(f"{feed}.events")
        want = run(suite, f"file-{feed}", f'async; file = "{path}" feed = {feed}')
        with open(path, encoding="utf-8", newline="\n") as lines:
            compare(got((l[:-1] for l in lines), feed), want, feed)


def dump_makes_the_same_events(suite):
    source = suite.folder("dump", "source")
    point = suite.folder("dump", "mnt")
    trace = suite.path("dump", "trace")
    mount = suite.mount(source, point, TRACER % ("", f'file = "{trace}"'))
    awkward_work(point)
    mount.unmount()
    want = wanted(suite.read(trace))
    for feed in FEEDS:
        result = suite.tool("tracefs-dump", "--format", feed, trace)
        expect_equal(result.returncode, 0, result.stderr)
        compare(got(result.stdout.split("\n")[:-1], feed), want, feed)


def a_fifo_gets_events(suite):
    path = suite.path("events.fifo")
    os.mkfifo(path)
    data = []

    def read():
        with open(path, "rb") as fifo:
            data.append(fifo.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    want = run(suite, "fifo", f'fifo = "{path}" format = cef when_full = block')
    reader.join(20)
    lines = data[0].decode().split("\n")
    expect_equal(lines.pop(), "", "the last line")
    compare(got(lines, "cef"), want, "fifo")


class Receiver:
    """Takes connections, one after the other, and keeps what comes."""

    def __init__(self, family, address):
        self.socket = socket.socket(family)
        self.socket.bind(address)
        self.socket.listen()
        self.data = b""
        self.connections = 0
        self.drop_next = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            with client:
                while part := client.recv(65536):
                    self.data += part
                    if self.drop_next:
                        self.drop_next = False
                        break

    def close(self):
        self.socket.close()


def sockets_get_lines(suite):
    tcp = Receiver(socket.AF_INET, ("127.0.0.1", 0))
    address = "127.0.0.1:%d" % tcp.socket.getsockname()[1]
    want = run(suite, "tcp", f'tcp = "{address}" feed = ecs')
    compare(got(tcp.data.decode().split("\n")[:-1], "ecs"), want, "tcp")
    path = suite.path("lines.sock")
    unix = Receiver(socket.AF_UNIX, path)
    want = run(suite, "unix", f'unix = "{path}" feed = ocsf')
    compare(got(unix.data.decode().split("\n")[:-1], "ocsf"), want, "unix")


def a_receiver_may_come_late_and_go(suite):
    path = suite.path("late.sock")
    late = []

    def come():
        late.append(Receiver(socket.AF_UNIX, path))

    # It is away when the mount begins; everything waits for it.
    want = run(suite, "late", f'unix = "{path}" feed = cef retry = 100ms', come)
    compare(got(late[0].data.decode().split("\n")[:-1], "cef"), want, "late")


def an_absent_receiver_costs_no_more_than_its_events(suite):
    source = suite.folder("absent", "source")
    point = suite.folder("absent", "mnt")
    mount = suite.mount(
        source, point,
        TRACER % ("", f'unix = "{suite.path("nobody.sock")}" feed = cef '
                  "when_full = drop queue = 64K"))
    work(point, files=200)
    subprocess.run(["umount", point], check=True)
    mount.wait(3)  # and it says so
    expect("nobody.sock" in mount.messages(), mount.messages())


# --- rsyslogd

RSYSLOG = """
global(workDirectory="{dir}" maxMessageSize="16k"
       parser.escapeControlCharactersOnReceive="off" {tls})
module(load="imuxsock" SysSock.Use="off")
module(load="imtcp" {mode})
module(load="imudp")
template(name="t" type="string" string="%pri%\\t%protocol-version%\\t%timestamp:::date-rfc3339%\\t%hostname%\\t%app-name%\\t%procid%\\t%msgid%\\t%structured-data%\\t%msg%\\n")
input(type="imtcp" address="127.0.0.1" port="{tcp}")
input(type="imudp" address="127.0.0.1" port="{udp}" rcvbufSize="8m")
input(type="imuxsock" Socket="{dir}/log.sock" useSpecialParser="off" parseHostname="on")
action(type="omfile" file="{dir}/received" template="t")
"""


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rsyslog:
    def __init__(self, suite, name, tls):
        self.suite = suite
        self.dir = suite.folder(f"rsyslog-{name}")
        self.tcp = free_port(socket.SOCK_STREAM)
        self.udp = free_port(socket.SOCK_DGRAM)
        settings = {"dir": self.dir, "tcp": self.tcp, "udp": self.udp,
                    "tls": "", "mode": ""}
        if tls:
            make_certificates(self.dir, ("server", "client"),
                              "DNS:localhost,IP:127.0.0.1")
            settings["tls"] = (
                'DefaultNetstreamDriver="ossl" '
                f'DefaultNetstreamDriverCAFile="{self.dir}/ca.pem" '
                f'DefaultNetstreamDriverCertFile="{self.dir}/server.pem" '
                f'DefaultNetstreamDriverKeyFile="{self.dir}/server.key"')
            settings["mode"] = ('StreamDriver.Name="ossl" '
                                'StreamDriver.Mode="1" '
                                'StreamDriver.AuthMode="x509/certvalid"')
        self.config = os.path.join(self.dir, "conf")
        with open(self.config, "w", encoding="ascii") as out:
            out.write(RSYSLOG.format(**settings))
        self.start()

    def start(self):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = self.suite.background(subprocess.Popen(
                ["rsyslogd", "-n", "-f", self.config, "-i",
                 os.path.join(self.dir, "pid")], stdout=log, stderr=log))
        wait_until(self.listens, "rsyslogd")

    def listens(self):
        with socket.socket() as probe:
            return (probe.connect_ex(("127.0.0.1", self.tcp)) == 0
                    and os.path.exists(os.path.join(self.dir, "log.sock")))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def lines(self):
        try:
            with open(os.path.join(self.dir, "received"), encoding="utf-8",
                      newline="\n") as text:
                return [l for l in text.read().split("\n")[:-1]
                        if "\ttracefs\t" in l]
        except FileNotFoundError:
            return []


def check_headers(lines, facility):
    for line in lines:
        pri, version, time, host, app, procid, msgid, data, _ = line.split(
            "\t", 8)
        expect_equal((pri, version, app, data),
                     (str(facility * 8 + 6), "1", "tracefs", "-"), line)
        expect(procid.isdigit() and msgid.isalpha() or "_" in msgid, line)
        expect_equal(host, socket.gethostname(), line)
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"
                            r"(Z|[+-]\d\d:\d\d)", time), line)


def rsyslog_receives(suite):
    if not shutil.which("rsyslogd"):
        return Skip("no rsyslogd; scripts/setup --services installs it")
    plain = Rsyslog(suite, "plain", tls=False)
    ways = {"tcp": f"tcp:127.0.0.1:{plain.tcp}",
            "udp": f"udp:127.0.0.1:{plain.udp}",
            "unix": f"unix:{plain.dir}/log.sock"}
    for way, address in ways.items():
        before = len(plain.lines())
        want = run(suite, f"syslog-{way}",
                   f'syslog = "{address}" facility = local3 buf = 4096')
        wait_until(lambda: len(plain.lines()) - before >= sum(want.values()),
                   f"{way}: {len(plain.lines()) - before} of "
                   f"{sum(want.values())}", 20)
        lines = plain.lines()[before:]
        check_headers(lines, 19)
        compare(got((text_of(l) for l in lines), "cef"), want, way)
    plain.stop()
    return ", ".join(ways)


def text_of(line):
    return line.split("\t", 8)[8].removeprefix("\ufeff")


def rsyslog_receives_over_tls(suite):
    if not shutil.which("rsyslogd"):
        return Skip("no rsyslogd; scripts/setup --services installs it")
    if not any(os.path.exists(f"{d}/lmnsd_ossl.so") for d in (
            "/usr/lib/x86_64-linux-gnu/rsyslog", "/usr/lib/rsyslog",
            "/usr/lib/aarch64-linux-gnu/rsyslog")):
        return Skip("no rsyslog-openssl; scripts/setup --services installs it")
    server = Rsyslog(suite, "tls", tls=True)
    files = (f'ca = "{server.dir}/ca.pem" cert = "{server.dir}/client.pem" '
             f'key = "{server.dir}/client.key"')
    want = run(suite, "syslog-tls",
               f'async; syslog = "tls:127.0.0.1:{server.tcp}" {files}')
    wait_until(lambda: len(server.lines()) >= sum(want.values()), "tls", 20)
    check_headers(server.lines(), 16)
    compare(got((text_of(l) for l in server.lines()), "cef"), want, "tls")
    # A name the certificate does not have gets nothing.
    before = len(server.lines())
    source = suite.folder("wrong-name", "source")
    point = suite.folder("wrong-name", "mnt")
    mount = suite.mount(source, point, TRACER % (
        "", f'syslog = "tls:127.0.0.1:{server.tcp}" {files} '
        "name = somebody.else"))
    os.listdir(point)
    wait_until(lambda: "somebody.else" in mount.messages(), "a complaint", 20)
    subprocess.run(["umount", point], check=True)
    mount.wait(3)
    expect_equal(len(server.lines()), before, "messages without trust")
    server.stop()


def wrong_configs_are_refused(suite):
    cases = {
        'compress; file = "x" feed = cef':
            ":1:35: 'compress' changes the blocks that feed = cef has to read",
        'file = "x" feed = cfe': "one of native ocsf ecs cef",
        'file = "x" feed = cef rotate_size = 1M': "a feed is not rotated",
        'syslog = "tpc:a:1"': "did you mean 'tcp'?",
        'syslog = "127.0.0.1:514"': "does not begin with a kind of socket",
        'syslog = "tcp:somewhere"': "lacks a port",
        'syslog = "tls:a:6514"': "syslog: tls needs ca = FILE",
        'syslog = "tcp:a:514" ca = "x"': "ca belongs to tls:HOST:PORT",
        'syslog = "udp:a:514" facility = loca1': "local1",
        'tcp = "a:1" feed = ocsf when_full = fail':
            "with when_full = fail write a trace",
        'tcp = "a:1" feed = ocsf timeout = 5s': "has no meaning with a feed",
    }
    for output, text in cases.items():
        config = suite.config(TRACER % ("", output))
        result = suite.tool("tracefs-mount", "--check", config)
        expect_equal(result.returncode, 2, f"{output}: {result.stderr}")
        expect(text in result.stderr, f"{output}: {result.stderr}")
    config = suite.config('{ { } { aggregate = { by op } } '
                          '{ file = "x" feed = ecs } }')
    result = suite.tool("tracefs-mount", "--check", config)
    expect("feed = ecs has no place for counts" in result.stderr,
           result.stderr)


def main():
    suite = CountingSuite("feeds", __doc__)
    for case in (a_file_gets_events, dump_makes_the_same_events,
                 a_fifo_gets_events, sockets_get_lines,
                 a_receiver_may_come_late_and_go,
                 an_absent_receiver_costs_no_more_than_its_events,
                 wrong_configs_are_refused, rsyslog_receives,
                 rsyslog_receives_over_tls):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
