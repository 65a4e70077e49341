#!/usr/bin/env python3
"""What is counted (aggregates, rules, rates) where daemons are killed
(--survive yes): nothing is counted twice, and what is not known is said.

  counting_test.py --bin build/release/bin
"""

import collections
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import kill_daemon, let_daemon_die  # noqa: E402
from tracefs_harness import (Suite, expect,  # noqa: E402
                             expect_equal, wait_until)
from users import restless_users  # noqa: E402

USERS = 3


class Counting:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0

    def mount(self, *tracers, outputs=None, buffer=""):
        """Each tracer: its filter, and its drivers and rules."""
        self.number += 1
        base = f"case-{self.number}"
        source = self.suite.folder(base, "source", mode=0o777)
        self.point = self.suite.folder(base, "mnt")
        self.traces = [self.suite.path(base, f"trace-{i}")
                       for i in range(len(tracers))]
        config = self.suite.path(base, "config")
        with open(config, "w", encoding="utf-8") as file:
            for (filter_text, drivers), trace, chain in zip(
                    tracers, self.traces, outputs or [""] * len(tracers)):
                file.write('{ { %s } { %s } { %s file = "%s" %s } }\n'
                           % (filter_text, drivers, chain, trace, buffer))
        mount = self.suite.mount_command(
            [os.path.join(self.suite.bin, "tracefs-mount"), source, self.point,
             "--config", config, "--foreground", "--visibility", "auto",
             "--survive", "yes"], self.point)
        return source, mount

    def die(self, mount):
        let_daemon_die(mount, self.point)

    def lost(self, trace):
        """As the trace tells it."""
        said = re.findall(r"([0-9]+) operations were not recorded \(died\)",
                          self.suite.dump(trace).errors)
        return int(said[0]) if said else 0

    # --- cases

    def aggregates(self):
        options = self.suite.options
        source, mount = self.mount(
            ("", "stream = { STR_ALL }"),
            ("", "aggregate = { by op; every 1s; top 100; "
             "values errors bytes latency }"),
            ("", "aggregate = { by op pid; top 100; memory 4M }"))
        users = restless_users(self.suite, source, self.point, options.seconds,
                               USERS)
        kills = 0
        while any(user.poll() is None for user in users):
            time.sleep(1 / options.kills)
            kills += kill_daemon(mount)
        for user in users:
            _, errors = user.said()
            expect_equal(user.poll(), 0, f"a user noticed: {errors}")
        mount.unmount()
        expect(kills > 0, "nothing was killed")
        truth = collections.Counter(
            event["op"] for event in self.suite.read(self.traces[0]))
        expect_equal(self.lost(self.traces[0]), 0, "lost of the recorded ones")
        said = []
        for trace in self.traces[1:]:
            self.suite.command("tracefs-verify", "--accept-losses", trace)
            read = self.suite.dump(trace).events
            counted = collections.Counter()
            periods = collections.Counter()
            for one in read:
                (counted if one.get("scope") == "total" else periods)[
                    one["op"]] += one["count"]
            lost = self.lost(trace)
            # One that a thread was about to count when it was killed is counted
            # as lost, and counted when it comes again; one that it had recorded
            # already, and not counted, is recorded again.
            doubt = kills * 8
            for operation, count in counted.items():
                expect(count <= truth[operation] + doubt,
                       f"{operation}: {count} of {truth[operation]}")
            all_of_them = sum(truth.values())
            expect(abs(sum(counted.values()) + lost - all_of_them) <= doubt,
                   f"{sum(counted.values())} counted and {lost} lost of "
                   f"{all_of_them}")
            # Daemons that live for less than a quarter of a second leave
            # nothing.
            expect(sum(counted.values()) > all_of_them / 20,
                   f"only {sum(counted.values())} of {all_of_them}")
            if periods:
                expect(sum(periods.values()) <= sum(counted.values()),
                       "periods have more than all")
            said.append(f"{lost}")
        return (f"{kills} kills, {sum(truth.values())} operations, told as lost "
                f"by the aggregates: {', '.join(said)}")

    def throttled(self):
        """No more comes through because daemons die; what does not is told."""
        rate, block = 400, 4096
        _, mount = self.mount(
            ("op IN { mkdir rmdir }", "stream = { STR_ALL }"),
            ("op IN { mkdir rmdir }", "stream = { STR_ALL }"),
            outputs=("", f"throttle ops = {rate}/s when_full = drop; "),
            buffer=f"buf = {block}")
        begin = time.monotonic()
        deaths = 0
        for i in range(6):
            for j in range(1500):
                os.mkdir(os.path.join(self.point, "d"))
                os.rmdir(os.path.join(self.point, "d"))
            self.die(mount)
            deaths += 1
        took = time.monotonic() - begin
        mount.unmount()
        truth = len(self.suite.read(self.traces[0]))
        there = self.suite.dump(self.traces[1])
        expect_equal(truth, 2 * 1500 * 6, "operations")
        # The block that empties it, and one that each daemon begins with, are
        # not waited for; a block has some 60 operations.
        most = rate * (took + 1) + (deaths + 2) * block / 30
        lost = sum(int(count) for count in re.findall(
            r"([0-9]+) operations were not recorded \(throttled\)",
            there.errors))
        expect(len(there.events) <= most,
               f"{len(there.events)} came through in {took:.1f} s")
        expect_equal(len(there.events) + lost, truth, "all of them")
        expect(lost > 0, "it was not throttled")
        return f"{len(there.events)} of {truth} in {took:.1f} s"

    def rests(self):
        """Nothing is lost of what was counted a moment before."""
        _, mount = self.mount(("op = mkdir", "aggregate = { by op }"))
        for i in range(3):
            for j in range(5):
                os.mkdir(os.path.join(self.point, f"d{i}-{j}"))
            time.sleep(1)
            self.die(mount)
        mount.unmount()
        read = self.suite.read(self.traces[0])
        expect_equal([(one["op"], one["count"]) for one in read],
                     [("mkdir", 15)], "counted")
        expect_equal(self.lost(self.traces[0]), 0, "lost")

    def rules(self):
        """They begin again, and the traces say so."""
        _, mount = self.mount(
            ("", "stream = { STR_ALL }"),
            ("op = rmdir", 'stream = { STR_ALL }; when seen(op = mkdir AND name ~ "bad*" '
             'by pid) then { alarm "bad"; stop 1 }'))
        os.mkdir(os.path.join(self.point, "a"))
        os.mkdir(os.path.join(self.point, "bad1"))

        def states():
            said = json.loads(self.suite.command(
                "tracefs-ctl", self.point, "list", "--format", "json"))
            return [one["state"] for one in said["tracers"]]

        wait_until(lambda: states() == ["stopped", "running"], "the rule")
        os.mkdir(os.path.join(self.point, "unseen"))
        self.die(mount)
        expect_equal(states(), ["running", "running"], "states afterwards")
        os.mkdir(os.path.join(self.point, "b"))
        os.mkdir(os.path.join(self.point, "bad2"))
        wait_until(lambda: states() == ["stopped", "running"],
                   "the rule, again")
        mount.unmount()
        made = [os.path.basename(one["path"])
                for one in self.suite.read(self.traces[0])
                if one["op"] == "mkdir"]
        expect_equal(made, ["a", "bad1", "b", "bad2"], "recorded")
        for trace in self.traces:
            self.suite.command("tracefs-verify", trace)
            said = self.suite.tool("tracefs-dump", trace).stderr
            expect_equal(said.count("daemon.rules=begin again"), 1, said)
            expect("tracer.state=running" in said, said)


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--kills", type=float, default=2, help="a second")


def main():
    suite = Suite("succession-counting", __doc__, arguments)
    cases = Counting(suite)
    suite.run("what was counted a moment ago", cases.rests)
    suite.run("aggregates", cases.aggregates)
    suite.run("rules", cases.rules)
    suite.run("throttled", cases.throttled)
    suite.finish()


main()
