#!/usr/bin/env python3
"""Every document, manual page and --help is true: each example in them is run as
it is written, by the real commands, in a room of its own (room.py), and must end
as it should; output that a document shows must come; filters and configs must be
accepted. What cannot be run is named in NOT_RUN, with the reason. Options of
--help are in the manual page, and the reverse."""

import argparse
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import examples  # noqa: E402
import room as rooms  # noqa: E402

SKIPPED = 77
COMMANDS = sorted(name[len("tracefs-"):-len(".1")] for name in
                  os.listdir(os.path.join(SOURCE, "docs/man"))
                  if re.fullmatch(r"tracefs-.*\.1", name))

# Examples that no test can run: a part of their text, and why.
NOT_RUN = {
    "power_cut_test.py": "a test",
    "scripts/demo": "it builds, and the suites run it",
    "scripts/check": "it runs this test",
    "scripts/setup": "it installs packages",
    "scripts/mutate": "it builds; mutate_test runs its parts",
    "build/release/tests/": "a test",
    "ctest ": "tests",
    "bench/": "it takes from minutes to days; tests/bench runs its parts",
    "--fix": "it changes settings of the machine",
    "age1\u2026": "a place holder for a key of the reader's",
    "collector.example": "a host of the reader's",
    "/mnt/new": "a new file system of the reader's",
    "scripts/package": "it builds packages",
    "docker run": "scripts/image --try does the same with podman",
    "mountPropagation": "it takes a cluster",
    "apt-get purge": "scripts/check-packages does so",
    "strace -f": "strace may not be there; mount_import_test runs it",
    "apt-get install": "it installs packages",
    "dpkg-buildpackage": "it needs a source package",
    "./configure": "a project of the reader's",
    "tracefs-ctl /data undo": "a process of the reader's; live_undo_test "
    "undoes what one did",
}
# Documents whose blocks are specifications, each held by a test of its own.
HELD_ELSEWHERE = {
    "tracefs/format/FORMAT.md": "golden_test compares its worked example",
    "tracefs/net/PROTOCOL.md": "a picture; net_test and recv_test",
    "docs/fleet.md": "fleet_sql_test, fleet_control_test, fleet_metrics_test, "
    "mount_fleet_test, mount_kafka_test",
    "docs/reader.md": "reader_install_test builds and runs its programs",
    "docs/architecture.md": "a picture; structure_test draws it anew",
}
# What goes on until somebody ends it.
ENDLESS = re.compile(r"--follow|\btail\b|tracefs-recv|\btop\b")


class Failure(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


# --- what the examples find when they begin

PROJECT = """all: a.o b.o
%.o: %.c
\tcc -c $< -o $@
"""
TWO_TRACERS = """one { { } { stream = { STR_ALL } } { file = "/var/log/data.trace" } }
two { { op = mkdir } { stream = { STR_ALL } } { file = "/var/tmp/two.trace" } }
"""


def furnish(room):
    with open(room.path("/etc/passwd"), "a", encoding="ascii") as users:
        users.write("traces:x:54322:54322::/var/lib/traces:/bin/sh\n")
    """Once: files that examples name, made by the commands themselves."""
    room.write("/home/me/src/Makefile", PROJECT)
    for name in "ab":
        room.write(f"/home/me/src/{name}.c", f"int {name}(void) {{ return 1; }}\n")
    room.write("/data/notes.txt", "some text\n")
    room.write("/fixture/all.conf", "{ { } { stream = { STR_ALL } } "
               "{ file = \"/fixture/made.trace\" } }\n")
    room.write("/fixture/sealed.conf", "{ { } { stream = { STR_ALL } } { "
               "checksum seal = forward key = \"file:/fixture/seal.state\" "
               "anchor = \"file:/fixture/anchors\"; "
               "file = \"/fixture/sealed.trace\" } }\n")
    room.write("/home/me/detail.conf", "detail { { op = open } "
               "{ stream = { STR_ALL } } "
               "{ file = \"/var/tmp/detail.trace\" } }\n")
    work = "touch x.log; echo int x\\; > x.c; cat x.c; rm x.log; mkdir d"
    script = f"""set -e
mkdir -p /fixture/m /var/lib/traces /var/spool/tracefs
tracefs-mount /fixture/m /fixture/m --config /fixture/all.conf
(cd /fixture/m; {work})
umount /fixture/m
rm -r /fixture/m; mkdir /fixture/m
sed 's/made.trace/build.trace/' /fixture/all.conf > /fixture/build.conf
tracefs-mount /fixture/m /fixture/m --config /fixture/build.conf
(cd /fixture/m; touch config.h; cat config.h > prog)
umount /fixture/m
rm -r /fixture/m; mkdir /fixture/m
tracefs-keygen seal /fixture/seal.state /fixture/verify.key
tracefs-mount /fixture/m /fixture/m --config /fixture/sealed.conf
(cd /fixture/m; {work})
umount /fixture/m
tracefs-keygen secret /etc/tracefs/anon.key
tracefs-keygen secret /etc/tracefs/audit.key
cd /fixture
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -days 2 \
    -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=host -keyout host.key -out host.csr
openssl x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
    -out host.pem
chmod 600 host.key
cp ca.pem host.pem host.key /etc/tracefs
install -m 600 /dev/null /etc/tracefs/host.creds
install -m 600 /dev/null /etc/tracefs/password
"""
    status, out, err = room.run(script)
    expect(status == 0, f"the fixture: {out}{err}")


def set_table(room, text):
    """Before each example: a fresh folder with what it names, and nothing of
    the one before. Returns the folder."""
    room.tidy()
    script = """set -e
rm -rf /tmp/here /data/* /var/tmp/* /var/log/*.trace /var/lib/traces /home/me/src/*.o /run/*
mkdir -p /tmp/here/traces /var/lib/traces /srv/fleet
chown traces /var/lib/traces
cd /tmp/here
ln -s /source/config config
cp /home/me/detail.conf .
cp /fixture/made.trace trace.log
cp /fixture/made.trace my.trace
cp /fixture/made.trace host1.log
cp /fixture/sealed.trace host2.log
cp /fixture/sealed.trace traces/
cp /fixture/verify.key /fixture/ca.pem /fixture/host.pem /fixture/host.key .
cp /fixture/anchors /var/log/syslog
echo some text > /data/notes.txt
printf 'kept\\n' > p
"""
    if "tracefs-verify --key verify.key trace.log" in text:
        script += "cp /fixture/sealed.trace trace.log\n"
    if "tracefs-run" in text:
        script += ("cp /home/me/src/Makefile /home/me/src/*.c .\n"
                   "printf '#!/bin/sh\\n' > install.sh; chmod +x install.sh\n")
    if "sample.trace" in text:
        script += "cp /source/docs/examples/sample.trace .\n"
    if "tracefs-deps" in text or "tracefs-report" in text:
        script += ("cp /fixture/build.trace build.trace\n"
                   "cp build.trace old.trace; cp build.trace new.trace\n")
    if "tracefs-metrics.sock" in text and "curl" in text:
        room.write("/fixture/two.conf", TWO_TRACERS)
        script += ("tracefs-mount /data /data --config /fixture/two.conf "
                   "--metrics unix:/run/tracefs-metrics.sock\n")
    if re.search(r"tracefs-ctl /data", text) and "tracefs-mount" not in text:
        room.write("/fixture/two.conf", TWO_TRACERS)
        script += "tracefs-mount /data /data --config /fixture/two.conf\n"
    if "tracefs-import" in text:
        script += ("echo '1 1.000001 mkdir(\"/w/a\", 0777) = 0 <0.000002>' "
                   "> log\n"
                   "printf 'fio version 2 iolog\\nf add\\nf open\\n"
                   "f write 0 9\\nf close\\n' > job.iolog\n")
    if "--derive" in text and "tracefs-keygen secret" not in text:
        script += "tracefs-keygen secret anon.key\n"
    if "--policy p " in text:
        script += "printf 'use research;\\nname = encrypt tree;\\n' > p\n"
    status, out, err = room.run(script)
    expect(status == 0, f"the situation: {out}{err}")
    return "/tmp/here"


# --- running

def not_run(command):
    for part, why in NOT_RUN.items():
        if part in command:
            return why
    return None


def minds_interrupts(process):
    """Whether it is the command by now and has got as far as catching them, or
    has ended."""
    if process.poll() is not None:
        return True
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        status = file.read()
    masks = re.findall(r"^Sig(?:Cgt|Blk):\t(\w+)", status, re.M)
    return (re.match(r"Name:\ttracefs-", status) is not None and
            any(int(mask, 16) >> signal.SIGINT - 1 & 1 for mask in masks))


def run_endless(room, command, cwd):
    """Starts it, lets it work, interrupts it: it must end in order."""
    process = room.start("exec " + command if "|" not in command else command,
                         cwd)
    end = time.monotonic() + 30
    while ("|" not in command and not minds_interrupts(process) and
           time.monotonic() < end):
        time.sleep(0.05)
    time.sleep(1)
    if "/data" in command:
        room.run("touch /data/new; rm /data/new")
        time.sleep(1)
    early = process.poll()
    if early is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failure(f"{command}: does not end when it is interrupted"
                      ) from None
    # A pipe's reader may die of the interrupt.
    expect(process.returncode == 0 or "|" in command and early is None,
           f"{command}: ended with {process.returncode}:\n{out}{err}")


def run_command(room, command, shown, cwd):
    words = examples.words(command)
    if words[:1] == ["cat"] and shown:
        room.write(os.path.join(cwd, words[1]), shown)
        return
    if not_run(command):
        expect("/" not in words[0] or words[0].startswith("build/") or
               os.path.exists(os.path.join(SOURCE, words[0])),
               f"there is no {words[0]}")
        return
    follows_file = "--follow" in words and words[0] == "tracefs-dump"
    if ENDLESS.search(command) and not follows_file:
        run_endless(room, command, cwd)
        return
    status, out, err = room.run(command, cwd)
    expect(status == 0, f"{command}: ended with {status}:\n{out}{err}")
    if shown.strip():
        expect(shown.strip() in out + err,
               f"{command}: shows not\n{shown}but\n{out}{err}")


def check_config(room, text, cwd):
    room.write(cwd + "/example.conf", text)
    status, out, err = room.run("tracefs-mount --check example.conf", cwd)
    expect(status == 0, f"not accepted: {text}\n{out}{err}")


def check_filter(room, text, cwd):
    check_config(room, "{ { %s\n }\n { } { file = \"/var/tmp/x.trace\" } }\n"
                 % text, cwd)


def check_policy(room, text, cwd):
    room.write(cwd + "/example.policy", text)
    status, out, err = room.run(
        "tracefs-keygen secret k && tracefs-anon --policy example.policy "
        "--keys k my.trace out.trace", cwd)
    expect(status == 0, f"not accepted: {text}\n{out}{err}")


# Config that earns each message; what is behind the dots may change.
MISTAKES = {
    "unknown flag 'STR_PDI' of stream": "{\n { }\n { stream = { STR_PDI } }\n"
                                        " { file = x } }\n",
    "'flie' is not an output": "{\n { }\n { }\n { flie = x } }\n",
    "'compress' has no option 'file'": "{\n { }\n { }\n"
                                       " { compress file = x } }\n",
    "unknown predicate 'cudi'": "{\n { cudi = 1 }\n { } { file = x } }\n",
    "unknown operation 'wirte'": "{\n {\n  op IN { wirte }\n"
                                 " } { } { file = x } }\n",
    "expected AND, OR or the end": "{\n {\n  cuid = 0 cgid = 1\n"
                                   " } { } { file = x } }\n",
    "'*.tex' looks like a pattern": "{\n {\n\n name = *.tex\n"
                                    " } { } { file = x } }\n",
    # Warnings.
    "'*.c' matches no path": "path ~ *.c",
    "'updatedb.plocate' is longer": "cname = updatedb.plocate",
    "'5' has no unit": "latency > 5",
    "nothing satisfies both": "uid = 0 AND uid = 1",
    "the result of what fails": "result = -2",
    "none of the operations": "op IN { mkdir rmdir } AND offset = 0",
    "no operation that the rest": "op = read AND flags ~ O_CREAT",
    "no operation satisfies this": "(op = read OR op = write) AND (op = open OR op = close)",
}


def check_messages(room, text, cwd):
    for line in text.splitlines():
        wanted = line.split(": ", 1)[1].split(" (known: \u2026")[0]
        config = next((c for m, c in MISTAKES.items() if wanted.startswith(m)),
                      None)
        expect(config, f"no config in MISTAKES earns this: {line}")
        warning = not config.startswith("{")
        if warning:
            config = "{ {\n%s\n} { } { file = x } }\n" % config
        room.write(cwd + "/trace.conf", config)
        status, _, err = room.run("tracefs-mount --check trace.conf", cwd)
        expect(status == (0 if warning else 2) and wanted in err,
               f"the document shows\n  {line}\nthe command ({status})\n  {err}")


def check_json(room, text, cwd):
    """Requests are put to a mount; answers must be of the shape it gives."""
    for line in text.splitlines():
        asked = json.loads(line)
        if "command" in asked:
            answer = ask(room, line)
            expect(answer.get("id") == asked.get("id") and answer.get("ok"),
                   f"{line}: {answer}")
        elif asked.get("ok"):
            answer = ask(room, '{"id":7,"command":"flush"}')
            expect(answer == asked, f"{line}: {answer}")
        else:
            answer = ask(room, '{"id":7,"command":"set-filter","tracer":2,'
                               '"filter":"="}')
            expect(answer["error"].keys() == asked["error"].keys() and
                   answer["error"]["code"] == asked["error"]["code"],
                   f"{line}: {answer}")


def ask(room, line):
    sockets = glob.glob(room.path("/run/tracefs/*.sock"))
    expect(len(sockets) == 1, f"sockets of mounts: {sockets}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(sockets[0])
        connection.sendall(line.encode() + b"\n")
        return json.loads(connection.makefile().readline())


def check_program(room, text, cwd):
    """What `--check` prints of the paper's filter."""
    status, out, err = room.run(
        "tracefs-mount --check config/samples/paper.conf", cwd)
    shown = [line.strip() for line in out.splitlines()]
    for line in text.splitlines():
        expect(status == 0 and line.strip() in shown, f"{line}: {out}{err}")


def check_sql(room, text):
    """A question of the database that tracefs-dump makes."""
    if "read_parquet" in text:
        return "DuckDB's; exports_test asks it of Parquet files"
    status, out, err = room.run(
        "rm -f /tmp/t.db; tracefs-dump --format sqlite --output /tmp/t.db "
        "/fixture/made.trace && sqlite3 /tmp/t.db \"$QUESTION\"".replace(
            "$QUESTION", text.replace('"', '\\"')), "/tmp")
    if "sqlite3: not found" in err:
        return "sqlite3 is not installed"
    expect(status == 0 and out, f"{text}: {out}{err}")
    return None


def check_example(room, example):
    """None, or why it was not run."""
    name = example.place.split(":")[0]
    if name in HELD_ELSEWHERE:
        return HELD_ELSEWHERE[name]
    text = example.text
    if example.kind == "code":
        return "extending_test and additions_test compile it"
    if example.kind == "sql":
        return check_sql(room, text)
    if example.kind == "grammar":
        return "a grammar; the fuzzers and unit tests of its parser"
    if example.kind == "json":
        text_for_table = "tracefs-ctl /data"
    else:
        text_for_table = text
    cwd = set_table(room, text_for_table)
    if example.kind in ("session", "commands"):
        commands = examples.commands_of(text, example.kind == "session")
        expect(commands, "a block without commands")
        for command, shown in commands:
            run_command(room, command, shown, cwd)
        left_out = [c for c, _ in commands if not_run(c)]
        if len(left_out) == len(commands):
            return "; ".join(sorted({not_run(c) for c in left_out}))
    elif example.kind == "config":
        check_config(room, text, cwd)
    elif example.kind == "entry":
        check_config(room, "{ { } { %s } { file = \"/var/tmp/x.trace\" } }\n"
                     % text.strip(), cwd)
    elif example.kind == "messages":
        check_messages(room, text, cwd)
    elif example.kind == "json":
        check_json(room, text, cwd)
    elif example.kind == "program":
        check_program(room, text, cwd)
    elif name.endswith("LANGUAGE.md"):
        for line in text.splitlines():
            check_filter(room, line, cwd)
    elif name.endswith("POLICY.md"):
        check_policy(room, text, cwd)
    elif "scrape_configs" in text or "nginx" in text:
        return "a config of somebody else's"
    elif not_run(text):
        return not_run(text)
    else:
        raise Failure("what is this? Teach tests/docs to run it, or say in "
                      f"NOT_RUN why it cannot be run:\n{text}")
    return None


def check_sample(room, path):
    text = open(path, encoding="utf-8").read()
    cwd = set_table(room, text)
    status, out, err = room.run(
        f"tracefs-mount --check config/samples/{os.path.basename(path)}", cwd)
    # Hosts of the reader's are not resolved here.
    expect(status == 0, f"{path}: {out}{err}")


def check_options(room, command):
    status, text, err = room.run(f"tracefs-{command} --help=all")
    expect(status == 0, err)
    with open(os.path.join(SOURCE, f"docs/man/tracefs-{command}.1"),
              encoding="utf-8") as page:
        manual = page.read()
    helped = examples.options_of_help(text)
    explained = examples.options_of_manual(manual)
    expect(helped, f"tracefs-{command} --help names no option:\n{text}")
    expect(helped <= explained, f"tracefs-{command}: not in its manual page: "
           f"{sorted(helped - explained)}")
    expect(explained <= helped, f"tracefs-{command}: not in its --help: "
           f"{sorted(explained - helped)}")
    status, text, err = room.run(f"tracefs-{command} --help=json")
    expect(status == 0, err)
    told = examples.unescape(manual)
    for row in json.loads(text)["options"]:
        missing = [word for word in row["words"]
                   if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", told)]
        expect(not missing, f"tracefs-{command}: its manual page has not all "
               f"words of --{row['name']}: {missing}")


def check_words(name, text):
    """Macros that alternate two fonts put their words together without blanks:
    a sentence behind one of them becomes one word."""
    for line in text.splitlines():
        macro = re.match(r"\.(?:BR|RB|BI|IB|IR|RI) (.*)", line)
        words = re.findall(r'"[^"]*"|\S+', macro[1]) if macro else []
        glued = [a + b for a, b in zip(words, words[1:])
                 if all(re.fullmatch("[A-Za-z]{2,}", word) for word in (a, b))]
        expect(not glued, f"{name}: {line}: reads {' '.join(glued)}")


def check_links(name, text):
    """Files that a document sends its reader to are there, but for those that
    it says to add."""
    text = re.sub(r"^\| `[^|]*\| new: ", "| ", text, flags=re.M)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for match in re.finditer(r"\]\(([^)#:\s]+)[^)]*\)", prose):
        path = os.path.join(SOURCE, os.path.dirname(name), match[1])
        expect(os.path.exists(path), f"{name}: there is no {match[1]}")
    for match in re.finditer(r"`((?:docs|config|filters|drivers|tracefs|tests|"
                             r"scripts|bench|anonymize)/[\w./-]+\.(?:md|conf|cc|"
                             r"h|py|json))`", text):
        if "DATE" in match[1]:  # a place holder
            continue
        expect(os.path.exists(os.path.join(SOURCE, match[1])),
               f"{name}: there is no {match[1]}")


def documents():
    found = ["README.md"]
    for pattern in ("bench/README.md", "config/*.md", "filters/**/*.md",
                    "anonymize/*.md", "tracefs/**/*.md", "docs/**/*.md"):
        found += [os.path.relpath(path, SOURCE) for path in
                  sorted(glob.glob(os.path.join(SOURCE, pattern),
                                   recursive=True))]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, metavar="DIR")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="examples whose place contains TEXT")
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: only root may mount, with /dev/fuse")
        sys.exit(SKIPPED)
    rooms.enter(sys.argv)
    room = rooms.Room(SOURCE, os.path.abspath(options.bin))
    failed = []
    passed = 0

    def case(title, check, *arguments):
        nonlocal passed
        if options.only not in title:
            return
        try:
            why = check(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            failed.append(title)
            print(f"FAILED: {title}")
            if isinstance(error, Failure):
                print(error)
            else:
                traceback.print_exc(file=sys.stdout)
        else:
            passed += 1
            print(f"ok: {title}" + (f" (not run: {why})" if why else ""))
        sys.stdout.flush()

    try:
        furnish(room)
        for name in documents():
            with open(os.path.join(SOURCE, name), encoding="utf-8") as page:
                text = page.read()
            case(f"{name}: links", check_links, name, text)
            for example in examples.of_markdown(name, text):
                case(example.place, check_example, room, example)
        for path in sorted(glob.glob(os.path.join(SOURCE, "docs/man/*"))):
            name = os.path.relpath(path, SOURCE)
            with open(path, encoding="utf-8") as page:
                case(f"{name}: words", check_words, name, page.read())
        for command in COMMANDS:
            name = f"docs/man/tracefs-{command}.1"
            with open(os.path.join(SOURCE, name), encoding="utf-8") as page:
                for example in examples.of_manual(name, page.read()):
                    case(example.place, check_example, room, example)
            _, text, _ = room.run(f"tracefs-{command} --help=all")
            for example in examples.of_help(f"tracefs-{command}", text):
                case(example.place, check_example, room, example)
            case(f"tracefs-{command}: options", check_options, room, command)
        for path in sorted(glob.glob(os.path.join(SOURCE,
                                                  "config/samples/*.conf"))):
            case(os.path.relpath(path, SOURCE), check_sample, room, path)
    finally:
        room.leave()
    print(f"{passed} passed, {len(failed)} failed")
    for title in failed:
        print(f"  failed: {title}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
