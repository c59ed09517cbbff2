#include "execution_trace/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/file_descriptor.h"
#include "execution_trace/journal/system_clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* newer than some systems' headers */
#endif

/* These are bytes of address space, not memory. A long journal needs only a few mappings of this size. */
enum { WINDOW_BYTES = 64 << 20 };
/* The bytes that open prepares, for the first chunks. */
enum { FIRST_BYTES = 256 << 10 };

/* Maps SIZE bytes of the file, from the offset where the next chunk begins. */
static void *map(const kpti_et_journal *j, uint64_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, (off_t)j->bytes);
}

/* Maps a mapping of at least BYTES bytes, or of exactly BYTES if address space is short. Returns NULL and
 * sets *ERROR if it cannot. */
static kpti_et_mapping *add_window(kpti_et_journal *j, uint64_t bytes, int *error)
{
    kpti_et_mapping *w = malloc(sizeof *w);
    uint64_t size = bytes > WINDOW_BYTES ? bytes : WINDOW_BYTES;
    void *mapped = w ? map(j, size) : MAP_FAILED;
    if (w && mapped == MAP_FAILED && size > bytes) {
        mapped = map(j, size = bytes);
        j->low_address_space = 1;
    }
    if (mapped == MAP_FAILED) {
        *error = errno;
        free(w);
        return NULL;
    }
    /* A child that inherited the mapping would keep the file on the disk. */
    (void)madvise(mapped, size, MADV_DONTFORK);
    *w = (kpti_et_mapping){j->last, mapped, j->bytes, size};
    return j->last = w;
}

/* Populates all pages at once, which is faster than a fault per page. If the system can't, the faults
 * populate them. */
static void populate(char *at, uint64_t bytes)
{
    (void)madvise(at, bytes, MADV_POPULATE_WRITE);
}

int kpti_et_journal_descriptor(kpti_et_journal *j)
{
    int fd;
    if (kpti_file_id_is(&j->id, j->fd)) return j->fd;
    fd = j->path[0] ? kpti_descriptor_reopen(&j->id, j->path, O_RDWR) : -1;
    if (fd >= 0) j->fd = fd;
    return fd;
}

/* Reserves BYTES of the file from j->bytes on. Returns 0 or an errno. Checks the descriptor again
 * afterwards: if the space were reserved in another file, a store to ours would raise SIGBUS. */
static int reserve(kpti_et_journal *j, uint64_t bytes)
{
    int error;
    do
        error = posix_fallocate(j->fd, (off_t)j->bytes, (off_t)bytes);
    while (error == EINTR);
    return error || kpti_file_id_is(&j->id, j->fd) ? error : EBADF;
}

/* Reserves and maps BYTES more. Returns NULL and sets *ERROR if it cannot. */
static void *extend(kpti_et_journal *j, uint64_t bytes, int *error)
{
    kpti_et_mapping *w = j->last;
    const uint64_t end = j->bytes + bytes;
    const int is_new = !w || end > w->begin + w->size;
    char *at;
    kpti_assert(bytes && bytes % KPTI_ET_ALIGN == 0);
    if ((is_new || end > j->ready) && kpti_et_journal_descriptor(j) < 0) {
        j->is_lost = 1;
        *error = EBADF;
        return NULL;
    }
    if (is_new) w = add_window(j, bytes, error);
    if (!w) return NULL;
    at = w->bytes + (j->bytes - w->begin);
    if (is_new || end > j->ready) {
        *error = reserve(j, bytes);
        if (*error) return NULL;
        populate(at, bytes);
        if (end > j->ready) j->ready = end;
    }
    j->bytes = end;
    kpti_assert(j->bytes <= j->ready && end <= w->begin + w->size && j->last == w);
    return at;
}

kpti_et_extent kpti_et_journal_next(const kpti_et_journal *j, uint64_t bytes)
{
    const kpti_et_mapping *w = j->last;
    const uint64_t max = w->begin + w->size;
    const uint64_t wanted = j->bytes + bytes;
    const uint64_t end = wanted < max ? wanted : max;
    if (end <= j->ready) return (kpti_et_extent){.fd = -1};
    return (kpti_et_extent){j->fd, j->id, w->bytes + (j->ready - w->begin), j->ready,
                            end - j->ready};
}

/* posix_fallocate is not usable here. If the file system has no fallocate, glibc emulates it with writes,
 * which would overwrite the records of other threads. */
int kpti_et_extent_make(kpti_et_extent e)
{
    if (!kpti_file_id_is(&e.id, e.fd)) return 0;
    if (fallocate(e.fd, 0, (off_t)e.begin, (off_t)e.size) != 0) return 0;
    if (!kpti_file_id_is(&e.id, e.fd)) return 0; /* as in reserve */
    populate(e.bytes, e.size);
    return 1;
}

void kpti_et_journal_made(kpti_et_journal *j, kpti_et_extent e)
{
    kpti_assert(e.begin <= j->ready); /* else bytes in between would not be reserved */
    if (e.begin + e.size > j->ready) j->ready = e.begin + e.size;
    kpti_assert(kpti_et_journal_is_valid(j));
}

void kpti_et_journal_leave(kpti_et_journal *j, kpti_et_chunk *chunk)
{
    const uint64_t bytes = chunk->words * KPTI_ET_WORD;
    kpti_et_mapping **at = &j->last;
    kpti_et_mapping *w;
    while (*at && (*at)->bytes != (const char *)chunk)
        at = &(*at)->before;
    w = *at;
    if (!w || w->size != bytes) {
        (void)madvise(chunk, bytes, MADV_DONTNEED);
        return;
    }
    *at = w->before;
    (void)munmap(w->bytes, w->size);
    free(w);
}

const char *kpti_et_journal_at(const kpti_et_journal *j, uint64_t at, uint64_t *size)
{
    const kpti_et_mapping *w = j->last;
    uint64_t end = j->bytes;
    kpti_assert(at <= j->bytes);
    while (w && w->begin > at) {
        end = w->begin;
        w = w->before;
    }
    *size = end - at;
    if (!w || at - w->begin >= w->size) return NULL;
    if (*size > w->size - (at - w->begin)) *size = w->size - (at - w->begin);
    return w->bytes + (at - w->begin);
}

static void begin_head(kpti_et_head *head)
{
    time_t seconds;
    struct tm local;
    head->pid = (uint64_t)getpid();
    head->monotonic_ns = kpti_et_clock_ns(CLOCK_MONOTONIC);
    head->unix_ns = kpti_et_clock_ns(CLOCK_REALTIME);
    seconds = (time_t)(head->unix_ns / 1000000000);
    if (localtime_r(&seconds, &local))
        (void)strftime(head->time, sizeof head->time, "%Y-%m-%d %H:%M:%S", &local);
    __atomic_store_n(&head->magic, KPTI_ET_MAGIC, __ATOMIC_RELEASE);
}

int kpti_et_journal_open(kpti_et_journal *j, const char *path)
{
    int error = 0;
    memset(j, 0, sizeof *j);
    if (path && snprintf(j->path, sizeof j->path, "%s", path) >= (int)sizeof j->path)
        return ENAMETOOLONG;
    /* Unlink the old file instead of truncating it, since another process may have it mapped. */
    if (path) (void)unlink(path);
    j->fd = kpti_descriptor_open_new(path, path ? O_RDWR | O_CREAT | O_EXCL : 0, 0666, &j->id);
    if (j->fd < 0) return errno;
    j->head = extend(j, KPTI_ET_ALIGN, &error);
    if (j->head) {
        const kpti_et_extent first = kpti_et_journal_next(j, FIRST_BYTES);
        begin_head(j->head);
        if (kpti_et_extent_make(first)) kpti_et_journal_made(j, first);
    } else {
        kpti_et_mappings_unmap(kpti_et_journal_close(j, 0));
    }
    return error;
}

void kpti_et_mappings_unmap(kpti_et_mapping *m)
{
    while (m) {
        kpti_et_mapping *before = m->before;
        (void)munmap(m->bytes, m->size);
        free(m);
        m = before;
    }
}

kpti_et_mapping *kpti_et_journal_close(kpti_et_journal *j, int wanted)
{
    kpti_et_mapping *last = j->last;
    const uint64_t bytes = j->bytes;
    const int fd = kpti_et_journal_descriptor(j);
    int is_cut;
    /* First, so that after a fork in between the child leaves the mappings mapped, but closes nothing twice */
    j->head = NULL;
    j->last = NULL;
    j->fd = -1;
    j->bytes = j->ready = 0;
    is_cut = wanted && fd >= 0 && ftruncate(fd, (off_t)bytes) == 0;
    (void)is_cut; /* if it failed, zeroes stay at the end of the file, and readers skip them */
    (void)kpti_descriptor_close(&j->id, fd);
    if (!wanted && j->path[0] && kpti_file_id_is_at(&j->id, j->path)) (void)unlink(j->path);
    return last; /* unmapping the last mapping frees the file */
}

void kpti_et_journal_forked(kpti_et_journal *j)
{
    if (!j->bytes) return;
    while (j->last) {
        kpti_et_mapping *w = j->last;
        j->last = w->before;
        free(w);
    }
    (void)kpti_descriptor_close(&j->id, j->fd);
    j->head = NULL;
    j->fd = -1;
    j->bytes = j->ready = 0;
}

kpti_et_chunk *kpti_et_journal_take(kpti_et_journal *j, uint32_t stream, uint64_t words,
                                    uint64_t os_tid, int *error)
{
    const uint64_t bytes =
        (words * KPTI_ET_WORD + KPTI_ET_ALIGN - 1) / KPTI_ET_ALIGN * KPTI_ET_ALIGN;
    kpti_et_chunk *chunk = extend(j, bytes, error);
    if (!chunk) return NULL;
    kpti_assert(kpti_et_journal_is_valid(j) && stream < KPTI_ET_MAX_STREAMS);
    kpti_assert(!chunk->magic && !chunk->used); /* prepared space is zeroes */
    chunk->stream = stream;
    chunk->words = bytes / KPTI_ET_WORD;
    chunk->os_tid = os_tid;
    __atomic_store_n(&chunk->magic, KPTI_ET_CHUNK_MAGIC, __ATOMIC_RELEASE);
    return chunk;
}
