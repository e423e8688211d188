/* A disk that tells everything and fails on command, for a server that runs with this library preloaded.

   Under the directory DISK_ROOT every call that changes files is carried out, and appended to DISK_TRACE as one
   record, in the order of the calls: so the trace says what was written, and what of it had been synced, at any
   moment. DISK_CONTROL is memory shared with the test, which sets when calls begin to fail, which, and how. Files
   elsewhere are left alone, except that standard error fails, too, where it is a file: a full disk takes no log.

   A record: kind, inode, offset, the lengths of two texts, the texts. `disk.py` reads them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536, WRITES = 1, SYNCS = 2, NAMES = 4, DIE = -1 };

struct control {
    int32_t error;   /* 0: all is well; DIE: the process kills itself */
    int32_t kinds;   /* which calls fail: WRITES | SYNCS | NAMES */
    int32_t left;    /* how many such calls still succeed */
    int32_t refused; /* how many have failed, or had to be done by halves */
};

struct record {
    char kind;
    char unused[7];
    uint64_t inode;
    int64_t offset;
    uint32_t first, second;
};

static const char *root;
static size_t root_length;
static int trace = -1;
static volatile struct control *control;
static unsigned char watched[DESCRIPTORS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_TRACE");
    int shared = (int)syscall(SYS_openat, AT_FDCWD, getenv("DISK_CONTROL"), O_RDWR | O_CLOEXEC, 0);
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    trace = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (control == MAP_FAILED || trace < 0) abort();
    root = getenv("DISK_ROOT");
    root_length = strlen(root);
}

static int ours(const char *path) {
    return root && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int ours_open(int descriptor) {
    return descriptor >= 0 && descriptor < DESCRIPTORS && watched[descriptor];
}

static uint64_t inode(int descriptor) {
    struct stat found;
    if (fstat(descriptor, &found)) abort();
    return found.st_ino;
}

static void tell(char kind, uint64_t inode, int64_t offset, const void *first, size_t first_size,
                 const void *second, size_t second_size) {
    int kept = errno;
    struct record record = {kind, {0}, inode, offset, (uint32_t)first_size, (uint32_t)second_size};
    struct iovec parts[3] = {
        {&record, sizeof record}, {(void *)first, first_size}, {(void *)second, second_size}};
    size_t size = sizeof record + first_size + second_size;
    if (syscall(SYS_writev, trace, parts, 3) != (long)size) abort();
    errno = kept;
}

/* Whether a call of this kind fails now; `errno` is set. */
static int fails(int kind) {
    if (!control || !control->error || !(control->kinds & kind)) return 0;
    if (control->left > 0) {
        control->left--;
        return 0;
    }
    control->refused++;
    if (control->error == DIE) kill(getpid(), SIGKILL);
    errno = control->error;
    return 1;
}

/* The first write that fails is done by halves, as where a disk becomes full in the middle. */
static int halves(size_t size) { return control->refused == 1 && size > 1; }

static int opened(const char *path, int flags, mode_t mode) {
    if (!ours(path)) return NEXT(open64)(path, flags, mode);
    pthread_mutex_lock(&turn);
    int made = (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    int descriptor = made && fails(NAMES) ? -1 : NEXT(open64)(path, flags, mode);
    if (descriptor >= 0 && descriptor < DESCRIPTORS) {
        watched[descriptor] = 1;
        if (made) tell('c', inode(descriptor), 0, path, strlen(path), "", 0);
        if (!made && (flags & O_TRUNC)) tell('t', inode(descriptor), 0, "", 0, "", 0);
    }
    pthread_mutex_unlock(&turn);
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode);
}

int close(int descriptor) {
    if (ours_open(descriptor)) watched[descriptor] = 0;
    return NEXT(close)(descriptor);
}

static int log_file(int descriptor) {
    struct stat found;
    return descriptor == 2 && !fstat(2, &found) && S_ISREG(found.st_mode);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t offset) {
    if (!ours_open(descriptor)) return NEXT(pwrite64)(descriptor, bytes, size, offset);
    pthread_mutex_lock(&turn);
    int failing = fails(WRITES);
    ssize_t done = -1;
    if (!failing || halves(size)) done = NEXT(pwrite64)(descriptor, bytes, failing ? size / 2 : size, offset);
    if (done > 0) tell('w', inode(descriptor), offset, "", 0, bytes, (size_t)done);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    int own = ours_open(descriptor);
    if (!own && !log_file(descriptor)) return NEXT(write)(descriptor, bytes, size);
    pthread_mutex_lock(&turn);
    int failing = own ? fails(WRITES) : control && control->error > 0 && control->left <= 0;
    ssize_t done = -1;
    if (!own && failing) errno = control->error;
    off64_t offset = own ? lseek64(descriptor, 0, SEEK_CUR) : 0;
    if (!failing || (own && halves(size))) done = NEXT(write)(descriptor, bytes, failing ? size / 2 : size);
    if (own && done > 0) tell('w', inode(descriptor), offset, "", 0, bytes, (size_t)done);
    pthread_mutex_unlock(&turn);
    return done;
}

int ftruncate64(int descriptor, off64_t size) {
    if (!ours_open(descriptor)) return NEXT(ftruncate64)(descriptor, size);
    pthread_mutex_lock(&turn);
    int done = fails(WRITES) ? -1 : NEXT(ftruncate64)(descriptor, size);
    if (!done) tell('t', inode(descriptor), size, "", 0, "", 0);
    pthread_mutex_unlock(&turn);
    return done;
}

int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

/* What is synced is what the trace says: nothing here has to survive the machine's own power. */
static int synced(int descriptor) {
    pthread_mutex_lock(&turn);
    int failing = fails(SYNCS);
    tell(failing ? 'f' : 's', inode(descriptor), 0, "", 0, "", 0);
    pthread_mutex_unlock(&turn);
    return failing ? -1 : 0;
}

int fsync(int descriptor) { return ours_open(descriptor) ? synced(descriptor) : NEXT(fsync)(descriptor); }

int fdatasync(int descriptor) { return ours_open(descriptor) ? synced(descriptor) : NEXT(fdatasync)(descriptor); }

int rename(const char *from, const char *to) {
    if (!ours(from)) return NEXT(rename)(from, to);
    pthread_mutex_lock(&turn);
    int done = fails(NAMES) ? -1 : NEXT(rename)(from, to);
    if (!done) tell('r', 0, 0, from, strlen(from), to, strlen(to));
    pthread_mutex_unlock(&turn);
    return done;
}

int unlink(const char *path) {
    if (!ours(path)) return NEXT(unlink)(path);
    pthread_mutex_lock(&turn);
    int done = fails(NAMES) ? -1 : NEXT(unlink)(path);
    if (!done) tell('u', 0, 0, path, strlen(path), "", 0);
    pthread_mutex_unlock(&turn);
    return done;
}

int rmdir(const char *path) {
    if (!ours(path)) return NEXT(rmdir)(path);
    pthread_mutex_lock(&turn);
    int done = NEXT(rmdir)(path);
    if (!done) tell('u', 0, 0, path, strlen(path), "", 0);
    pthread_mutex_unlock(&turn);
    return done;
}

int mkdir(const char *path, mode_t mode) {
    if (!ours(path)) return NEXT(mkdir)(path, mode);
    pthread_mutex_lock(&turn);
    int done = fails(NAMES) ? -1 : NEXT(mkdir)(path, mode);
    struct stat found;
    if (!done && !stat(path, &found)) tell('d', found.st_ino, 0, path, strlen(path), "", 0);
    pthread_mutex_unlock(&turn);
    return done;
}
