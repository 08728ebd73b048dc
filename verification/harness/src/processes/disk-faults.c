/*
 * Disk faults for one process: loaded before the C library (LD_PRELOAD), it intercepts the calls
 * that write to regular files. A small file that both sides have mapped controls it, and may change
 * at any moment:
 *
 *   word 0   0 nothing, 1 a quota, 2 syncs fail with EIO, 3 writes fail with EIO, 4 syncs are slow
 *   word 1   for a quota the remaining bytes, counted down here; for slow syncs the milliseconds of each
 *   word 2   how many calls have failed or were delayed; counted here
 *
 * TSKEEPER_DISK_FAULTS names the file. Standard output and error are never affected.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { nothing, quota, sync_eio, write_eio, slow_sync };

static _Atomic int32_t *control;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TSKEEPER_DISK_FAULTS");
  if (path == NULL) return;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *mapped = mmap(NULL, 12, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) control = mapped;
}

static int is_file(int fd) {
  struct stat status;
  int kept = errno;
  int found = fd > 2 && fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  errno = kept;
  return found;
}

static int mode_of(int fd) {
  if (control == NULL || control[0] == nothing || !is_file(fd)) return nothing;
  return control[0];
}

/* How many of these bytes may be written; -1 with errno set if none may. */
static ssize_t allowed(int fd, size_t wanted) {
  int mode = mode_of(fd);
  if (mode == write_eio) {
    control[2]++;
    errno = EIO;
    return -1;
  }
  if (mode != quota || wanted == 0) return (ssize_t)wanted;
  int32_t left = control[1];
  int32_t take;
  do {
    take = (size_t)(left < 0 ? 0 : left) < wanted ? (left < 0 ? 0 : left) : (int32_t)wanted;
  } while (!atomic_compare_exchange_weak(&control[1], &left, left - take));
  if (take > 0) return take;
  control[2]++;
  errno = ENOSPC;
  return -1;
}

static int sync_fails(int fd) {
  int mode = mode_of(fd);
  if (mode == sync_eio) {
    control[2]++;
    errno = EIO;
    return 1;
  }
  if (mode == slow_sync) {
    control[2]++;
    int32_t ms = control[1];
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
  }
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) {
  ssize_t may = allowed(fd, count);
  return may < 0 ? -1 : REAL(write)(fd, bytes, (size_t)may);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  ssize_t may = allowed(fd, count);
  return may < 0 ? -1 : REAL(pwrite)(fd, bytes, (size_t)may, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  ssize_t may = allowed(fd, count);
  return may < 0 ? -1 : REAL(pwrite64)(fd, bytes, (size_t)may, at);
}

/* A vector is written as a whole or not at all: its first part alone would have to be cut. */
static size_t length_of(const struct iovec *parts, int count) {
  size_t sum = 0;
  for (int at = 0; at < count; at++) sum += parts[at].iov_len;
  return sum;
}

static int refused(int fd, const struct iovec *parts, int count) {
  size_t wanted = length_of(parts, count);
  ssize_t may = allowed(fd, wanted);
  if (may >= 0 && (size_t)may == wanted) return 0;
  if (may >= 0) errno = ENOSPC;
  return 1;
}

ssize_t writev(int fd, const struct iovec *parts, int count) { return refused(fd, parts, count) ? -1 : REAL(writev)(fd, parts, count); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  return refused(fd, parts, count) ? -1 : REAL(pwritev)(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
  return refused(fd, parts, count) ? -1 : REAL(pwritev64)(fd, parts, count, at);
}

int fsync(int fd) { return sync_fails(fd) ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) { return sync_fails(fd) ? -1 : REAL(fdatasync)(fd); }
