#!/usr/bin/env python3
"""Real work in a recorded mount: the same results as outside.

Each piece of work runs twice at the same path: once with a directory bound
there and once with one that tracefs-mount shows there. Exit status, output and
the tree that is left must be the same, and the trace of it must be whole.

  realwork_test.py --bin build/release/bin --project FOLDER    for ctest
  realwork_test.py --bin ... --all       in every visibility, over all transports
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

# For what the tools keep (a compiler cache, a package registry): not the
# user's.
HOME = tempfile.mkdtemp(prefix="tracefs-home-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Failure,  # noqa: E402
                             Skip, Suite, expect, expect_equal)
from trees import expect_same_tree, tree_digest  # noqa: E402

PATIENCE_S = 900
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC",
    "HOME": HOME, "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e",
    "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e",
    "GIT_AUTHOR_DATE": "2001-02-03T04:05:06Z",
    "GIT_COMMITTER_DATE": "2001-02-03T04:05:06Z",
}

# A CMake project of 150 files, configured, compiled, linked, and found to be up
# to date afterwards.
BUILD = """
cmake -S project -B build -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_C_FLAGS=-O0 > /dev/null
make -C build -j2 > /dev/null
make -C build
cat > use.c <<'END'
#include <stdio.h>
#include <tommath.h>
int main(void) {
  mp_int a;
  char text[200];
  size_t written;
  if (mp_init(&a) || mp_2expt(&a, 521) || mp_sub_d(&a, 1, &a)) return 1;
  if (mp_to_radix(&a, text, sizeof text, &written, 10)) return 2;
  puts(text);
  return 0;
}
END
cc -Iproject use.c -o use build/libtommath.a
./use
touch project/bn_mp_add.c
make -C build | grep -c Building
find . -name '*.o' | wc -l
"""
# What differs from one build to the next anywhere: names of temporary targets.
BUILD_NOISE = ("CMakeFiles/CMakeOutput.log", "CMakeFiles/CMakeError.log",
               "CMakeFiles/CMakeConfigureLog.yaml",
               "CMakeFiles/3.25.1/CMakeDetermineCompilerABI_C.bin")

# $1 is a repository outside.
GIT = """
git clone -q --no-local "$1" clone
cd clone
git status --porcelain
for i in 1 2 3 4 5; do
  git checkout -q -b branch$i
  for f in bn_mp_a*.c; do echo "/* $i */" >> $f; done
  git commit -qam "change $i"
done
git checkout -q branch1
git merge -q branch5
git rebase -q branch3
git -c pack.threads=1 gc -q --prune=now
git fsck --strict
git status --porcelain
git log --stat --oneline --all
git clone -q . ../second
cd ../second
git log -1 --format=%H
git cat-file --batch-all-objects --batch-check | cksum
git archive HEAD | cksum
git grep -c mp_int | sort | head -n 20
git stash -q || true
git clean -fdxq
"""
# Has the times and inode numbers of files in it.
GIT_NOISE = (".git/index",)

SQLITE = """
for mode in delete truncate persist wal; do
  sqlite3 $mode.db "
    pragma journal_mode = $mode;
    create table t(id integer primary key, a text, b blob);
    with recursive n(i) as (select 1 union all select i + 1 from n limit 3000)
      insert into t select i, 'row ' || i, zeroblob(i % 500) from n;
    create index i on t(a);
    begin; update t set a = a || '!' where id % 3 = 0; rollback;
    update t set a = a || '?' where id % 7 = 0;
    delete from t where id % 5 = 0;
    vacuum;
    pragma integrity_check;
    select count(*), sum(length(b)), max(a) from t;"
  sqlite3 $mode.db .dump | cksum
done
# Four writers at once, kept apart by locks.
sqlite3 shared.db 'create table c(who, n)'
for who in 1 2 3 4; do
  for n in 1 2 3 4 5 6 7 8; do echo "insert into c values($who, $n);"; done |
    sqlite3 -cmd '.timeout 60000' shared.db &
done
wait
sqlite3 shared.db 'select who, count(*) from c group by who order by who;
  pragma integrity_check;'
rm shared.db
"""

TAR = """
mkdir -p tree/empty tree/deep/er/still
cp -a project tree/project
ln tree/project/tommath.h tree/hard
ln -s project/tommath.h tree/soft
truncate -s 3M tree/sparse
printf end >> tree/sparse
setfattr -n user.colour -v blue tree/hard
setfacl -m u:61001:rw tree/project/README.md
chmod 2750 tree/deep
mkfifo tree/pipe
touch -d 2001-02-03 tree/project/*.c
tar --create --sort=name --numeric-owner --xattrs --acls --sparse \
  --mtime=2001-02-03 -f all.tar tree
tar --list --verbose --utc --numeric-owner -f all.tar | cksum
mkdir out
tar --extract --preserve-permissions --same-owner --xattrs --acls -f all.tar \
  -C out
tar --compare --xattrs --acls -f all.tar -C out
diff -r --no-dereference tree/project out/tree/project
tar --create --gzip tree/project | tar --list --gzip | wc -l
tar --update -f all.tar tree/project
tar --list -f all.tar | sort | cksum
rm -r tree
find out -type f -links 2 | sort
"""


class RealWork:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0
        self.point = suite.folder("point")
        self._native = {}  # title -> (status, output, tree)

    def run(self, title, visibility, transport):
        script, tools, noise = PIECES[title]
        for tool in tools:
            if shutil.which(tool) is None:
                return Skip(f"{tool} is not installed")
        project = self.suite.options.project
        if not os.path.exists(os.path.join(project, "CMakeLists.txt")):
            return Skip("scripts/setup could not get a project's source")
        if title not in self._native:
            self._native[title] = self._outside(script, noise)
        base, source = self._prepare()
        trace = self.suite.path(base, "trace")
        mount = self.suite.mount(source, self.point, trace,
                                 visibility=visibility, transport=transport)
        status, output = self._work(script, mount)
        mount.unmount()
        tree = self._tree(source, noise)
        want_status, want_output, want_tree = self._native[title]
        expect_equal(output, want_output, "its output")
        expect_equal(status, want_status, "its exit status")
        expect_same_tree(tree, want_tree, "what it left")
        stats = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-dump"), "--stats", trace],
            capture_output=True, text=True, check=False)
        expect_equal(stats.returncode, 0, f"tracefs-dump\n{stats.stderr}")
        events = stats.stdout.split("total", 1)[1].split()[0]
        if not self.suite.options.keep:
            self.suite.remove(base)
        return f"{len(tree)} paths, {events} events"

    def _prepare(self):
        """A folder of its own with the project; its name and its path."""
        self.number += 1
        base = f"case-{self.number}"
        source = self.suite.folder(base, "source")
        shutil.copytree(self.suite.options.project,
                        os.path.join(source, "project"), symlinks=True)
        return base, source

    def _outside(self, script, noise):
        """The same at the same path, without a mount of ours."""
        base, source = self._prepare()
        subprocess.run(["mount", "--bind", source, self.point], check=True)
        try:
            status, output = self._work(script)
        finally:
            subprocess.run(["umount", "-l", self.point], check=True)
        expect(status == 0, f"it fails outside, too ({status}):\n{output}")
        tree = self._tree(source, noise)
        self.suite.remove(base)
        return status, output, tree

    def _work(self, script, mount=None):
        process = self.suite.background(subprocess.Popen(
            ["/bin/bash", "-euo", "pipefail", "-c", script, "bash",
             self.suite.path("repository")], cwd=self.point, env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, umask=0o022, start_new_session=True))
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            if mount:
                mount.kill()  # whoever waits for it cannot be killed before
            process.kill()
            raise Failure("it hangs") from None
        return process.returncode, output.decode("utf-8", "replace")

    def _tree(self, source, noise):
        return tree_digest(source, lambda path: path.endswith(noise),
                           times=False)

    def make_repository(self):
        """For git to clone: the project, in a few commits."""
        repository = self.suite.folder("repository")
        shutil.copytree(self.suite.options.project, repository, symlinks=True,
                        dirs_exist_ok=True)
        subprocess.run(
            ["/bin/bash", "-euc", """
             git init -q
             # With more, a pack is not the same twice.
             git config pack.threads 1
             for letter in a b c d e f g h i j k l m; do
               git add bn_mp_$letter*.c 2>/dev/null || continue
               git commit -qm "files of $letter"
             done
             git add -A .
             git commit -qm rest
             git tag v1"""], cwd=repository, env=ENVIRONMENT, check=True)


PIECES = {
    "a CMake project": (BUILD, ["cmake", "make", "cc"], BUILD_NOISE),
    "git": (GIT, ["git"], GIT_NOISE),
    # The journal that is kept has a random number in it.
    "sqlite3": (SQLITE, ["sqlite3"], (".db-journal",)),
    # tar puts its process id into the names of sparse files.
    "tar": (TAR, ["tar", "setfattr", "setfacl"], ("all.tar",)),
}
SHORT = {
    "a CMake project": ("auto", "uring"), "git": ("auto", "dev"),
    "sqlite3": ("exact", "dev"), "tar": ("exact", "uring"),
}


def options(parser):
    parser.add_argument("--project", required=True, metavar="FOLDER",
                        help="what scripts/setup got: the source of a project")
    parser.add_argument("--all", action="store_true",
                        help="in every visibility and over every transport")


def main():
    suite = Suite("realwork", __doc__, options)
    work = RealWork(suite)
    if (shutil.which("git") and
            os.path.isdir(suite.options.project)):
        work.make_repository()
    for title in PIECES:
        settings = [SHORT[title]]
        if suite.options.all:
            settings = [(v, t) for v in VISIBILITIES for t in TRANSPORTS]
        for visibility, transport in settings:
            if transport == "uring" and suite.no_uring():
                transport = "dev"
            suite.run(f"{title}, {visibility} over {transport}", work.run,
                      title, visibility, transport)
    suite.finish()


if __name__ == "__main__":
    main()
