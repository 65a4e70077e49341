#!/usr/bin/env python3
"""A mount whose daemons are killed behaves as the directory below: the scenarios
of the transparency suite, as each of its users.

  transparent_test.py --bin build/release/bin \
      --transparency build/release/tests/tracefs_transparency [--killed 10]
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import successions_of  # noqa: E402
from tracefs_harness import (VISIBILITIES, Suite, expect,  # noqa: E402
                             expect_equal)


def compare(suite, visibility):
    source = suite.folder(visibility, "source")
    point = suite.folder(visibility, "mnt")
    mount = suite.mount(source, point, suite.path(visibility, "trace"),
                        visibility=visibility)
    words = ["--filter", suite.options.scenarios] \
        if suite.options.scenarios else []
    done = subprocess.run(
        [suite.options.transparency, "--backing", source, "--mount", point,
         *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    expect_equal(done.returncode, 0, done.stdout)
    deaths = successions_of(mount)
    expect(deaths > 0, "nobody was killed")
    mount.unmount()
    suite.command("tracefs-verify", suite.path(visibility, "trace"))
    return f"{deaths} deaths; {done.stdout.splitlines()[-1]}"


def main():
    def arguments(parser):
        parser.add_argument("--transparency", required=True, metavar="FILE",
                            help="the command that compares")
        parser.add_argument("--scenarios", metavar="TEXT",
                            help="those whose names contain TEXT")
    suite = Suite("transparent", __doc__, arguments)
    suite.options.killed = suite.options.killed or 5
    for visibility in VISIBILITIES:
        suite.run(visibility, compare, suite, visibility)
    suite.finish()


if __name__ == "__main__":
    main()
