// lookup, forget: what names mean, and for how long the kernel remembers.
#include "tracefs/fs/lookup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tracefs/fs/hand_over.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

// The answer must reflect a moment in which the file is not being changed by
// another name or handle.
void LookAgain(OpScope& op, Inode& inode, struct stat* st) {
  if (!op.Orders()) return;
  op.LooksAtFile(inode);
  struct stat now;
  if (::fstatat(op.fs().FdOf(inode).get(), "", &now, AT_EMPTY_PATH) == 0) {
    *st = now;
  }
}

}  // namespace

void ReplyEntry(OpScope& op, Inode& inode, struct stat st) {
  op.About(inode);
  LookAgain(op, inode, &st);
  op.Attributes(st);
  const fuse_entry_param entry = op.fs().EntryParam(inode, st);
  if (op.End(0, 0, [&] { return fuse_reply_entry(op.req(), &entry); }) != 0) {
    op.fs().inodes().Release(&inode, 1);  // the kernel did not take it
  }
}

void FsLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (name[0] == '.' && LookedUpAgain(req, parent, name)) return;
  OpScope op(req, Op::lookup_);
  FileSystem& fs = op.fs();
  Inode& dir = fs.InodeOf(parent);
  op.In(dir, name);
  op.Begin();
  op.LooksAtNames(dir);
  struct stat st;
  // Where the store has made look-ups wait, this answers what it knows at once.
  const bool may_wait = !fs.MayNotWait(req, Op::lookup_);
  Inode* inode = fs.Lookup(dir, name, &st, may_wait);
  if (inode == nullptr && !may_wait && errno == EAGAIN) {
    if (op.HandOverOrMake([req, parent, kept = KeptName(name)] {
          FsLookup(req, parent, kept.get());
        })) {
      return;
    }
    inode = fs.Lookup(dir, name, &st);
  }
  if (inode == nullptr) {
    const int error = errno;
    const double timeout = fs.policy().NegativeTimeout();
    if (error == ENOENT && timeout > 0) {
      // Node id 0: "there is no such name", and the kernel may remember that.
      fuse_entry_param none{};
      none.entry_timeout = timeout;
      op.End(0, error, [&] { return fuse_reply_entry(req, &none); });
      return;
    }
    op.ReplyError(error);
    return;
  }
  ReplyEntry(op, *inode, st);
}

namespace {

// Over io_uring, FORGETs alone come through /dev/fuse. Each would wake a
// reader, mostly on a sleeping processor, at the cost of the process that made
// the kernel drop the inode: a twentieth of the time of unlinking many files.
// While the reader sleeps they accumulate and then come in one batch. No caller
// waits for them.
void LetForgetsGather(const FileSystem& fs) {
  if (!fs.inodes().MayPin()) return;  // somebody does wait
  constexpr std::chrono::milliseconds kRest(1);
  if (fs.rings_serve()) std::this_thread::sleep_for(kRest);
}

}  // namespace

void FsForget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup) {
  FileSystem& fs = FileSystem::Of(req);
  fs.EnterWorker(req);  // no slower than the threads that make work for it
  if (Inode* inode = fs.inodes().Find(ino)) fs.inodes().Release(inode, nlookup);
  fuse_reply_none(req);
  LetForgetsGather(fs);
}

void FsForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  FileSystem& fs = FileSystem::Of(req);
  fs.EnterWorker(req);
  for (size_t i = 0; i < count; ++i) {
    if (Inode* inode = fs.inodes().Find(forgets[i].ino)) {
      fs.inodes().Release(inode, forgets[i].nlookup);
    }
  }
  fuse_reply_none(req);
  LetForgetsGather(fs);
}

}  // namespace tracefs
