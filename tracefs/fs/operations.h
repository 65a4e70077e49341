// The operations, one function each, named after libfuse's; what each must do
// and how it replies is in <fuse_lowlevel.h>. Families have a .cc each.
#pragma once

#include "tracefs/fs/fuse_api.h"

namespace tracefs {

// lookup.cc
void FsLookup(fuse_req_t req, fuse_ino_t parent, const char* name);
void FsForget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup);
void FsForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets);

// attr.cc
void FsGetattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsSetattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set,
               fuse_file_info* fi);
#if TRACEFS_FUSE_AT_LEAST(18)
void FsStatx(fuse_req_t req, fuse_ino_t ino, int flags, int mask,
             fuse_file_info* fi);
#endif
void FsAccess(fuse_req_t req, fuse_ino_t ino, int mask);
void FsReadlink(fuse_req_t req, fuse_ino_t ino);
void FsStatfs(fuse_req_t req, fuse_ino_t ino);

// create.cc
void FsMknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
             dev_t rdev);
void FsMkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
void FsSymlink(fuse_req_t req, const char* target, fuse_ino_t parent,
               const char* name);
void FsLink(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent,
            const char* new_name);
void FsCreate(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              fuse_file_info* fi);
void FsTmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode,
               fuse_file_info* fi);

// remove.cc
void FsUnlink(fuse_req_t req, fuse_ino_t parent, const char* name);
void FsRmdir(fuse_req_t req, fuse_ino_t parent, const char* name);
void FsRename(fuse_req_t req, fuse_ino_t parent, const char* name,
              fuse_ino_t new_parent, const char* new_name, unsigned flags);

// open.cc
void FsOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsFlush(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsRelease(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsFsync(fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* fi);

// io.cc
void FsRead(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
            fuse_file_info* fi);
void FsWrite(fuse_req_t req, fuse_ino_t ino, const char* data, size_t size,
             off_t offset, fuse_file_info* fi);
void FsFallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
                 off_t length, fuse_file_info* fi);
void FsLseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
             fuse_file_info* fi);
void FsCopyFileRange(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
                     fuse_file_info* fi_in, fuse_ino_t ino_out,
                     off_t offset_out, fuse_file_info* fi_out, size_t size,
                     int flags);
void FsPoll(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
            fuse_pollhandle* poll_handle);
void FsIoctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void* arg,
             fuse_file_info* fi, unsigned flags, const void* in, size_t in_size,
             size_t out_size);

// dir.cc
void FsOpendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsReaddir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
               fuse_file_info* fi);
void FsReaddirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                   fuse_file_info* fi);
void FsReleasedir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
void FsFsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only,
                fuse_file_info* fi);

// xattr.cc
void FsSetxattr(fuse_req_t req, fuse_ino_t ino, const char* name,
                const char* value, size_t size, int flags);
void FsGetxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size);
void FsListxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void FsRemovexattr(fuse_req_t req, fuse_ino_t ino, const char* name);

// lock.cc; called only where lock requests are forwarded.
void FsGetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
             struct flock* lock);
void FsSetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi,
             struct flock* lock, int sleep);
void FsFlock(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, int operation);

}  // namespace tracefs
