#!/usr/bin/env python3
"""--metrics: what is served is what happened, Prometheus can read it, and no
client can do harm."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from counting_suite import CountingSuite, work
from tracefs_harness import Skip, expect, expect_equal, wait_until

CONFIG = ('always { { } { aggregate = { by op, uid, cname, ext, dir; '
          'values errors bytes latency size; every 1s } } { file = "%s" } }\n'
          'all { { } { stream = { STR_ALL } } { compress; file = "%s" } }')
HEADER = "application/openmetrics-text"
CLASSIC = "text/plain; version=0.0.4"
PROMETHEUS_ACCEPTS = ("application/openmetrics-text;version=1.0.0,"
                      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class MetricsSuite(CountingSuite):
    def start(self, name, metrics="127.0.0.1:0", options=()):
        source = self.folder(name, "source")
        self.point = self.folder(name, "mnt")
        mount = self.mount(source, self.point, CONFIG % (
            self.path(name, "count"), self.path(name, "stream")),
            options=["--metrics", metrics, *options])
        match = re.search(r"metrics at (\S+)", mount.messages())
        expect(match, mount.messages())
        self.address = match[1]
        return mount


def scrape(address):
    """The page as {(name, labels): value}, checked line by line."""
    with urllib.request.urlopen(open_metrics(address), timeout=30) as answer:
        expect(answer.headers["Content-Type"].startswith(HEADER),
               answer.headers["Content-Type"])
        return parse(answer.read().decode("utf-8"))


def open_metrics(address):
    return urllib.request.Request(f"http://{address}/metrics",
                                  headers={"Accept": PROMETHEUS_ACCEPTS})


def parse(text):
    expect(text.endswith("\n# EOF\n"), "no end mark")
    samples = {}
    types = {}
    family = None
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            expect(family not in types, f"{family} twice")
            types[family] = kind
            continue
        if line.startswith("# "):
            expect(line.split(" ")[2] == family, line)
            continue
        match = SAMPLE.match(line)
        expect(match, f"not a sample: {line}")
        name, labels, value = match.groups()
        suffix = {"counter": ("_total",), "gauge": ("",), "info": ("_info",),
                  "histogram": ("_bucket", "_count", "_sum")}[types[family]]
        expect(name in [family + s for s in suffix], line)
        found = tuple(sorted(LABEL.findall(labels or "")))
        expect_equal(LABEL.sub("", labels or ""), "", line)
        expect((name, found) not in samples, f"twice: {line}")
        samples[name, found] = float(value)
    return samples


def select(samples, name, **labels):
    return {key: value for (got, key), value in samples.items()
            if got == name and set(labels.items()) <= set(key)}


def settled(suite, fetch=None):
    """The page once all that was done is in it: counts are collected now and
    then, and while that goes on a page shows the last collection."""
    fetch = fetch or (lambda: scrape(suite.address))
    os.symlink("nowhere", os.path.join(suite.point, "the-end"))
    page = None

    def complete():
        nonlocal page
        page = fetch()
        counted = select(page, "tracefs_aggregate_operations_total")
        streamed = select(page, "tracefs_tracer_operations_total",
                          tracer_name="all")
        return (select(page, "tracefs_aggregate_operations_total", op="symlink")
                and sum(counted.values()) == sum(streamed.values()))

    wait_until(complete, "all counts to be served", 60)
    return page


def what_is_served_is_what_happened(suite):
    mount = suite.start("served")
    work(suite.point)
    samples = settled(suite)
    mount.unmount()
    events = suite.read(suite.path("served", "stream"))
    for op in ("read", "write", "lookup"):
        mine = [e for e in events if e["op"] == op]
        expect_equal(
            sum(select(samples, "tracefs_aggregate_operations_total",
                       op=op).values()), len(mine), op)
        expect_equal(
            sum(select(samples, "tracefs_tracer_operations_total", op=op,
                       tracer_name="all").values()), len(mine), op)
        expect_equal(
            sum(select(samples, "tracefs_aggregate_errors_total",
                       op=op).values()),
            sum("errno" in e for e in mine), op)
        expect_equal(
            sum(select(samples, "tracefs_aggregate_latency_seconds_bucket",
                       op=op, le="+Inf").values()), len(mine), op)
        seconds = sum(select(samples, "tracefs_aggregate_latency_seconds_sum",
                             op=op).values())
        expect(abs(seconds - sum(e["dur"] for e in mine) / 1e9) < 1e-6, op)
    sizes = [e["result"] for e in events
             if e["op"] == "write" and "errno" not in e]
    for bound in (512, 1024, 2048, 4096):
        expect_equal(
            sum(select(samples, "tracefs_aggregate_size_bytes_bucket",
                       op="write", le=str(bound)).values()),
            sum(size <= bound for size in sizes), f"writes up to {bound}")
    expect_equal(list(select(samples, "tracefs_output_up").values()), [1, 1],
                 "health")
    stage = select(samples, "tracefs_stage_bytes_total", stage="compress")
    driver = select(samples, "tracefs_stage_bytes_total", stage="file",
                    tracer_name="all")
    expect(list(stage.values())[0] > list(driver.values())[0] > 0,
           "compression")


def buckets_never_fall(suite):
    mount = suite.start("buckets")
    work(suite.point)
    samples = settled(suite)
    mount.unmount()
    series = {}
    for (name, labels), value in samples.items():
        if not name.endswith("_bucket"):
            continue
        rest = tuple(l for l in labels if l[0] != "le")
        series.setdefault((name, rest), []).append(
            (float(dict(labels)["le"]), value))
    expect(len(series) > 20, "too few histograms")
    for key, points in series.items():
        values = [v for _, v in sorted(points)]
        expect(values == sorted(values), f"{key}: {values}")


def classic(page):
    """The format before OpenMetrics, by its own rules: of each family HELP and
    TYPE once and before its samples, which stand together and are called as it
    is; counters end in _total; nothing is there twice."""
    expect(page.endswith("\n") and "# EOF" not in page, "the end of the page")
    samples = {}
    types = {}
    helps = set()
    done = set()
    family = None
    for line in page.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            if family != name:
                done.add(family)
                family = name
            expect(name not in done, f"{name} in two places")
            if kind == "TYPE":
                expect(name not in types, line)
                expect(rest in ("counter", "gauge", "histogram"), line)
                expect((rest == "counter") == name.endswith("_total"), line)
                types[name] = rest
            else:
                expect_equal(kind, "HELP", line)
                expect(name not in helps and rest.strip(), line)
                helps.add(name)
            continue
        match = SAMPLE.match(line)
        expect(match, f"not a sample: {line}")
        name, labels, value = match.groups()
        endings = (("_bucket", "_count", "_sum")
                   if types[family] == "histogram" else ("",))
        expect(family in helps and name in [family + e for e in endings], line)
        found = tuple(sorted(LABEL.findall(labels or "")))
        expect_equal(LABEL.sub("", labels or ""), "", line)
        expect_equal(len(found), len({key for key, _ in found}), line)
        expect((name, found) not in samples, f"twice: {line}")
        samples[name, found] = float(value)
    return samples


def get(address, **headers):
    request = urllib.request.Request(f"http://{address}/metrics",
                                     headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode("utf-8")


def who_asks_for_nothing_gets_the_classic_format(suite):
    mount = suite.start("classic")
    # Labels with all that must be escaped.
    for name in ('a"b', "back\\slash", "new\nline", "ü"):
        os.makedirs(os.path.join(suite.point, name))
        with open(os.path.join(suite.point, name, "f." + name), "wb"):
            pass
    work(suite.point)
    settled(suite)
    kind, page = get(suite.address)
    expect(kind.startswith(CLASSIC), kind)
    kind, other = get(suite.address, Accept="text/plain")
    expect(kind.startswith(CLASSIC), kind)
    kind, third = get(suite.address, Accept=PROMETHEUS_ACCEPTS)
    expect(kind.startswith(HEADER), kind)
    mount.unmount()
    # The same series, whoever asks.
    expect_equal(set(classic(page)), set(classic(other)), "the series")
    expect_equal(set(classic(page)), set(parse(third)), "the series")


def promtool_has_no_objection(suite):
    if not shutil.which("promtool"):
        return Skip("no promtool; scripts/setup --services installs it")
    mount = suite.start("promtool")
    work(suite.point)
    # As it is served: `curl …/metrics | promtool check metrics`.
    _, page = get(suite.address)
    mount.unmount()
    check = subprocess.run(["promtool", "check", "metrics"], input=page,
                           capture_output=True, check=False, text=True)
    expect_equal((check.returncode, check.stdout, check.stderr), (0, "", ""),
                 "promtool")


def prometheus_collects_it(suite):
    if not shutil.which("prometheus"):
        return Skip("no prometheus; scripts/setup --services installs it")
    mount = suite.start("prometheus")
    work(suite.point)
    settled(suite)
    port = free_port()
    config = suite.path("prometheus.yml")
    with open(config, "w", encoding="utf-8") as out:
        json.dump({"global": {"scrape_interval": "1s",
                              "evaluation_interval": "1s"},
                   "rule_files": [os.path.abspath(
                       "packaging/prometheus/tracefs.rules.yml")],
                   "scrape_configs": [{"job_name": "tracefs", "static_configs":
                                       [{"targets": [suite.address],
                                         "labels": {"host": "a",
                                                    "mount": "/home"}}]}]}, out)
    with open(suite.path("prometheus.log"), "wb") as log:
        server = suite.background(subprocess.Popen(
            ["prometheus", f"--config.file={config}",
             f"--web.listen-address=127.0.0.1:{port}",
             f"--storage.tsdb.path={suite.path('tsdb')}"],
            stdout=log, stderr=log, cwd=suite.scratch))

    def query(text):
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode(
            {"query": text})
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    wait_until(lambda: query("up == 1"), "Prometheus to collect")
    written = query('sum(tracefs_aggregate_operations_total{op="write"})')
    wanted = sum(select(scrape(suite.address),
                        "tracefs_aggregate_operations_total",
                        op="write").values())
    expect_equal(float(written[0]["value"][1]), wanted, "writes")
    share = query("histogram_quantile(0.5, sum by (le) "
                  "(tracefs_aggregate_latency_seconds_bucket))")
    expect(0 < float(share[0]["value"][1]) < 1, str(share))
    # What the rules record of this host.
    here = '{host="a",mount="/home"}'
    for rule, most in (("host_mount:tracefs_operations:rate5m", 1e9),
                       ("host_mount:tracefs_output_bytes:rate5m", 1e12),
                       ("host_mount:tracefs_clock:skew_seconds", 60)):
        wait_until(lambda rule=rule: query(rule + here), rule)
        value = float(query(rule + here)[0]["value"][1])
        expect(abs(value) <= most, f"{rule} is {value}")
    # What the dashboards ask is understood, and all of it is served by somebody.
    asked = []
    for board in ("docs/grafana-dashboard.json",
                  "docs/grafana-fleet-dashboard.json"):
        with open(board, encoding="utf-8") as text:
            panels = json.load(text)["panels"]
        of_board = [t["expr"] for p in panels for t in p.get("targets", [])]
        expect(len(of_board) >= 8, f"{board} without questions")
        asked += of_board
    names = set(name for name, _ in scrape(suite.address))
    for expression in asked:
        expression = (expression.replace("$__rate_interval", "10s")
                      .replace("$__range", "1m").replace("$tracer", ".*")
                      .replace("$host", ".*").replace("$mount", ".*"))
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode(
            {"query": expression})
        with urllib.request.urlopen(url, timeout=30) as answer:
            expect_equal(json.load(answer)["status"], "success", expression)
        for name in re.findall(r"(?<![:\w])tracefs_\w+", expression):
            # Of mounts with --config-dir, queues, rules; of tracefs-verify-textfile.
            elsewhere = ("queue", "tracefs_config_", "tracefs_rule_",
                         "tracefs_verify_")
            expect(name in names or any(e in name for e in elsewhere),
                   f"nobody serves {name}")
    server.terminate()
    server.wait()
    mount.unmount()
    return f"{len(asked)} expressions of the dashboards"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def a_unix_socket_serves_its_owner(suite):
    path = suite.path("metrics.sock")
    # A leftover is replaced.
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    mount = suite.start("unix", f"unix:{path}")
    expect_equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
    connection = UnixConnection(path)
    connection.request("GET", "/metrics",
                       headers={"Accept": PROMETHEUS_ACCEPTS})
    answer = connection.getresponse()
    expect_equal(answer.status, 200, "status")
    parse(answer.read().decode())
    connection.close()
    mount.unmount()


def scrape_socket(path):
    connection = UnixConnection(path)
    connection.request("GET", "/metrics",
                       headers={"Accept": PROMETHEUS_ACCEPTS})
    page = connection.getresponse().read().decode()
    connection.close()
    return page


SECRET = "salary-of-alice"


def names_for(suite, name, metrics, *options):
    """Names in the labels of what is served; the page twice."""
    mount = suite.start(name, metrics, options)
    folder = os.path.join(suite.point, SECRET + "-folder")
    os.mkdir(folder, 0o700)
    for extension in (SECRET, "other"):
        with open(os.path.join(folder, "f." + extension), "wb") as out:
            out.write(b"x" * 100)

    def fetch():
        if metrics.startswith("unix:"):
            return scrape_socket(metrics[5:])
        return get(suite.address, Accept=PROMETHEUS_ACCEPTS)[1]

    settled(suite, lambda: parse(fetch()))
    pages = [fetch(), fetch()]
    mount.unmount()
    labels = [{dict(found).get(label) for _, found in parse(page)
               for label in ("dir", "ext")} - {None, ""} for page in pages]
    return pages, labels


def names_of_files_are_for_a_socket_only(suite):
    pages, labels = names_for(suite, "withheld", "127.0.0.1:0")
    for page in pages:
        expect(SECRET not in page and "folder" not in page,
               "a name is served to everybody")
        # What ps shows is served.
        expect('comm="python' in page, "no command's name")
    expect_equal(labels[0], labels[1], "labels from one page to the next")
    expect(all(re.fullmatch("withheld-[0-9a-f]{12}", label)
               for label in labels[0]), str(labels[0]))
    # Two extensions, the root and the folder.
    expect(len(labels[0]) >= 4, f"names are thrown together: {labels[0]}")
    # Nobody learns from another mount what a label stands for.
    again = names_for(suite, "again", "127.0.0.1:0")[1]
    expect_equal(again[0] & labels[0], set(), "labels of two mounts")
    for name, metrics, options in (
            ("asked", "127.0.0.1:0", ["--metrics-names"]),
            ("socket", "unix:" + suite.path("names.sock"), [])):
        shown = names_for(suite, name, metrics, *options)[1][0]
        expect(SECRET in shown and any(label.endswith("-folder")
                                       for label in shown), str(shown))


def connects(path, uid, *gids):
    return subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={gids[0]}", "--clear-groups",
         sys.executable, "-c", "import socket, sys; "
         "socket.socket(socket.AF_UNIX).connect(sys.argv[1])", path],
        capture_output=True, check=False).returncode == 0


def a_group_may_use_the_socket_if_asked(suite):
    path = suite.path("group.sock")
    mount = suite.start("group", f"unix:{path}", ["--metrics-group", "54321"])
    found = os.stat(path)
    expect_equal((found.st_mode & 0o777, found.st_uid, found.st_gid),
                 (0o660, 0, 54321), "mode and owner")
    expect(connects(path, 65534, 54321), "the group is refused")
    expect(not connects(path, 65534, 65534), "anybody may connect")
    mount.unmount()
    path = suite.path("owner.sock")
    mount = suite.start("owner", f"unix:{path}")
    expect(not connects(path, 65534, 54321), "anybody may connect")
    mount.unmount()
    refused(suite, f"unix:{suite.path('none.sock')}", 2, "there is no group",
            "--metrics-group", "no-such-group")


def a_leftover_of_others_stays(suite):
    path = suite.path("theirs.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    os.chown(path, 65534, 65534)
    before = os.stat(path).st_ino
    refused(suite, f"unix:{path}", 3, "Address already in use")
    expect_equal(os.stat(path).st_ino, before, "the socket")


def refused(suite, address, status, text, *options):
    source = suite.folder("refused", "source")
    point = suite.folder("refused", "mnt")
    config = suite.config(CONFIG % (suite.path("a"), suite.path("b")))
    result = suite.tool("tracefs-mount", source, point, "--config", config,
                        "--metrics", address, *options)
    expect_equal(result.returncode, status, result.stderr)
    expect(text in result.stderr, result.stderr)
    expect(not os.path.ismount(point), "mounted all the same")


def wrong_addresses_are_refused_before_the_mount(suite):
    form = "--metrics is HOST:PORT, [HOST]:PORT or unix:PATH, not"
    for address in ("9100", ":9100", "localhost:", "localhost:99999",
                    "localhost:http", "::1:9100", "unix:"):
        refused(suite, address, 2, form)
    refused(suite, "no-such-host.invalid:9100", 2, "no-such-host.invalid")
    refused(suite, "unix:/" + "x" * 200, 2, "at most 107 bytes")
    refused(suite, "unix:/nowhere/at/all", 3, "No such file or directory")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused(suite, address, 3,
                f"--metrics {address}: Address already in use")
    with socket.socket(socket.AF_UNIX) as taken:
        path = suite.path("taken.sock")
        taken.bind(path)
        taken.listen()
        refused(suite, f"unix:{path}", 3, "Address already in use")


def hostile_clients_do_no_harm(suite):
    mount = suite.start("hostile")
    host, port = suite.address.split(":")

    def connect():
        client = socket.create_connection((host, int(port)), timeout=20)
        return client

    def answer_to(data):
        with connect() as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                answer = b""
                while part := client.recv(65536):
                    answer += part
                    if len(answer) > 1 << 20:
                        break
                return answer
            except OSError:  # it has hung up: ECONNRESET, EPIPE, ENOTCONN
                return b""

    def status_of(data):
        answer = answer_to(data)
        return int(answer.split(b" ")[1]) if answer else None

    get = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    expect_equal(status_of(get), 200, "an honest one")
    expect_equal(status_of(get.replace(b"/metrics", b"/etc/passwd")), 404,
                 "another path")
    expect_equal(status_of(get.replace(b"/metrics", b"/../metrics")), 404,
                 "dots")
    for method in (b"POST", b"PUT", b"DELETE"):
        expect_equal(status_of(get.replace(b"GET", method)), 405, str(method))
    # None: it hung up on what it had not read, and that overtook the answer.
    expect(
        status_of(b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  b"Content-Length: 1000000000000\r\n\r\n" + b"x" * 100000)
        in (None, 405), "a huge body")
    expect(status_of(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 65536
                     + b"\r\n\r\n") in (None, 413, 431), "huge headers")
    expect(status_of(b"GET /" + b"m" * 65536 + b" HTTP/1.1\r\n\r\n")
           in (None, 414, 413, 431), "a huge path")
    for noise in (b"\r\n\r\n", b"\0" * 1000, b"GET", bytes(range(256)) * 20,
                  b"GET /metrics HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00"):
        answer_to(noise)
    # Half-sent requests and connections by the hundred.
    held = []
    for i in range(300):
        try:
            client = connect()
            if i % 2:
                client.sendall(get[:-2])
            held.append(client)
        except OSError:
            pass
    started = time.monotonic()
    work(suite.point)  # the mount goes on
    expect(time.monotonic() - started < 60, "the mount was held up")
    with open(f"/proc/{mount.pid}/status", encoding="ascii") as status:
        threads = int(re.search(r"Threads:\s+(\d+)", status.read())[1])
    expect(threads < 40, f"{threads} threads")
    expect(len(os.listdir(f"/proc/{mount.pid}/fd")) < 300, "descriptors")
    # Those who only wait are sent away, and others are served again.
    wait_until(lambda: works(suite.address), "service after the crowd")
    for client in held:
        client.close()
    wait_until(lambda: works(suite.address), "service after the end")
    mount.unmount()


def works(address):
    try:
        scrape(address)
        return True
    except OSError:
        return False


def a_name_with_anything_in_it_is_a_label(suite):
    mount = suite.start("names", options=["--metrics-names"])
    # Extensions are what a user can put into labels.
    for extension in (b'q"', b"b\\s", b"n\nl", b"\xff\xfe", "\u00e9".encode(),
                      b"\x1b[2J", "\u202e".encode()):
        with open(os.fsencode(suite.point) + b"/f." + extension, "wb") as out:
            out.write(b"x")
    found = {dict(labels).get("ext") for name, labels in settled(suite)
             if name == "tracefs_aggregate_operations_total"}
    expect(r'q\"' in found, str(found))
    expect("\u00e9" in found, str(found))
    expect(len(found) >= 8, str(found))
    mount.unmount()


def main():
    suite = MetricsSuite("metrics", __doc__)
    for case in (what_is_served_is_what_happened, buckets_never_fall,
                 a_unix_socket_serves_its_owner,
                 names_of_files_are_for_a_socket_only,
                 a_group_may_use_the_socket_if_asked,
                 a_leftover_of_others_stays,
                 wrong_addresses_are_refused_before_the_mount,
                 hostile_clients_do_no_harm,
                 a_name_with_anything_in_it_is_a_label,
                 who_asks_for_nothing_gets_the_classic_format,
                 promtool_has_no_objection, prometheus_collects_it):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
