"""Workloads that are recorded and replayed: what programs do, a few seconds each.

Those of round_trips_test.py run in a traced folder that is empty, with the source
of this project in $SOURCE.
"""

import os
import subprocess
import sys

# Rights that a trace may ask for, as what extended attributes hold.
USER = 12345
# cap_setuid+ep (linux/capability.h: revision 2, effective; two words of each).
CAPABILITY = "0100000280000000000000000000000000000000"
# A user has all rights by name (linux/posix_acl_xattr.h).
ACL = ("02000000" "01000600ffffffff" "02000700" + USER.to_bytes(4, "little").hex()
       + "04000000ffffffff" "10000700ffffffff" "20000000ffffffff")
# A replay that leaves nothing out.
AS_IT_WAS = ("--users", "recorded", "--set-id", "--security-xattrs",
             "--trusted-xattrs")
HERE = os.path.dirname(os.path.abspath(__file__))
RACES = [sys.executable, "-B", os.path.join(HERE, "races.py"), "."]
FILE_RACES = [sys.executable, "-B", os.path.join(HERE, "file_races.py"), "."]
GIT = "git -c user.name=n -c user.email=e@example.org -c gc.autoDetach=false"

# name: (programs it takes, script; it runs in the mount)
WORKLOADS = {
    "names": ((), """
mkdir -p a/b/c; echo hello > a/x; cat a/x; ln a/x a/y; ln -s x a/z
readlink a/z; mv a/y b; rm a/x; chmod 600 b; mv a/b moved; rmdir moved/c
mkfifo pipe; cp b a/copy; truncate -s 1000000 a/copy; ls -lR
mkdir same; ! mkdir same; ! rmdir a; ! cat missing; mv -T same other
ln b b2; ln b b3; rm b2; touch -d 2001-02-03 b3; mv b3 'odd
name'; > 'x y'; > "$(printf '\\377\\001')"
"""),
    "holes and offsets": (("python3",), """
python3 - <<'END'
import os
f = os.open("f", os.O_RDWR | os.O_CREAT, 0o640)
os.pwrite(f, b"x" * 10000, 1 << 20)
os.pwrite(f, b"y" * 5000, 4090)
os.ftruncate(f, 900000)
os.posix_fallocate(f, 0, 950000)
print(len(os.pread(f, 20000, 0)), len(os.pread(f, 10, 2000000)))
g = os.open("g", os.O_RDWR | os.O_CREAT | os.O_APPEND)
for i in range(50):
    os.write(g, b"line %d\\n" % i)
os.unlink("g")
os.pwrite(g, b"still here", 0)
os.fchmod(g, 0o600)
h = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(h, b"got a name")
os.link(f"/proc/self/fd/{h}", "named", src_dir_fd=h)  # follows it
os.rename("f", "f2")
os.copy_file_range(f, h, 8000, 4000, 12)
os.fsync(f)
END
"""),
    "tar": (("tar",), """
tar cf src.tar -C "$SOURCE" tracefs/base tracefs/event docs
tar xf src.tar; tar cf - tracefs | tar tf - > list; rm -r tracefs/base
"""),
    "git": (("git",), f"""
git init -q one; cd one; for i in 1 2 3; do
seq $i 400 > f$i; {GIT} add .; {GIT} commit -qm $i; done
cd ..; git clone -q one two; cd two; {GIT} gc -q; {GIT} fsck
"""),
    "make": (("make", "gcc"), """
for i in 1 2 3 4; do echo "int f$i(void) { return $i; }" > f$i.c; done
echo 'int main(void) { return 0; }' > main.c
printf 'p: main.o f1.o f2.o f3.o f4.o\\n\\t$(CC) -o p $^\\n' > Makefile
make -s -j2; touch f1.c; make -s; make -s -q
"""),
    "sqlite": (("sqlite3",), """
for i in 1 2 3; do sqlite3 db "PRAGMA journal_mode = $([ $i = 2 ] && echo wal \
|| echo delete); CREATE TABLE IF NOT EXISTS t(a, b); WITH RECURSIVE n(x) AS
(SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) INSERT INTO t SELECT x,
hex(x) FROM n; DELETE FROM t WHERE a % 7 = 0; VACUUM"; done
"""),
    "rsync": (("rsync",), """
mkdir from; cp -r "$SOURCE/docs" from; rsync -a from/ to; echo more >> from/docs/reader.md
rm from/docs/security.md; rsync -a --delete --inplace from/ to
"""),
    "fio": (("fio",), """
fio --name=j --directory=. --size=2m --rw=randrw --bs=4k --numjobs=3 \
--ioengine=psync --fallocate=none --unlink=0 --output-format=terse
"""),
    "stress-ng": (("stress-ng",), """
mkdir t; stress-ng --temp-path t --hdd 1 --hdd-ops 10 --hdd-bytes 1m \
--rename 1 --rename-ops 100 --dir 1 --dir-ops 50 -q
"""),
    "postmark": (("postmark",), """
printf 'set location .\nset number 60\nset transactions 150\n\
set subdirectories 4\nset size 512 10240\nset report terse\nrun\nquit\n' > pm
postmark pm; touch done
"""),
    "cmake": (("cmake", "make", "gcc"), """
printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\n\
add_library(l STATIC l.c)\nadd_executable(p p.c)\n\
target_link_libraries(p l)\n' > CMakeLists.txt
echo 'int f(void) { return 0; }' > l.c
echo 'int f(void); int main(void) { return f(); }' > p.c
cmake -S . -B build > log 2>&1; make -C build >> log 2>&1; ./build/p
"""),
    "autotools": (("autoconf", "automake", "make", "gcc"), """
printf 'AC_INIT([p],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\n\
AC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n' > configure.ac
printf 'bin_PROGRAMS = p\np_SOURCES = p.c\n' > Makefile.am
echo 'int main(void) { return 0; }' > p.c
autoreconf -i > log 2>&1; ./configure --prefix="$PWD/out" >> log 2>&1
make -s install >> log 2>&1; out/bin/p; make -s clean
"""),
    "postgresql": (("initdb", "pg_ctl", "psql"), """
chown 65534:65534 .; PATH=$(dirname "$(readlink -f "$(command -v initdb)")"):$PATH
trap 'as pg_ctl -D db -m immediate stop' EXIT
as() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
export LC_ALL=C; as initdb -D db -A trust -U me > log
as pg_ctl -w -D db -l pglog -o "-k '$PWD' -h ''" start >> log
as psql -q -h "$PWD" -U me postgres <<'END'
create table t as select x, md5(x::text) m from generate_series(1, 3000) x;
update t set m = 0 where x % 3 = 0; create index on t (m); vacuum t; checkpoint;
END
as pg_ctl -w -D db -m fast stop >> log; trap - EXIT
"""),
    "sqlite wal": (("sqlite3",), """
sqlite3 db "PRAGMA journal_mode = wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b)"
for i in 1 2 3 4; do sqlite3 db "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT
x + 1 FROM n WHERE x < 500) INSERT INTO t(b) SELECT hex(x) FROM n" & done; wait
sqlite3 db "CREATE INDEX i ON t(b); PRAGMA wal_checkpoint(TRUNCATE); REINDEX"
"""),
    "fio mapped": (("fio",), """
fio --name=m --directory=. --size=1m --rw=randwrite --bs=4k --ioengine=mmap \
--fsync=16 --unlink=0 --output-format=terse
fio --name=a --directory=. --size=1m --rw=randrw --bs=8k --iodepth=8 \
--ioengine=libaio --unlink=0 --output-format=terse
"""),
    "fio verify": (("fio",), """
fio --name=v --directory=. --size=1m --rw=write --bs=16k --ioengine=psync \
--verify=crc32c --do_verify=1 --fallocate=native --unlink=0 \
--output-format=terse
"""),
    "stress-ng names": (("stress-ng",), """
mkdir t; for s in dentry filename rename; do
stress-ng --temp-path t --$s 2 --$s-ops 40 -q; done
"""),
    "stress-ng files": (("stress-ng",), """
mkdir t; for s in seek chmod chown utime xattr; do
stress-ng --temp-path t --$s 1 --$s-ops 3 --seek-size 1m -q; done
"""),
    "saved by rename": (("python3", "sed"), """
mkdir m; cp "$SOURCE"/tests/support/*.py m; sed -i 's/self/this/g' m/*.py
python3 -m compileall -q m; for i in 1 2 3; do sort m/trees.py > m/.new
ln -f m/trees.py m/trees.py~; mv m/.new m/trees.py; done
cp -a m copy; cp --sparse=always -r m sparse; install -m 600 m/trees.py other
"""),
    "archives": (("tar", "gzip"), """
cp -r "$SOURCE/config" c; tar czf c.tar.gz c; gzip -k c/*.md; tar xzf c.tar.gz -C c
split -b 3000 c.tar.gz part.; cat part.* | cmp - c.tar.gz
find . -name '*.gz' -newer c -delete -o -type f -exec chmod 440 {} +
"""),
    "locks and logs": (("python3", "flock"), """
for i in 1 2 3 4; do (for k in 1 2 3 4 5; do flock lock sh -c "echo $i $k >> log"
done) & done; wait; python3 - <<'END'
import fcntl, os
f = os.open("log", os.O_RDWR)
for i in range(20):
    fcntl.lockf(f, fcntl.LOCK_EX, 5, i * 5)
    os.pwrite(f, b"again", i * 5)
    fcntl.lockf(f, fcntl.LOCK_UN, 5, i * 5)
END
mv log log.1; truncate -s 0 log; tail -c 20 log.1 >> log
"""),
    "random calls": (("python3",), f"""
mkdir tree; {sys.executable} -B {os.path.join(HERE, "..", "random", "calls.py")} \
tree 11 1500 > results
"""),
    "threads": (("python3",), f"{' '.join(RACES)} 120"),
}


def record(suite, script, before="true"):
    """A trace of what `script` does where `before` was done, and the folder."""
    suite.remove("recorded")
    folder = suite.folder("recorded")
    subprocess.run(["sh", "-ec", before], cwd=folder, check=True)
    trace = suite.path("recorded.trace")
    if os.path.exists(trace):
        os.unlink(trace)
    # Or the kernel would keep devices and set-id bits from the recording.
    mount = suite.mount(
        folder, folder,
        ("", "STR_REPLAY | STR_DATA | STR_PNAME", f'file = "{trace}"'),
        options=("-o", "dev,suid"))
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    mount.unmount()
    return trace, folder
