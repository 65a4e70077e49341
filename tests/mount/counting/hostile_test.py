#!/usr/bin/env python3
"""Names that want to be something else, through every output there is: files,
processes, links, attributes, folders, rules and arguments are called so that
they would forge fields, lines or what a screen shows. Nothing that is printed
holds a character that a screen obeys, what is JSON parses, and in text the
forged words stand between quotes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
from tracefs_harness import Suite, expect, wait_until  # noqa: E402

FORGED = "uid=0 pid=1"
# Obeyed by screens: C0, C1, direction, line ends, no width, tags.
NASTY = "\x1b[2J\x9b\u061c\u200e\u202e\u2028\u2066\u2069\ufeff\U000e0041"
NAMES = ["x " + FORGED, f"a\n{FORGED}\r", NASTY, f'q" {FORGED} "', "b=c|d\\e",
         os.fsdecode(b"\xff\xfe " + FORGED.encode()),
         "\u00a0" + FORGED.replace(" ", "\u00a0")]
COMM = b"x " + FORGED.encode()  # 13 of 15 bytes
TITLE = f"t {FORGED}\\n\\xe2\\x80\\xae"

WORK = r"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, %r, 0, 0, 0)
os.chdir(sys.argv[1])
for name in %r:
    with open(name, "w") as out: out.write("x" * 9)
    os.rename(name, name + "2")
    os.symlink(name, name + "3")
    os.readlink(name + "3")
    try: os.setxattr(name + "2", "user." + name.strip("\n\r")[:100], b"v")
    except (OSError, UnicodeError): pass
    os.unlink(name + "3")
    try: os.rmdir(name + "2")
    except OSError: pass
"""


def hidden(character):
    code = ord(character)
    return (unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") or
            0xe0000 <= code <= 0xe007f)


def check_shown(what, raw):
    """Every character of it can be seen, and every byte is UTF-8."""
    text = raw.decode("utf-8")  # or it fails here
    bad = sorted({hex(ord(c)) for c in text if c != "\n" and hidden(c)})
    expect(not bad, f"{what}: {bad} in\n{text[:3000]!r}")
    return text


def unquoted(line):
    out, inside, i = "", False, 0
    while i < len(line):
        if line[i] == "\\":
            out += "" if inside else line[i:i + 2]
            i += 2
            continue
        if line[i] == '"':
            inside = not inside
        elif not inside:
            out += line[i]
        i += 1
    return out


def check_text(what, raw):
    for line in check_shown(what, raw).splitlines():
        expect(FORGED not in unquoted(line), f"{what}: forged in\n{line}")


def check_json(what, raw):
    lines = check_shown(what, raw).splitlines()
    for line in lines:
        json.loads(line)
    expect(lines, f"{what}: nothing")
    return lines


class HostileSuite(Suite):
    def checked(self, name, *arguments, may_fail=False):
        done = subprocess.run([os.path.join(self.bin, name), *arguments],
                              capture_output=True, check=False, timeout=120)
        expect(may_fail or done.returncode == 0,
               f"{name} {arguments}: {done.returncode} {done.stderr!r}")
        check_shown(f"{name} {arguments[:2]}, what it complains of",
                    done.stderr)
        return done.stdout


def mounted(suite):
    source = suite.folder("source " + FORGED + " \u202e")
    point = suite.folder("mnt " + FORGED + " traces x")
    rule = f'when seen(unlink by cname) then {{ alarm "{TITLE}" }}'
    outputs = {feed: suite.path("feed." + feed) for feed in
               ("native", "ocsf", "ecs", "cef")}
    config = suite.path("hostile.conf")
    syslog = suite.path("log")
    with open(config, "w", encoding="utf-8") as out:
        for feed, path in outputs.items():
            out.write("{ { } { stream = { STR_ALL }; %s } "
                      "{ file = \"%s\" feed = %s } }\n" % (rule, path, feed))
        out.write("{ { } { aggregate = { by path, cname, ext, name, dir } } "
                  "{ file = \"%s\" } }\n" % suite.path("aggregates"))
        out.write("{ { } { stream = { STR_ALL }; %s } { syslog = "
                  "\"unix:%s\" } }\n" % (rule, syslog))
    return source, point, config, outputs, syslog


def everything(suite):
    source, point, config, outputs, syslog = mounted(suite)
    log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    log.bind(syslog)
    log.settimeout(1)
    packets = []
    done = threading.Event()

    def listen():
        while not done.is_set():
            try:
                packets.append(log.recv(65536))
            except TimeoutError:
                pass

    listener = threading.Thread(target=listen)
    listener.start()
    suite.config = lambda *_: config
    metrics = suite.path("metrics.sock")
    mount = suite.mount(source, point, options=["--metrics",
                                                "unix:" + metrics])
    ctl = [os.path.join(suite.bin, "tracefs-ctl"), point]
    tails = {form: suite.background(subprocess.Popen(
        ctl + ["tail", "--format", form], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)) for form in ("text", "jsonl")}
    follow = {form: suite.background(subprocess.Popen(
        ctl + ["rules", "--follow"] + form.split(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)) for form in ("", "--format json")}
    time.sleep(1)
    held = open(os.path.join(point, NAMES[0]), "w", encoding="utf-8")
    subprocess.run([sys.executable, "-c", WORK % (COMM, NAMES), point],
                   check=True)

    def alarms():
        answer = json.loads(suite.checked("tracefs-ctl", point, "rules",
                                          "--format", "json"))
        return all(rule["alarms"] for rule in answer["rules"])

    wait_until(alarms, "the alarms")
    for what in ("list", "stats", "explain", "rules"):
        check_text(f"ctl {what}", suite.checked("tracefs-ctl", point, what))
        check_json(f"ctl {what} --format json",
                   suite.checked("tracefs-ctl", point, what, "--format", "json"))
    check_text("top", suite.checked("tracefs-ctl", point, "top", "--rounds",
                                    "1", "--interval", "300ms"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(metrics)
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
        page = connection.makefile("rb").read().split(b"\r\n\r\n", 1)[1]
    check_text("metrics", page)
    time.sleep(1)  # for a look of --follow, and a flush of tail
    held.close()
    mount.unmount()
    done.set()
    listener.join()
    for form, tail in tails.items():
        out, err = tail.communicate(timeout=60)
        (check_json if form == "jsonl" else check_text)(f"tail {form}", out)
        check_shown("tail", err)
    for form, process in follow.items():
        out, err = process.communicate(timeout=60)
        expect(process.returncode == 0, f"rules --follow: {err!r}")
        expect(out, f"rules --follow {form}: nothing")
        (check_json if form else check_text)(f"rules --follow {form}", out)
    check_shown("the daemon", mount.messages().encode())
    expect(any(b" alarm - " in packet for packet in packets), "syslog: alarms")
    for packet in packets:
        check_shown("syslog", packet.replace(b"\xef\xbb\xbf", b"", 1))
    for feed in ("ocsf", "ecs"):
        with open(outputs[feed], "rb") as lines:
            alarms_seen = [line for line in check_json(feed, lines.read())
                           if '"rule"' in line]
        expect(alarms_seen, f"{feed}: no alarm")
    with open(outputs["cef"], "rb") as lines:
        check_shown("cef", lines.read())
    traces = [outputs["native"], suite.path("aggregates")]
    for form in ("text", "jsonl", "ocsf", "ecs", "cef"):
        out = suite.checked("tracefs-dump", "--format", form, *traces)
        if form == "text":
            check_text("dump", out)
        elif form == "cef":
            check_shown("dump", out)
        else:
            check_json("dump " + form, out)
    for extra in ([], ["--format", "jsonl"]):
        check_shown("dump --stats",
                    suite.checked("tracefs-dump", "--stats", *extra, *traces))
        check_shown("dump --header",
                    suite.checked("tracefs-dump", "--header", *extra, *traces))
    return f"{len(packets)} packets of syslog"


def arguments(suite):
    """What commands say about names that they are given."""
    for number, name in enumerate(NAMES):
        folder = suite.folder(f"arguments{number}")
        path = os.path.join(folder, name)
        with open(path, "wb") as out:
            out.write(b"TRACEFS\nno trace at all " + os.fsencode(name) * 9)
        for command in (
                ["tracefs-dump", path], ["tracefs-dump", path + "none"],
                ["tracefs-dump", "--format", name, path],
                ["tracefs-dump", "--filter", f"name = {name} AND", path],
                ["tracefs-dump", "--key", path, path],
                ["tracefs-dump", folder], ["tracefs-dump", "--" + name],
                ["tracefs-verify", path], ["tracefs-verify", path + "none"],
                ["tracefs-verify", "--key", path, path],
                ["tracefs-anon", "--policy", path, path, path + ".out"],
                ["tracefs-anon", "--audit", path],
                ["tracefs-keygen", name], ["tracefs-keygen", "secret", path],
                ["tracefs-mount", "--check", path],
                ["tracefs-mount", "--check", path + "none"],
                ["tracefs-mount", path, folder, "--config", path],
                ["tracefs-ctl", path, "list"], ["tracefs-ctl", folder, name],
                ["tracefs-ctl", folder, "add", path],
                ["tracefs-recv", "--listen", name, "--out", path],
                ["tracefs-recv", "--listen", "unix:" + path, "--out", path]):
            if any("\0" in word for word in command):
                continue
            out = suite.checked(*command, may_fail=True)
            check_shown(str(command), out)


def listens(path):
    """Its name is there a moment before anybody listens."""
    with socket.socket(socket.AF_UNIX) as peer:
        return peer.connect_ex(path) == 0


def receiver(suite):
    """A peer that says anything."""
    for number, name in enumerate(NAMES):
        path = suite.path(f"recv{number}.sock")
        out = suite.folder(f"received{number}")
        process = suite.background(subprocess.Popen(
            [os.path.join(suite.bin, "tracefs-recv"), "--listen",
             "unix:" + path, "--out", out], stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL))
        wait_until(lambda p=path: listens(p), "the receiver")
        for text in (b"\x00" * 40 + os.fsencode(name), os.fsencode(name) * 50):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
                try:
                    peer.sendall(text)
                    peer.shutdown(socket.SHUT_WR)
                    peer.settimeout(5)
                    peer.recv(1000)
                except OSError:
                    pass
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        check_shown("recv", said)


def main():
    suite = HostileSuite("hostile", __doc__)
    suite.run("hostile names in every output of a mount", everything, suite)
    suite.run("hostile names as arguments", arguments, suite)
    suite.run("hostile peers of a receiver", receiver, suite)
    suite.finish()


if __name__ == "__main__":
    main()
