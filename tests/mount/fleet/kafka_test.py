#!/usr/bin/env python3
"""Traces over Kafka: the driver kafka of a real mount in its sandbox, the mock
cluster of librdkafka, which fails as it is told, and tracefs-recv --from that is
killed. What is stored must be, event by event, what the file driver kept."""

import glob
import json
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
sys.path.insert(0, os.path.dirname(__file__))
import duckdb  # noqa: E402
import fleet_world  # noqa: E402
import kafka_cluster as kafka  # noqa: E402
from fleet_world import (HOST, SOAK_SECONDS, Fleet,  # noqa: E402
                         a_full_disk_is_waited_for, encrypted_fleet,
                         forged_seals_are_not_stored,
                         lines_of_killed_receivers,
                         receivers_killed_at_random_lose_nothing,
                         receivers_killed_in_turn_lose_nothing, said,
                         sealed_fleet, tables_need_the_key,
                         two_receivers_store_what_verifies)
from kafka_cluster import Cluster  # noqa: E402
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             wait_until)

SOAK = bool(os.environ.get("TRACEFS_SOAK"))
KEY = f"{HOST}/trace"


def messages_put_together_are_the_trace(suite):
    """A client of its own takes them out of the topic."""
    cluster = Cluster(suite, options="compression = zstd")
    fleet = Fleet(suite, "together", cluster, filters="compress alg = zstd;")
    fleet.work(300)
    fleet.mount.unmount()
    messages = list(cluster.messages())
    whole = suite.path("together", "whole.trace")
    with open(whole, "wb") as out:
        for _, _, body in messages:
            out.write(body)
    expect_equal({key for key, _, _ in messages}, {KEY}, "keys")
    ids = [name for _, name, _ in messages]
    expect_equal(len(set(ids)), len(ids), "messages with an id of their own")
    count = fleet.expect_same(suite.read(whole))
    return f"{count} events in {len(messages)} messages"


def stored_traces_are_what_the_file_driver_kept(suite):
    """And verify, sealed, by a group of two."""
    return two_receivers_store_what_verifies(
        *sealed_fleet(suite, "stored", Cluster(suite)))


def killed_receivers_lose_and_double_nothing(suite, kills=2):
    """kill -9, two in turn: each time the group shares out anew."""
    fleet = Fleet(suite, "killers", Cluster(suite), options="buf = 4096")
    return receivers_killed_in_turn_lose_nothing(fleet, kills)


def receivers_killed_for_a_long_time(suite):
    return receivers_killed_at_random_lose_nothing(
        *sealed_fleet(suite, "random", Cluster(suite)), SOAK_SECONDS)


def errors_and_lost_brokers_under_load_lose_nothing(suite, rounds=2):
    """Errors that pass, ones that end a producer, brokers that hang up."""
    cluster = Cluster(suite)
    fleet = Fleet(suite, "errors", cluster,
                  options="buf = 4096 queue = 256M when_full = block "
                  "deadline = 60s")
    receiver = fleet.receiver()
    draw = random.Random(21)
    for number in range(rounds):
        cluster.say("errors", kafka.PRODUCE, kafka.NOT_LEADER, 3)
        cluster.say("errors", kafka.PRODUCE, kafka.NOT_ENOUGH_REPLICAS, 2)
        cluster.say("errors", kafka.PRODUCE, kafka.REQUEST_TIMED_OUT, 2)
        fleet.work(40)
        # A producer that is fenced is over: the next one sends what it had.
        cluster.say("errors", kafka.PRODUCE,
                    (kafka.OUT_OF_ORDER, kafka.PRODUCER_FENCED)[number % 2], 1)
        cluster.say("errors", kafka.FETCH, kafka.NOT_LEADER, 2)
        cluster.say("errors", kafka.OFFSET_COMMIT, kafka.NOT_COORDINATOR, 1)
        cluster.say("errors", kafka.HEARTBEAT, kafka.REBALANCE_IN_PROGRESS, 1)
        fleet.work(40)
        victim = draw.randrange(1, 4)
        cluster.say("down", victim)
        for partition in range(4):
            cluster.say("leader", partition, victim % 3 + 1)
        fleet.work(40)
        cluster.say("up", victim)
        fleet.work(20)
    fleet.mount.unmount()
    fleet.await_all([receiver])
    suite.command("tracefs-verify", "--accept-unsealed", *fleet.traces())
    return f"{fleet.expect_same()} events"


def brokers_that_are_away_cost_nothing(suite):
    """Blocks wait in the spill directory, twice."""
    cluster = Cluster(suite)
    cluster.all_down()
    spill = suite.folder("spill", mode=0o700)
    fleet = Fleet(suite, "away", cluster,
                  options=f'when_full = spill "{spill}" max = 64M')
    fleet.work(100)
    wait_until(lambda: os.listdir(spill), "something in the spill directory")
    wait_until(lambda: "refused" in fleet.mount.messages(),
               "the driver to say why")
    cluster.all_up()
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to say that it is connected")
    fleet.work(100)
    cluster.all_down()
    fleet.work(100)
    cluster.all_up()
    fleet.mount.unmount()
    expect_equal(os.listdir(spill), [], "the spill directory")
    fleet.await_all([fleet.receiver()])
    return f"{fleet.expect_same()} events"


def what_is_forged_is_refused(suite):
    """Damaged, doubled, out of order, of unknown hosts, from the future."""
    cluster = Cluster(suite)
    fleet = Fleet(suite, "forged", cluster, options="buf = 4096")
    fleet.work(150)
    fleet.mount.unmount()
    bodies = [body for _, _, body in cluster.messages()]
    expect(len(bodies) > 3, "several messages")
    last = bodies[-1]
    year_2100 = 4_102_444_800_000

    def forge(body, key=KEY, host=HOST, tracer="trace", time_ms=0):
        cluster.send(key, host, tracer, body, time_ms)
    # What came before once more, the last first.
    for body in reversed(bodies):
        forge(body, time_ms=year_2100)
    forge(b"nonsense")
    forge(b"")
    forge(last[:-1])
    forge(last[:-5] + bytes([last[-5] ^ 1]) + last[-4:])
    forge(last, host="other")
    forge(last, key="../../etc/trace", host="../../etc")
    forge(last, key="-", host="-", tracer="-")
    forge(last, key="mallory/trace", host="mallory")
    hosts = suite.path("hosts")
    with open(hosts, "w", encoding="ascii") as out:
        out.write(f"# ours\n{HOST}\n")
    receiver = fleet.receiver("--hosts", hosts)
    fleet.await_all([receiver])
    text = said(receiver)
    expect(f"{len(bodies)} doubled" in text and " 8 refused" in text, text)
    expect_equal([n for n in os.listdir(fleet.out) if n.startswith("host=")],
                 [f"host={HOST}"], "hosts")
    return f"{fleet.expect_same()} events"


def forged_seals_are_not_taken(suite):
    """Here nothing else keeps one host from sending as another."""
    cluster = Cluster(suite)
    fleet, secret = sealed_fleet(suite, "unsealed", cluster, file_filters="")
    return forged_seals_are_not_stored(
        fleet, secret, lambda body: cluster.send("victim/trace", "victim",
                                                 "trace", body))


def tables_have_each_event_once(suite):
    """JSON Lines, by two receivers that are killed meanwhile, and Parquet."""
    cluster = Cluster(suite)
    fleet = Fleet(suite, "tables", cluster, options="buf = 4096",
                  filters="compress alg = zstd;")
    count = fleet.expect_same(lines_of_killed_receivers(fleet))
    parquet = suite.folder("tables", "parquet")
    receiver = fleet.receiver("--format", "parquet", "--group", "parquet",
                              "--every", "1s", out=parquet)
    wait_until(lambda: cluster.acknowledged_all("parquet"), "all in Parquet")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    table = f"{parquet}/host={HOST}/date=*/*.parquet"
    expect(glob.glob(table), "Parquet files")
    if not duckdb.missing(suite.options.npm):
        answers = duckdb.ask(suite.options.npm, suite.path("tables"),
                             f"SELECT count(*) AS n FROM '{table}'")
        expect_equal(int(answers[0][0]["n"]), count, "rows of Parquet")
    return f"{count} events"


def blocks_that_lack_their_key_stay_with_the_broker(suite):
    cluster = Cluster(suite)
    fleet, secret = encrypted_fleet(suite, "keyless", cluster)
    return tables_need_the_key(fleet, secret)


def a_full_disk_of_the_receiver_loses_nothing(suite):
    """Nothing of what it holds comes again over a connection that lasts."""
    cluster = Cluster(suite)
    count = a_full_disk_is_waited_for(
        suite, "full", cluster, (), lambda: len(list(cluster.messages())))
    return f"{count} events"


def a_feed_is_lines_in_messages(suite):
    cluster = Cluster(suite, options="feed = ocsf")
    fleet = Fleet(suite, "feed", cluster)
    fleet.work(40)
    fleet.mount.unmount()
    creates = sum(json.loads(line)["activity_id"] == 1
                  for _, _, body in cluster.messages()
                  for line in body.decode().splitlines())
    want = [e for e in suite.read(fleet.beside)
            if e["op"] in ("create", "mkdir", "link", "symlink", "mknod")]
    expect_equal(creates, len(want), "files that were created")
    return f"{creates} files"


def added_to_a_running_mount(suite):
    """tracefs-ctl starts the courier: the daemon could not."""
    cluster = Cluster(suite)
    with suite.mounted(ended=True) as (_, point, mount):
        config = suite.config(("", "STR_ALL", cluster.driver))
        suite.command("tracefs-ctl", point, "add", config)
        for i in range(20):
            with open(os.path.join(point, f"a{i}"), "wb"):
                pass
        mount.unmount()
        whole = suite.path("added.trace")
        with open(whole, "wb") as out:
            for _, _, body in cluster.messages():
                out.write(body)
        names = [e["path"] for e in suite.read(whole) if e["op"] == "create"]
        expect_equal(names, [f"/a{i}" for i in range(20)], "created")
    return f"{len(names)} files"


def ending(case, *arguments):
    """Runs a case and ends the cluster that it started."""
    if kafka.missing(arguments[0]):
        raise Skip(kafka.missing(arguments[0]))
    try:
        return case(*arguments)
    finally:
        kafka.stop_all()


def main():
    suite = Suite("kafka", __doc__, fleet_world.arguments)
    for case in (messages_put_together_are_the_trace,
                 stored_traces_are_what_the_file_driver_kept,
                 killed_receivers_lose_and_double_nothing,
                 errors_and_lost_brokers_under_load_lose_nothing,
                 brokers_that_are_away_cost_nothing, what_is_forged_is_refused,
                 forged_seals_are_not_taken,
                 tables_have_each_event_once,
                 a_full_disk_of_the_receiver_loses_nothing,
                 blocks_that_lack_their_key_stay_with_the_broker, a_feed_is_lines_in_messages,
                 added_to_a_running_mount):
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    if SOAK:
        suite.run("receivers are killed for a long time", ending,
                  receivers_killed_for_a_long_time, suite)
        suite.run("errors for a long time", ending,
                  errors_and_lost_brokers_under_load_lose_nothing, suite, 100)
    suite.finish()


if __name__ == "__main__":
    main()
