#!/usr/bin/env python3
"""Rules and alerts of packaging/prometheus by promtool, and what
tracefs-verify-textfile tells the node exporter of whole, changed and strange
traces."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
RULES = os.path.join(SOURCE, "packaging", "prometheus")


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def promtool():
    if not shutil.which("promtool"):
        print("skipped: no promtool; scripts/setup --services installs it")
        return False
    for words in (("check", "rules", "tracefs.rules.yml"),
                  ("test", "rules", "tracefs.test.yml")):
        done = subprocess.run(["promtool", *words], cwd=RULES, check=False,
                              capture_output=True, text=True)
        expect(done.returncode == 0, words, done.stdout, done.stderr)
    # Every alert is tried: it fires in one of the tests.
    with open(os.path.join(RULES, "tracefs.rules.yml"), encoding="utf-8") as file:
        alerts = set(re.findall(r"alert: (\w+)", file.read()))
    with open(os.path.join(RULES, "tracefs.test.yml"), encoding="utf-8") as file:
        fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", file.read()))
    expect(len(alerts) > 8 and alerts == fired, alerts ^ fired)
    return True


def textfile(commands, folder):
    golden = os.path.join(SOURCE, "tests", "golden", "v1", "every_operation.trace")
    traces = os.path.join(folder, "traces")
    for host in ("whole", "changed", 'od"d'):
        os.makedirs(os.path.join(traces, host))
        shutil.copy(golden, os.path.join(traces, host, "t.trace"))
    path = os.path.join(traces, "changed", "t.trace")
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    out = os.path.join(folder, "tracefs.prom")
    script = [os.path.join(RULES, "tracefs-verify-textfile"), traces, out,
              "--accept-unsealed"]
    environment = dict(os.environ, PATH=commands + ":" + os.environ["PATH"])
    subprocess.run(script, check=True, env=environment)
    with open(out, encoding="utf-8") as file:
        page = file.read()
    status = dict(re.findall(
        r'^tracefs_verify_exit_status\{trace_host="((?:[^"\\]|\\.)*)"\} (\d+)$',
        page, re.M))
    expect(status == {"whole": "0", "changed": "1", 'od\\"d': "0"}, page)
    expect(len(re.findall(r"^tracefs_verify_time_seconds\{", page, re.M)) == 3, page)
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                              capture_output=True, check=False)
        expect(done.returncode == 0, done.stdout, done.stderr)
    # Who is asked for nothing makes nothing.
    done = subprocess.run(script[:1], check=False, capture_output=True, text=True)
    expect(done.returncode == 2 and "usage" in done.stderr, done)
    expect(os.listdir(folder).count("tracefs.prom") == 1
           and len(os.listdir(folder)) == 2, os.listdir(folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    commands = os.path.abspath(parser.parse_args().bin)
    with tempfile.TemporaryDirectory(prefix="tracefs-fleet-") as folder:
        textfile(commands, folder)
    print("ok: textfile")
    if promtool():
        print("ok: promtool")


if __name__ == "__main__":
    main()
