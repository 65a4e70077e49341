"""The mock cluster of librdkafka (tests/support/kafka_mock.cc) on loopback: Debian
has no server of Kafka."""

import os
import subprocess

from tracefs_harness import expect

RUNNING = []

# Numbers of requests and errors in Kafka's protocol.
PRODUCE, FETCH, OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT = 0, 1, 8, 11, 12
NOT_LEADER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS = 6, 7, 19
NOT_COORDINATOR, REBALANCE_IN_PROGRESS, OUT_OF_ORDER = 16, 27, 45
PRODUCER_FENCED = 90


def program(suite):
    return os.path.join(suite.bin, "..", "tests", "support", "kafka_mock")


def missing(suite):
    return (None if os.access(program(suite), os.X_OK)
            else "the build is without librdkafka, or its tests were not built")


def stop_all():
    while RUNNING:
        RUNNING.pop().stop()


class Cluster:
    """Brokers, as a Fleet knows them, and what tests do to them."""

    def __init__(self, suite, brokers=3, partitions=4, options=""):
        self.suite = suite
        self.brokers = brokers
        self.process = suite.background(subprocess.Popen(
            [program(suite), str(brokers), "tracefs", str(partitions)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        RUNNING.append(self)
        self.addresses = self.process.stdout.readline().split()[1]
        self.driver = f'kafka = "{self.addresses}" {options}'
        self.receiver = ["kafka:" + self.addresses, "--redeliver", "6s"]

    def stop(self):
        if self in RUNNING:
            RUNNING.remove(self)
        self.process.kill()
        self.process.wait()

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        expect(answer and answer[0] == "ok", f"{words}: {answer}")
        return answer[1:]

    def all_down(self):
        for broker in range(1, self.brokers + 1):
            self.say("down", broker)

    def all_up(self):
        for broker in range(1, self.brokers + 1):
            self.say("up", broker)

    def acknowledged_all(self, group):
        return self.say("lag", group) == ["0"]

    def messages(self):
        """(key, id, body) of all that the topic holds, by partition."""
        path = self.suite.path(f"messages-{id(self)}")
        self.say("take", path)
        with open(path, "rb") as taken:
            while line := taken.readline():
                key, name, size = line.decode().split()
                yield key, name, taken.read(int(size))

    def send(self, key, host, tracer, body, time_ms=0):
        path = self.suite.path(f"message-{id(self)}")
        with open(path, "wb") as out:
            out.write(body)
        self.say("send", key, host, tracer, time_ms, path)
