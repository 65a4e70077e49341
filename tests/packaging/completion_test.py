#!/usr/bin/env python3
"""Completion in bash, zsh and fish knows every option that --help knows, offers
values where there are any, and takes no file name for a command of its own."""

import argparse
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from staged import commands, expect, finish, have, install, must, run

BASH = "/usr/share/bash-completion/bash_completion"


def options_of(command):
    """All that --help names, read in another way than the generator does."""
    told = must(command, "--help=all")
    told = told.split("\nExamples:")[0].split("\nExample:")[0]
    found = set()
    usage = told.split("\n\n")[0].split("\n")
    for line in told.splitlines():
        if re.match(r"  -", line) or line in usage:
            head = (line if line in usage else
                    re.split(r"\s{2,}", line.strip())[0])
            found |= set(re.findall(r"(?<![\w-])--[a-z][\w-]*", head))
    return found


def bash_offers(prefix, words, folder):
    """What bash offers for the last of `words`."""
    name = words[0]
    script = f"""
source {BASH}
source {prefix}/share/bash-completion/completions/{name}
COMP_WORDS=({' '.join("'" + word + "'" for word in words)})
COMP_CWORD={len(words) - 1}
COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}
COMPREPLY=()
_{re.sub(r'[^a-z]', '_', name)} {name} "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return must("bash", "--norc", "-c", script, cwd=folder).split()


def check_bash(prefix, folder):
    (folder / "some.trace").touch()
    (folder / "$(touch proof)").touch()

    def offers(*words):
        return bash_offers(prefix, words, folder)

    expect("parquet" in offers("tracefs-dump", "--format", "pa"),
           "bash: tracefs-dump --format pa is not completed")
    expect("some.trace" in offers("tracefs-dump", "so"),
           "bash: no file is offered to tracefs-dump")
    expect("set-filter" in offers("tracefs-ctl", "/", "set"),
           "bash: no command is offered to tracefs-ctl")
    expect(offers("tracefs-mount", "--visibility", "ex") == ["exact"],
           "bash: --visibility ex")
    expect("some.trace" in offers("tracefs-dump", "--key", "some"),
           "bash: no file is offered to --key")
    offers("tracefs-dump", "")
    expect(not (folder / "proof").exists(),
           "bash runs what stands in a file's name")
    for command in commands(prefix):
        want = options_of(command)
        got = set(offers(command.name, "--"))
        expect(want <= got, f"bash: {command.name} lacks {want - got}")
        expect(got <= want, f"bash: {command.name} has {got - want}")


# What an option needs beside it before its value is looked at.
BESIDE = {"tracefs-import": ["-o", "new"], "tracefs-recv sasl": [
              "--from", "kafka:h:1", "--out", "/", "--broker-user", "u"],
          "tracefs-recv format": ["--from", "nats:h:1", "--out", "/"],
          "tracefs-recv": ["--listen", "tcp:127.0.0.1:0", "--out", "/"],
          "tracefs-ctl format": ["tail"], "tracefs-ctl": ["top"],
          "tracefs-run": ["--", "true"], "tracefs-anon": ["no-trace", "new"],
          "tracefs-deps": ["--trace", "no-trace", "target"],
          "tracefs-report": ["page", "no-trace"]}
REFUSED = (r"(?:;|--from) there are ([^:]+)$", r"profiles ([a-z -]+)\)",
           r"knows ([^:]+), not",
           r"(?: is|: (?=auto)) ?(?!no )([\w, -]+ or [\w-]+)(?:, not|$)",
           r"is neither (on nor off)")


def words_known(command, option, folder):
    """What a command says it knows when it is given something else; empty: it has
    no list of words."""
    beside = BESIDE.get(f"{command.name} {option}",
                        BESIDE.get(command.name, ["no-trace"]))
    at = ["."] if command.name == "tracefs-ctl" else []
    said = run(command, *at, f"--{option}=nonsense", *beside, cwd=folder,
               timeout=60).stderr
    said = next((line for line in said.splitlines()
                 if f"--{option}" in line or "policy" in line), "")
    for pattern in REFUSED:
        found = re.search(pattern, said)
        if found:
            words = re.split(r",? or |,? nor |, | ", found[1])
            return {re.sub(r"\[?=.*", "", word) for word in words}
    return set()


def check_values(prefix, folder):
    """An option that knows some words offers these and no others."""
    lists = 0
    for command in commands(prefix):
        for option in options_of(command):
            option = option.removeprefix("--")
            known = words_known(command, option, folder)
            if not known or not all(re.fullmatch(r"[\w-]+", word)
                                    for word in known):
                continue
            lists += 1
            got = bash_offers(prefix, (command.name, f"--{option}", ""), folder)
            got = {word.rstrip("=") for word in got}
            # auto is what a receiver does without --log; a page is written in
            # other ways than tables.
            right = (got > known if command.name == "tracefs-report" else
                     got <= known and known - got <= {"auto"})
            expect(right, f"bash: {command.name} --{option}: {got}, {known}")
    expect(lists >= 30, f"only {lists} options have told their words")


def check_zsh(prefix):
    for command in commands(prefix):
        path = prefix / f"share/zsh/site-functions/_{command.name}"
        done = run("zsh", "-n", path)
        expect(done.returncode == 0, f"zsh: {path.name}: {done.stderr}")
        text = path.read_text(encoding="utf-8")
        expect(text.startswith(f"#compdef {command.name}\n"), path.name)
        got = set(re.findall(r"\)?(--[a-z][\w-]*)[=+]?\[", text))
        expect(got == options_of(command),
               f"zsh: {command.name}: {got ^ options_of(command)}")


def check_fish(prefix, folder):
    for command in commands(prefix):
        path = prefix / f"share/fish/vendor_completions.d/{command.name}.fish"
        done = run("fish", "-n", path)
        expect(done.returncode == 0, f"fish: {path.name}: {done.stderr}")
        environment = {**os.environ, "HOME": str(folder),
                       "XDG_CONFIG_HOME": str(folder)}
        out = must("fish", "--no-config", "-c",
                   f"source {path}; complete -C '{command.name} --'",
                   env=environment, cwd=folder)
        got = {line.split("\t")[0] for line in out.splitlines()}
        want = options_of(command)
        got = {word.rstrip("=") for word in got if word.startswith("--")}
        expect(want <= got, f"fish: {command.name} lacks {want - got}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    with tempfile.TemporaryDirectory(prefix="tracefs-completion-") as folder:
        folder = pathlib.Path(folder)
        prefix = folder / "prefix"
        install(build, prefix, "tools", "receiver")
        work = folder / "work"
        work.mkdir()
        checked = 0
        if os.path.exists(BASH):
            check_bash(prefix, work)
            (folder / "empty").mkdir()
            check_values(prefix, folder / "empty")
            checked += 1
        else:
            print("no bash-completion here: bash is not checked")
        if have("zsh"):
            check_zsh(prefix)
            checked += 1
        if have("fish"):
            check_fish(prefix, work)
            checked += 1
        if checked == 0:
            print("no shell with completion here")
            sys.exit(77)
    finish("completion_test")


if __name__ == "__main__":
    main()
