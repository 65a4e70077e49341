#!/usr/bin/env python3
"""Completion of a command for bash, zsh and fish, made from what it says of
itself: its option rows (--help=json), and the words that --help lists."""

import argparse
import json
import os
import re
import subprocess

FILES = {"FILE", "TRACE", "POLICY", "ORIGINAL", "OLD", "MASTER"}
# Arguments that are no options. Of other commands: files.
ARGUMENTS = {"tracefs-mount": "folders", "tracefs-recv": "nothing",
             "tracefs-ctl": "mount", "tracefs-run": "command",
             "tracefs-keygen": "kind", "tracefs-deps": "files",
             "tracefs-report": "question", "tracefs": "front",
             "mount.fuse.tracefs": "folders", "umount.fuse.tracefs": "mount"}


class Option:
    def __init__(self, row):
        self.short = row.get("letter", "")
        self.long = row["name"]
        # One that follows only after '=' is not the next word.
        self.value = "" if row.get("optional") else row.get("value", "")
        self.text = row["help"]
        self.words = row["words"]
        self.open = row.get("open", False)
        self.repeated = row.get("repeated", False)

    def names(self):
        return ([f"-{self.short}"] if self.short else []) + (
            [f"--{self.long}"] if self.long else [])

    def kind(self):
        if not self.value:
            return "none"
        if self.words:
            return "words"
        if self.value in FILES:
            return "file"
        if self.value == "DIR":
            return "folder"
        if self.long == "user":
            return "user"
        if self.value == "GROUP":
            return "group"
        return "text"


def told_by(command, option):
    return subprocess.run([command, option], capture_output=True, text=True,
                          check=True, encoding="utf-8").stdout


# The words that --help lists, each with what it is for.
def verbs_in(told):
    verbs = []
    in_options = False
    for line in told.splitlines():
        if re.match(r"^\S", line):
            in_options = line.startswith("Options")
        verb = re.match(r"^  ([a-z][a-z-]*)(?: [A-Z\[<\]]+[A-Z\]]*)* +(\w.*)$",
                        line)
        if verb and not in_options and not verb[1].startswith("tracefs-"):
            verbs.append((verb[1], verb[2].split(";")[0]))
    return verbs


def read_help(command):
    rows = json.loads(told_by(command, "--help=json"))["options"]
    told = told_by(command, "--help=all")
    return told, [Option(row) for row in rows], verbs_in(told)


def verbs_of(name, verbs, told):
    if name in ("tracefs", "tracefs-ctl", "tracefs-report"):
        return verbs
    if name == "tracefs-keygen":
        usage = told.split("\n\n")[0]
        return [verb for verb in verbs if f"{name} {verb[0]} " in usage]
    return []


MOUNTS = "awk '/ - fuse[.]tracefs /{print $5}' /proc/self/mountinfo"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


# --- bash

def bash(name, options, verbs):
    function = "_" + re.sub(r"\W", "_", name)
    out = [f"# bash completion for {name}, made from its options",
           f"{function}() {{", "  local cur prev words cword split",
           "  _init_completion -s -n : || return", "  case $prev in"]
    take = {"file": "_filedir", "folder": "_filedir -d",
            "user": 'COMPREPLY=($(compgen -u -- "$cur"))',
            "group": 'COMPREPLY=($(compgen -g -- "$cur"))', "text": ""}
    for option in options:
        if option.kind() == "none":
            continue
        what = take.get(option.kind())
        if option.kind() == "words":
            what = ("COMPREPLY=($(compgen -W " +
                    quoted(" ".join(option.words)) + ' -- "$cur"))')
            if option.open and option.value in FILES:
                what += "; _filedir"
        out.append(f"    {' | '.join(option.names())})")
        out += [f"      {what}"] if what else []
        out += ["      return", "      ;;"]
    every = " ".join(word for option in options for word in option.names()
                     if len(word) > 2 or not option.long)
    out += ["  esac", "  $split && return", '  if [[ $cur == -* ]]; then',
            f"    COMPREPLY=($(compgen -W {quoted(every)} -- \"$cur\"))",
            "    return", "  fi"]
    kind = ARGUMENTS.get(name, "files")
    words = quoted(" ".join(verb for verb, _ in verbs))
    if kind == "mount":
        out += ["  local -a mounts", "  if ((cword == 1)); then",
                f"    mapfile -t mounts < <({MOUNTS})", "    local mount",
                '    for mount in "${mounts[@]}"; do',
                '      [[ $mount == "$cur"* ]] && COMPREPLY+=("$mount")',
                "    done"]
        if verbs:
            out += ["  elif ((cword == 2)); then",
                    f"    COMPREPLY=($(compgen -W {words} -- \"$cur\"))"]
        out += ["  else", "    _filedir", "  fi"]
    elif kind == "kind":
        out += ["  if ((cword == 1)); then",
                f"    COMPREPLY=($(compgen -W {words} -- \"$cur\"))",
                "  else", "    _filedir", "  fi"]
    elif kind == "front":
        # "tracefs dump --fo" is completed as "tracefs-dump --fo".
        at = out.index("  case $prev in")
        out[at:at] = [
            "  if ((cword > 1)); then",
            '    COMP_LINE=${COMP_LINE/#$1 /$1-}',
            '    COMP_WORDS=("$1-${COMP_WORDS[1]}" "${COMP_WORDS[@]:2}")',
            "    ((--COMP_CWORD))", "    _command_offset 0", "    return",
            "  fi"]
        out += [f"  COMPREPLY=($(compgen -W {words} -- \"$cur\"))", "  _filedir"]
    elif kind == "question":
        out += [f"  COMPREPLY=($(compgen -W {words} -- \"$cur\"))", "  _filedir"]
    elif kind == "command":
        out += ['  _command_offset "$at"']
        at = out.index("  case $prev in")
        out[at:at] = ["  local at", "  at=$(_tracefs_run_at)",
                      "  if ((cword > at)); then",
                      '    _command_offset "$at"', "    return", "  fi"]
        out[1:1] = [
            "# Where the command to run begins: behind --, or at the first",
            "# word that is neither an option nor its value.",
            "_tracefs_run_at() {", "  local i=1",
            "  for ((; i < cword; ++i)); do", '    case ${words[i]} in',
            "      --) echo $((i + 1)); return ;;",
            "      " + " | ".join(
                name for option in options if option.kind() != "none"
                for name in option.names()) + ") ((++i)) ;;",
            "      -*) ;;", "      *) break ;;", "    esac", "  done",
            "  echo $i", "}"]
    elif kind == "folders":
        out += ["  _filedir -d"]
    elif kind == "files":
        out += ["  _filedir"]
    out += [f"}} && complete -F {function} {name}", ""]
    return "\n".join(out)


# --- zsh

def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh(name, options, verbs):
    out = [f"#compdef {name}", f"# Made from the options of {name}.",
           "local -a mounts", f"mounts=(${{(f)\"$({MOUNTS})\"}})",
           "_arguments -s -S \\"]
    take = {"file": "_files", "folder": "_files -/", "user": "_users",
            "group": "_groups", "text": ""}
    for option in options:
        names = option.names()
        action = take.get(option.kind())
        if option.kind() == "words":
            action = "(" + " ".join(option.words) + ")"
        value = "" if option.kind() == "none" else (
            f":{zsh_text(option.value)}:{action}")
        for word in names:
            sign = "=" if value and word.startswith("--") else (
                "+" if value else "")
            others = "" if option.repeated else (
                "(" + " ".join(names) + ")")
            out.append(f"  '{others or '*'}{word}{sign}"
                       f"[{zsh_text(option.text)}]{value}' \\")
    kind = ARGUMENTS.get(name, "files")
    rows = " ".join(f"{verb}\\:\"{zsh_text(text)}\""
                    for verb, text in verbs).replace('"', "\\\"")
    if kind == "mount":
        out.append("  '1:mount:($mounts)' \\".replace("'", '"'))
        if verbs:
            out.append(f'  "2:command:(({rows}))" \\')
        out.append("  '*:argument:_files'")
    elif kind in ("kind", "question", "front"):
        out += [f'  "1:{kind}:(({rows}))" \\', "  '*:file:_files'"]
    elif kind == "command":
        out += ["  '(-):command:_command_names -e' \\",
                "  '*::argument:_normal'"]
    elif kind == "nothing":
        out[-1] = out[-1].removesuffix(" \\")
    else:
        out.append("  '*:" + ("folder:_files -/'" if kind == "folders"
                              else "trace:_files'"))
    return "\n".join(out) + "\n"


# --- fish

def fish(name, options, verbs):
    out = [f"# Made from the options of {name}."]
    kind = ARGUMENTS.get(name, "files")
    if kind in ("nothing", "mount", "kind"):
        out.append(f"complete -c {name} -f")
    for option in options:
        line = f"complete -c {name}"
        line += f" -s {option.short}" if option.short else ""
        line += f" -l {option.long}" if option.long else ""
        what = option.kind()
        if what == "words":
            line += " -x -a " + quoted(" ".join(option.words))
        elif what == "folder":
            line += " -x -a '(__fish_complete_directories)'"
        elif what == "user":
            line += " -x -a '(__fish_complete_users)'"
        elif what == "group":
            line += " -x -a '(__fish_complete_groups)'"
        elif what == "file":
            line += " -r -F"
        elif what == "text":
            line += " -x"
        out.append(line + " -d " +
                   "'" + option.text.replace("\\", "\\\\").replace(
                       "'", "\\'") + "'")
    number = {"mount": 2, "kind": 1, "question": 1,
              "front": 1}.get(kind)
    for verb, text in verbs:
        out.append(f"complete -c {name} -n '__fish_is_nth_token {number}' "
                   f"-a {verb} -d " + "'" + text.replace("'", "\\'") + "'")
    if kind == "mount":
        out.append(f"complete -c {name} -n '__fish_is_nth_token 1' -a \"("
                   + MOUNTS.replace("$", "\\$") + ")\"")
        out.append(f"complete -c {name} -n 'not __fish_is_nth_token 1; and "
                   "not __fish_is_nth_token 2' -F")
    elif kind == "kind":
        out.append(f"complete -c {name} -n 'not __fish_is_nth_token 1' -F")
    elif kind == "folders":
        out.append(f"complete -c {name} -f -a "
                   "'(__fish_complete_directories)'")
    elif kind == "command":
        out.append(f"complete -c {name} -x -a "
                   "'(__fish_complete_subcommand)'")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="folder")
    parser.add_argument("commands", nargs="+")
    given = parser.parse_args()
    for command in given.commands:
        name = os.path.basename(command)
        told, options, found = read_help(command)
        verbs = verbs_of(name, found, told)
        for shell, make, file in (("bash", bash, name), ("zsh", zsh, "_" + name),
                                  ("fish", fish, name + ".fish")):
            folder = os.path.join(given.to, shell)
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, file)
            with open(path, "w", encoding="utf-8") as out:
                out.write(make(name, options, verbs))


if __name__ == "__main__":
    main()
