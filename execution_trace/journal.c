#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "now.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* newer than some systems' headers */
#endif

/* BYTES more, reserved and mapped; NULL and *ERROR. */
static void *extend(kpti_et_journal *j, uint64_t bytes, int *error)
{
    void *mapped;
    do
        *error = posix_fallocate(j->fd, (off_t)j->bytes, (off_t)bytes);
    while (*error == EINTR);
    if (*error) return NULL;
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, (off_t)j->bytes);
    if (mapped == MAP_FAILED) {
        *error = errno;
        return NULL;
    }
    /* At once, as a fault for each page takes longer; where the system can't, it is left to them. */
    (void)madvise(mapped, bytes, MADV_POPULATE_WRITE);
    j->bytes += bytes;
    return mapped;
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
    /* Never truncated: another process may have the old one mapped. */
    if (path) (void)unlink(path);
    j->fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
                 : memfd_create("kpytrace journal", MFD_CLOEXEC);
    if (j->fd < 0) return errno;
    j->head = extend(j, KPTI_ET_ALIGN, &error);
    if (j->head)
        begin_head(j->head);
    else
        kpti_et_journal_close(j, 0);
    return error;
}

void kpti_et_journal_close(kpti_et_journal *j, int wanted)
{
    kpti_et_head *head = j->head;
    const int fd = j->fd;
    j->head = NULL; /* first: a fork in between leaves them open, but closes nothing twice */
    j->fd = -1;
    j->bytes = 0;
    if (head) (void)munmap(head, KPTI_ET_ALIGN);
    (void)close(fd);
    if (!wanted && j->path[0]) (void)unlink(j->path);
}

kpti_et_chunk *kpti_et_journal_take(kpti_et_journal *j, uint32_t stream, uint64_t words,
                                    uint64_t os_tid, int *error)
{
    const uint64_t bytes =
        (words * KPTI_ET_WORD + KPTI_ET_ALIGN - 1) / KPTI_ET_ALIGN * KPTI_ET_ALIGN;
    kpti_et_chunk *chunk = extend(j, bytes, error);
    if (!chunk) return NULL;
    /* A child that lives on would keep the file on the disk. */
    (void)madvise(chunk, bytes, MADV_DONTFORK);
    chunk->stream = stream;
    chunk->words = bytes / KPTI_ET_WORD;
    chunk->os_tid = os_tid;
    __atomic_store_n(&chunk->magic, KPTI_ET_CHUNK_MAGIC, __ATOMIC_RELEASE);
    return chunk;
}

void kpti_et_chunk_unmap(kpti_et_chunk *chunk)
{
    if (chunk) (void)munmap(chunk, chunk->words * KPTI_ET_WORD);
}
