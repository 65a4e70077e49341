"""Data: read, write and their kin."""

from .flags import O_APPEND
from .lookup import Lookup

MAX_REQUEST = 1 << 20


class Io(Lookup):
    def transfer(self, op, file, offset, count, appends=False):
        """Requests of one read or write: whole, or split at MAX_REQUEST."""
        call = self.call
        if count == 0:
            return offset
        if not call.ok:
            event = self.take_if(op, fh=file.fh, ino=file.ino)
            return event["offset"] if event else offset
        left, done = count, 0
        while left > 0:
            event = self.peek((file.fh, offset + done))
            if (done > 0 and (event is None or event["op"] != op
                              or event.get("fh") != file.fh)):
                break
            if not done and appends and event and event["op"] == op:
                offset = self.sizes.get(file.ino, event["offset"])
            error = event.get("errno") if event and done else None
            event = self.take(op, error, fh=file.fh, ino=file.ino,
                              offset=offset + done)
            self.check_path(event, file)
            size, got = event["size"], event["result"]
            if error is not None:
                break
            # Pages of the caller's buffer, of which the first and last may be
            # used in part, are what is limited.
            if size > min(left, MAX_REQUEST) or (
                    size < left and size < MAX_REQUEST - 4096):
                self.fail(f"size of {event}: {left} bytes were left to do")
            left -= size
            done += got
            if got < size:
                break
        if op == "write":
            self.grew(file.ino, offset + done)
        if done != call.result:
            self.fail(f"{op}s of {done} bytes in the trace, strace saw "
                      f"{call.result} of {count}")
        return offset

    def grew(self, ino, end):
        if ino in self.sizes:
            self.sizes[ino] = max(self.sizes[ino], end)

    def length(self, value):
        if isinstance(value, list):
            return sum(v["iov_len"] for v in value)
        return value

    def plain(self, op, fd, count):
        file = self.traced(fd)
        if file is None or file.kind != "file":
            return
        appends = op == "write" and file.flags & O_APPEND
        offset = self.transfer(op, file, file.position, count, appends)
        if self.call.ok and count > 0:
            file.position = offset + self.call.result

    def positioned(self, op, fd, count, offset, flags=0):
        file = self.traced(fd)
        if file is None or file.kind != "file":
            return
        appends = op == "write" and (file.flags & O_APPEND or flags & 0x10)
        if offset in (-1, 2**64 - 1):  # preadv2: the current position
            self.plain(op, fd, count)
        else:
            self.transfer(op, file, offset, count, appends)

    def sys_read(self, fd, _data, count):
        self.plain("read", fd, count)

    def sys_write(self, fd, _data, count):
        self.plain("write", fd, count)

    def sys_readv(self, fd, vector, _count):
        self.plain("read", fd, self.length(vector))

    def sys_writev(self, fd, vector, _count):
        self.plain("write", fd, self.length(vector))

    def sys_pread64(self, fd, _data, count, offset):
        self.positioned("read", fd, count, offset)

    def sys_pwrite64(self, fd, _data, count, offset):
        self.positioned("write", fd, count, offset)

    def sys_preadv(self, fd, vector, _count, offset):
        self.positioned("read", fd, self.length(vector), offset)

    def sys_pwritev(self, fd, vector, _count, offset):
        self.positioned("write", fd, self.length(vector), offset)

    def sys_preadv2(self, fd, vector, _count, offset, flags):
        self.positioned("read", fd, self.length(vector), offset, flags)

    def sys_pwritev2(self, fd, vector, _count, offset, flags):
        self.positioned("write", fd, self.length(vector), offset, flags)

    def sys_lseek(self, fd, offset, whence):
        file = self.file(fd)
        if file is None:
            return
        if file.traced and file.kind == "file" and whence in (3, 4):
            event = self.done("lseek", fh=file.fh, offset=offset & (2**64 - 1),
                              flags=whence)
            if event is not None and self.call.ok and (
                    event["result"] != self.call.result):
                self.fail(f"result of {event}")
        if file.traced and file.kind == "file" and whence == 1 and (
                self.call.ok and self.call.result != file.position + offset):
            self.fail(f"the checker believed to be at {file.position}")
        if self.call.ok:
            file.position = self.call.result

    def sys_sendfile(self, out, source, offset, count):
        """The kernel reads whole pages into its cache, ahead too, and does not
        ask again for what is there. It writes what it moves, in any split."""
        reader, writer = self.traced(source), self.traced(out)
        given = offset[0] if isinstance(offset, list) else None
        start = given if given is not None else (
            reader.position if reader else 0)
        put = 0
        while self.call.ok:
            event = self.peek()
            if event is None or not self.during_call(event):
                break
            if reader and event["op"] == "read" and event["fh"] == reader.fh:
                if event["offset"] % 4096:
                    break
                self.take("read")
                self.cache(event)
            elif (writer and event["op"] == "write"
                  and event["fh"] == writer.fh and put < self.call.result):
                self.take("write", offset=writer.position + put)
                put += event["result"]
            else:
                break
        if self.call.ok:
            if writer and put != self.call.result:
                self.fail(f"{put} bytes written in the trace")
            if reader and self.call.result > 0:
                pages = range(start // 4096,
                              (start + self.call.result - 1) // 4096 + 1)
                missing = set(pages) - self.cached[reader.ino]
                if missing:
                    self.fail(f"nobody read the pages {sorted(missing)}")
            if writer:
                writer.position += put
                if put:
                    self.grew(writer.ino, writer.position)
            if reader and given is None:
                reader.position += self.call.result

    sys_sendfile64 = sys_sendfile

    def cache(self, event):
        first = event["offset"] // 4096
        self.cached[event["ino"]].update(
            range(first, (event["offset"] + event["size"] + 4095) // 4096))

    def sys_copy_file_range(self, source, offset_in, out, offset_out, count,
                            _flags):
        reader, writer = self.traced(source), self.traced(out)
        if reader is None or writer is None:
            return
        begin = offset_in[0] if offset_in else reader.position
        into = offset_out[0] if offset_out else writer.position
        if self.call.ok and self.call.result > 0:
            event = self.take("copy_file_range", fh=reader.fh, offset=begin,
                              fh_out=writer.fh, offset_out=into,
                              result=self.call.result)
            if event["size"] > count:
                self.fail(f"size of {event}")
        elif not self.call.ok:
            self.take_if("copy_file_range", fh=reader.fh, offset=begin)
        elif self.next_is("copy_file_range", fh=reader.fh, result=0):
            self.take("copy_file_range", offset=begin)
        if self.call.ok:
            if not offset_in:
                reader.position += self.call.result
            if not offset_out:
                writer.position += self.call.result
            if self.call.result > 0:
                self.grew(writer.ino, into + self.call.result)

    def sys_fallocate(self, fd, mode, offset, length):
        file = self.traced(fd)
        if file is not None:
            self.done("fallocate", fh=file.fh, flags=mode, offset=offset,
                      size=length)
            if self.call.ok and not mode & 1:  # KEEP_SIZE
                self.grew(file.ino, offset + length)

    def synced(self, fd, data_only):
        file = self.traced(fd)
        if file is not None:
            op = "fsyncdir" if file.kind == "dir" else "fsync"
            self.take(op, self.call.error, fh=file.fh, flags=data_only)

    def sys_fsync(self, fd):
        self.synced(fd, 0)

    def sys_fdatasync(self, fd):
        self.synced(fd, 1)

    def sys_mmap(self, _address, _length, _protection, _flags, fd, *_rest):
        file = self.traced(fd)
        if file is not None and self.call.ok:
            self.mapped.add(file.ino)

    def sys_msync(self, *_arguments):
        while self.next_is("fsync"):
            self.take("fsync")
