"""Seven pieces of work that nobody tuned for: each a shell script that runs in
an empty folder of the mount. $1 is a folder outside, prepared by `before`.
"""

import os
import shutil
import subprocess


class Work:
    """`tools` must be installed; before(outside) lays out what is read."""

    def __init__(self, name, tools, script, before=None):
        self.name = name
        self.tools = tools
        self.script = script
        self.before = before or (lambda outside, options: None)

    def missing(self, options):
        """Why it cannot run here, or None."""
        for tool in self.tools:
            if shutil.which(tool) is None:
                return f"{tool} is not installed"
        if self.name == "configure and make" and not os.path.exists(
                os.path.join(options.project or "", "configure")):
            return "there is no source of a project; scripts/setup --retry"
        return None


def copy_project(outside, options):
    shutil.copytree(options.project, os.path.join(outside, "project"),
                    symlinks=True)


def make_tree(outside, _options):
    """A tree with a bit of everything, for rsync, tar and git."""
    tree = os.path.join(outside, "tree")
    for top in ("docs", "src/deep/er", "empty", "names"):
        os.makedirs(os.path.join(tree, top))
    for number in range(60):
        folder = ("docs", "src", "src/deep", "src/deep/er")[number % 4]
        with open(os.path.join(tree, folder, f"file-{number}.txt"), "wb") as f:
            f.write(bytes([32 + number]) * (number * number * 97 % 70000))
    for name in ("with blank ", "quo'te", "com,ma", "bar|", "ümlaut",
                 "back\\slash", "new\nline", "x" * 200):
        with open(os.path.join(tree, "names", name), "w",
                  encoding="utf-8") as f:
            f.write(name * 10)
    os.symlink("../docs/file-0.txt", os.path.join(tree, "src/link"))
    os.link(os.path.join(tree, "docs/file-4.txt"),
            os.path.join(tree, "src/hard"))
    with open(os.path.join(tree, "sparse"), "wb") as f:
        f.truncate(3 << 20)
        f.seek(1 << 20)
        f.write(b"middle")


def make_npm(outside, _options):
    """Packages that are installed without a registry."""
    for name, needs in (("leaf", {}), ("branch", {"leaf": "1.0.0"})):
        folder = os.path.join(outside, name)
        os.makedirs(os.path.join(folder, "lib"))
        depends = ", ".join(f'"{n}": "{v}"' for n, v in needs.items())
        with open(os.path.join(folder, "package.json"), "w",
                  encoding="ascii") as f:
            f.write('{"name": "%s", "version": "1.0.0", "bin": "./run.js", '
                    '"peerDependencies": {%s}}' % (name, depends))
        with open(os.path.join(folder, "run.js"), "w", encoding="ascii") as f:
            f.write("#!/usr/bin/env node\nconsole.log(1)\n")
        for number in range(20):
            with open(os.path.join(folder, "lib", f"{number}.js"), "w",
                      encoding="ascii") as f:
                f.write(f"module.exports = {number};\n" * (number + 1))
        subprocess.run(["npm", "pack", "--silent", folder], cwd=outside,
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "npm_config_cache":
                            os.path.join(outside, "npm-cache"),
                            "npm_config_update_notifier": "false"})


def make_deb(outside, _options):
    """A package of our own, so that no archive is asked."""
    root = os.path.join(outside, "package")
    os.makedirs(os.path.join(root, "DEBIAN"))
    with open(os.path.join(root, "DEBIAN/control"), "w",
              encoding="ascii") as f:
        f.write("Package: sample\nVersion: 1\nArchitecture: all\n"
                "Maintainer: Nobody <nobody@example.org>\n"
                "Description: files to unpack\n")
    shutil.copytree("/usr/share/doc/dpkg", os.path.join(root, "usr/share/doc"))
    os.makedirs(os.path.join(root, "usr/bin"))
    for name in ("cat", "cp"):
        shutil.copy(f"/bin/{name}", os.path.join(root, "usr/bin", name))
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root,
                    os.path.join(outside, "sample.deb")], check=True,
                   stdout=subprocess.DEVNULL)


CONFIGURE = """
cp -a "$1/project" source
# What is generated is newer than what it was generated from.
touch source/aclocal.m4
touch source/configure source/config.h*in source/Makefile.in
mkdir build && cd build
../source/configure --prefix="$PWD/../root" CFLAGS=-O0 > configure.out
make -j2 > make.out
make install > install.out
cat ../root/include/lzo/*.h > all
"""

GIT = """
export GIT_CONFIG_NOSYSTEM=1 HOME="$1" GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e
export GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
git init -q one
cp -a "$1/tree/." one
cd one
git add .
git commit -qm first
for i in 1 2 3 4; do
  echo $i >> docs/file-0.txt
  git mv docs/file-$((i * 4)).txt docs/moved-$i.txt
  git commit -qam "change $i"
done
git -c pack.threads=1 gc -q --prune=now
git fsck --strict > /dev/null
git status --porcelain
cd ..
git clone -q --no-local one two
"""

COPIES = """
rsync -a "$1/tree/" first/
echo more >> "$1/tree/docs/file-8.txt"
rm "$1/tree/docs/file-12.txt"
rsync -a --delete "$1/tree/" first/
tar cf all.tar first
mkdir out
tar xf all.tar -C out
cp -a out/first third
cat third/docs/* > joined
mv third fourth
rm -r out
"""

SQLITE = """
sqlite3 data.db "
  pragma journal_mode = wal;
  create table t(id integer primary key, a text, b blob);
  with recursive n(i) as (select 1 union all select i + 1 from n limit 500)
    insert into t select i, 'row ' || i, zeroblob(i % 300) from n;
  create index i on t(a);
  update t set a = a || '?' where id % 7 = 0;
  pragma wal_checkpoint;
  delete from t where id % 5 = 0;
  vacuum;" > /dev/null
sqlite3 data.db "select count(*) from t; pragma integrity_check;"
sqlite3 data.db .dump > dump.sql
"""

DEB = """
dpkg-deb -x "$1/sample.deb" root
dpkg-deb -e "$1/sample.deb" control
cd root
find . -type f -print0 | sort -z | xargs -0 md5sum > ../sums
md5sum --quiet -c ../sums
./usr/bin/cp -r usr copy
"""

NPM = """
export HOME="$1" npm_config_cache="$1/npm-cache" npm_config_offline=true
export npm_config_update_notifier=false npm_config_audit=false
echo '{"name": "app", "version": "1.0.0"}' > package.json
npm install --silent --no-fund --ignore-scripts "$1"/leaf-*.tgz "$1"/branch-*.tgz
node -e 'require("leaf/lib/3.js")'
npm ls --silent > listing
"""

REDIS = """
socket="$1/redis.sock"
(exec -a redis-server redis-check-rdb --port 0 --unixsocket "$socket" \
  --dir "$PWD" --appendonly yes --appendfsync always --save '' \
  --daemonize no > server.log) &
until redis-cli -s "$socket" ping > /dev/null 2>&1; do sleep 0.1; done
for i in 1 2 3 4 5 6 7 8; do
  redis-cli -s "$socket" set key$i value$i > /dev/null
  redis-cli -s "$socket" append key$i more > /dev/null
done
redis-cli -s "$socket" bgrewriteaof > /dev/null
while redis-cli -s "$socket" info persistence |
  grep -q 'aof_rewrite_\\(in_progress\\|scheduled\\):1'; do sleep 0.1; done
redis-cli -s "$socket" shutdown > /dev/null
wait
"""

WORKS = (
    Work("configure and make", ["make", "cc"], CONFIGURE, copy_project),
    Work("git", ["git"], GIT, make_tree),
    Work("rsync and tar", ["rsync", "tar"], COPIES, make_tree),
    Work("sqlite", ["sqlite3"], SQLITE),
    Work("deb", ["dpkg-deb"], DEB, make_deb),
    Work("npm", ["npm", "node"], NPM, make_npm),
    Work("redis", ["redis-cli", "redis-check-rdb"], REDIS),
)
