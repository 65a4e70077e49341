"""Mounts with --survive yes, the users who notice everything (restless.py), and
what the trace must have of them."""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (Failure, decode_event, expect,  # noqa: E402
                             expect_equal)
from users import restless_users  # noqa: E402

USERS = 4


class Succession:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0
        self.base = None  # of the last mount: a folder of the suite

    def mount(self, output='file = "%s"', filter_text="", source=None, **more):
        self.number += 1
        self.base = base = f"case-{self.number}"
        source = source or self.suite.folder(base, "source", mode=0o777)
        point = self.suite.folder(base, "mnt")
        trace = self.suite.path(base, "trace")
        mount = self.suite.mount(
            source, point,
            (filter_text, "STR_ALL", output.replace("%s", trace)),
            transport="dev", options=("--survive", "yes"), **more)
        return source, point, trace, mount

    def users(self, source, point, seconds):
        return restless_users(self.suite, source, point, seconds, USERS,
                              self.suite.options.seed)

    def outcome(self, users, mount):
        """What they have noticed, which must be nothing."""
        operations = 0
        longest = (0, "")
        done = []
        for user in users:
            try:
                out, errors = user.said()
            except subprocess.TimeoutExpired:
                raise Failure("a user hangs:\n" + mount.messages()) from None
            expect(user.poll() == 0,
                   f"a user noticed:\n{errors}\n{mount.messages()}")
            said = json.loads(out)
            operations += said["operations"]
            longest = max(longest, (said["longest_s"], said["longest"]))
            done.append(said)
        return operations, longest, done

    def compare(self, trace, done, dump=(), verify=(), traces=None):
        """All that users have done is in the trace, and nothing twice. `dump`
        and `verify`: options with keys; `traces`: where it is, if elsewhere."""
        files = sorted(glob.glob(traces or trace + "*"))
        read = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-dump"), "--format", "jsonl",
             *dump, *files], capture_output=True, check=False)
        expect_equal(read.returncode, 0, read.stderr.decode()[-2000:])
        events = [decode_event(line) for line in read.stdout.splitlines()]
        found = collections.Counter()
        writes = collections.Counter()
        for event in events:
            if event["result"] < 0:
                continue
            parts = event.get("path", "").split("/")
            if event["op"] == "write":
                writes[parts[1]] += 1
            found[(event["op"], parts[1], parts[-1])] += 1
        wanted = collections.Counter()
        for i, said in enumerate(done):
            for operation, name in said["done"]:
                wanted[(operation, f"user-{i}", name)] += 1
        wrong = [(key, found[key], count) for key, count in wanted.items()
                 if found[key] != count]
        expect(not wrong, f"{len(wrong)} operations are not in the trace as "
               f"often as they were done: {wrong[:10]}")
        for i, said in enumerate(done):
            expect_equal(writes[f"user-{i}"], said["writes"],
                         f"writes of user-{i} in the trace")
        self.suite.command("tracefs-verify", *verify, *files)
        return len(events), len(files)

    def known(self, point):
        """Files that the kernel knows, but for the root."""
        return json.loads(self.suite.command(
            "tracefs-ctl", point, "stats", "--format", "json"))["inodes"] - 1

    def forgets_all(self, point):
        """Nothing is kept of what the kernel does not know any more."""
        for name in os.listdir(point):
            shutil.rmtree(os.path.join(point, name))
        end = time.monotonic() + 10
        while self.known(point) and time.monotonic() < end:
            time.sleep(0.1)
        expect(not self.known(point),
               f"{self.known(point)} files are not forgotten")

    def keys(self):
        """Of a seal and of a cipher."""
        made = self.suite.folder(f"keys-{self.number}")
        for kind, *names in (("seal", "state", "verify"),
                             ("sign", "sign", "public"), ("secret", "key")):
            self.suite.command("tracefs-keygen", kind,
                               *(os.path.join(made, name) for name in names))
        return made
