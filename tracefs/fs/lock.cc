// getlk, setlk, flock: called only where some tracer records lock requests;
// otherwise the kernel settles them alone. No thread waits here: a request that
// must wait is queued, and the thread that frees the lock replies
// (lock_table.h).
#include <sys/file.h>

#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

void Record(OpScope& op, const Handle& handle, const Lock& lock, bool waits) {
  op.About(handle.inode);
  if (waits) op.ByItsName(handle.inode);  // it may have another one by then
  op.Through(handle);
  op.Set(Field::kOffset, lock.start);
  op.Set(Field::kLength, lock.end == kLockEnd ? 0 : lock.end - lock.start + 1);
  op.Set(Field::kLockType, static_cast<uint32_t>(lock.type));
  op.Set(Field::kLockOwner, lock.owner);
  op.Set(Field::kLockPid, lock.pid);
  op.Set(Field::kFlags, waits ? 1 : 0);
}

void Interrupt(fuse_req_t req, void* data) {
  FileSystem::Of(req).locks().Cancel(reinterpret_cast<uint64_t>(data));
}

// Waits for a lock. The thread that grants or cancels the request records the
// event.
template <typename SetWait>
void WaitFor(const std::shared_ptr<OpScope>& op, LockTable& table,
             SetWait&& set_wait) {
  const uint64_t waiter = table.NewWaiter();
  if (waiter == 0) return op->ReplyError(ENOLCK);
  op->Park();
  // A number instead of an object: it may be used after the wait has ended.
  fuse_req_interrupt_func(op->req(), Interrupt,
                          reinterpret_cast<void*>(waiter));
  const int error =
      set_wait(waiter, [op](int result) { op->ReplyError(result); });
  if (error != LockTable::kWaiting) op->ReplyError(error);
}

}  // namespace

void FsGetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
             struct flock* flock) {
  OpScope op(req, Op::getlk_);
  Handle& handle = HandleOf(fi);
  Lock lock;
  const int error = LockFromFlock(*flock, &lock);
  lock.owner = fi->lock_owner;
  lock.handle = handle.id;
  Record(op, handle, lock, /*waits=*/false);
  op.Begin();
  if (error != 0) return op.ReplyError(error);
  struct flock found = *flock;
  LockToFlock(op.fs().locks().Get(ino, lock), &found);
  op.End(0, 0, [&] { return fuse_reply_lock(req, &found); });
}

void FsSetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
             struct flock* flock, int sleep) {
  // Shared, because a wait outlives the handler.
  const auto op = std::make_shared<OpScope>(req, Op::setlk_);
  Handle& handle = HandleOf(fi);
  Lock lock;
  const int error = LockFromFlock(*flock, &lock);
  lock.owner = fi->lock_owner;
  lock.handle = handle.id;
  Record(*op, handle, lock, sleep != 0);
  op->Begin();
  LockTable& table = op->fs().locks();
  if (error != 0 || sleep == 0 || lock.type == LockType::kUnlock) {
    return op->ReplyError(error != 0 ? error : table.Set(ino, lock));
  }
  WaitFor(op, table, [&](uint64_t id, LockTable::Completion done) {
    return table.SetWait(ino, lock, id, std::move(done));
  });
}

void FsFlock(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
             int operation) {
  const auto op = std::make_shared<OpScope>(req, Op::flock_);
  Handle& handle = HandleOf(fi);
  Lock lock;
  switch (operation & ~LOCK_NB) {
    case LOCK_SH:
      lock.type = LockType::kRead;
      break;
    case LOCK_EX:
      lock.type = LockType::kWrite;
      break;
    default:
      lock.type = LockType::kUnlock;
      break;
  }
  lock.owner = fi->lock_owner;
  lock.handle = handle.id;
  Record(*op, handle, lock,
         lock.type != LockType::kUnlock && (operation & LOCK_NB) == 0);
  op->Begin();
  LockTable& table = op->fs().locks();
  if ((operation & LOCK_NB) != 0 || lock.type == LockType::kUnlock) {
    return op->ReplyError(table.Flock(ino, lock));
  }
  WaitFor(op, table, [&](uint64_t id, LockTable::Completion done) {
    return table.FlockWait(ino, lock, id, std::move(done));
  });
}

}  // namespace tracefs
