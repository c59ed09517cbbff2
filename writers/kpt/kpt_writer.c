#include "writers/kpt/kpt_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/file_descriptor.h"

enum { PARTS = 4 };

/* A record in parts. The first part is its head, and the last its padding. */
typedef struct record {
    kpti_kpt_record head;
    struct iovec parts[PARTS];
} record;

static const char zeroes[8];

static void make_record(record *r, uint32_t kind, const void *first, size_t first_size,
                        const void *second, size_t second_size)
{
    const size_t size = first_size + second_size;
    kpti_assert((first || !first_size) && (second || !second_size));
    r->head = (kpti_kpt_record){KPTI_KPT_GUARD, kind, size, 0};
    r->head.sum = kpti_kpt_sum(0, &r->head, offsetof(kpti_kpt_record, sum));
    r->head.sum = kpti_kpt_sum(r->head.sum, first, first_size);
    if (second_size) r->head.sum = kpti_kpt_sum(r->head.sum, second, second_size);
    r->parts[0] = (struct iovec){&r->head, sizeof r->head};
    r->parts[1] = (struct iovec){(void *)first, first_size};
    r->parts[2] = (struct iovec){(void *)second, second_size};
    r->parts[3] = (struct iovec){(void *)zeroes, kpti_kpt_padding(size)};
}

/* Writes all of PARTS, also if the system accepts them piecewise. Returns 0 or an errno. */
static int write_parts(int fd, struct iovec *parts, int count)
{
    while (count) {
        ssize_t wrote = writev(fd, parts, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        while (count && (size_t)wrote >= parts->iov_len) {
            wrote -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count) {
            parts->iov_base = (char *)parts->iov_base + wrote;
            parts->iov_len -= (size_t)wrote;
        }
    }
    return 0;
}

/* Returns whether fd is still the stream's file. The program may have closed the descriptor, as daemons close
 * all descriptors. Its number may then refer to another file, which must never be written to or closed. A file
 * that was created here is opened again. */
static int has_descriptor(kpti_kpt_writer *w)
{
    int fd;
    if (kpti_file_id_is(&w->id, w->fd)) return 1;
    if (!w->own) return 0;
    fd = kpti_descriptor_reopen(&w->id, w->out.place.path, O_WRONLY);
    if (fd < 0) return 0;
    if (lseek(fd, (off_t)w->at, SEEK_SET) >= 0) {
        w->fd = fd;
        return 1;
    }
    (void)close(fd);
    return 0;
}

/* After an error the file is as before, or torn is set. */
static int put_to_stream_locked(kpti_kpt_writer *w, record *r)
{
    size_t size = 0;
    int error;
    if (w->torn) return w->error; /* a record after half a record would be unreadable */
    if (!has_descriptor(w)) {
        w->torn = 1;
        if (!w->error) w->error = EBADF;
        return w->error;
    }
    for (int i = 0; i < PARTS; i++)
        size += r->parts[i].iov_len;
    kpti_assert(size % sizeof zeroes == 0); /* records are padded */
    error = write_parts(w->fd, r->parts, PARTS);
    if (!error) {
        w->at += size;
        return 0;
    }
    if (!w->error) w->error = error;
    /* A pipe, or a file that another party opened and that had content before, cannot be truncated. */
    w->torn =
        !w->own || ftruncate(w->fd, (off_t)w->at) != 0 || lseek(w->fd, (off_t)w->at, SEEK_SET) < 0;
    return error;
}

static int put_locked(kpti_kpt_writer *w, record *r)
{
    if (w->fd >= 0) return put_to_stream_locked(w, r);
    for (int i = 0; i < PARTS; i++)
        kpti_out_put(&w->out, r->parts[i].iov_base, r->parts[i].iov_len);
    return kpti_out_error(&w->out);
}

static int put(kpti_kpt_writer *w, record *r)
{
    int error;
    pthread_mutex_lock(&w->lock);
    error = put_locked(w, r);
    pthread_mutex_unlock(&w->lock);
    return error;
}

/* Opens the stream. A file that can be replaced is created beside its place. */
static int open_stream(kpti_kpt_writer *w, const char *path, char *beside)
{
    kpti_out_path *place = &w->out.place;
    int error = kpti_out_path_find(path, place);
    if (error) return error;
    if (place->kind == KPTI_OUT_DESCRIPTOR) {
        w->fd = kpti_descriptor_copy(place->descriptor);
    } else if (place->kind == KPTI_OUT_INTO) {
        w->fd = kpti_descriptor_open(place->path, place->open_flags);
    } else {
        w->fd = kpti_out_path_beside(place, beside, &w->id);
        w->own = w->fd >= 0;
        return w->own ? 0 : -w->fd;
    }
    return w->fd < 0 || kpti_file_id_hold(w->fd, &w->id) != 0 ? errno : 0;
}

static int put_head(kpti_kpt_writer *w, uint64_t pid, int64_t base_ns)
{
    kpti_kpt_head head = {KPTI_KPT_MAGIC, KPTI_KPT_VERSION, KPTI_KPT_ORDER, pid, base_ns, {0}, 0};
    struct iovec part = {&head, sizeof head};
    head.sum = kpti_kpt_sum(0, &head, offsetof(kpti_kpt_head, sum));
    if (w->fd < 0) {
        kpti_out_put(&w->out, &head, sizeof head);
        return 0;
    }
    w->at = sizeof head;
    return write_parts(w->fd, &part, 1);
}

static int put_beginning(kpti_kpt_writer *w, uint64_t pid, int64_t base_ns, kpt_str info)
{
    record r;
    int error = put_head(w, pid, base_ns);
    if (error) return error;
    make_record(&r, KPTI_KPT_INFO, info.data, (size_t)info.size, NULL, 0);
    return put(w, &r);
}

/* If the process is killed at any time, there is no unreadable file at the stream's path. A file that was there
 * before, which another process may be reading, is not overwritten. */
int kpti_kpt_create(kpti_kpt_writer *w, const char *path, int stream, uint64_t pid, int64_t base_ns,
                    kpt_str info)
{
    char beside[PATH_MAX];
    int error;
    w->fd = -1;
    error = stream ? open_stream(w, path, beside) : kpti_out_open(&w->out, path);
    if (error) return error;
    (void)pthread_mutex_init(&w->lock, NULL);
    error = put_beginning(w, pid, base_ns, info);
    if (!error && w->own && rename(beside, w->out.place.path) != 0) error = errno;
    if (!error) return 0;
    if (w->own) (void)unlink(beside);
    (void)kpti_kpt_close(w, 0);
    return error;
}

void kpti_kpt_put_info(kpti_kpt_writer *w, kpt_str info)
{
    record r;
    make_record(&r, KPTI_KPT_INFO, info.data, (size_t)info.size, NULL, 0);
    (void)put(w, &r);
}

/* A kpti_kpt_packed_fn. */
static kpt_status put_chunk(void *writer, const kpti_kpt_chunk *head, const void *data, size_t size,
                            size_t event_bytes)
{
    kpti_kpt_writer *w = writer;
    record r;
    int error;
    make_record(&r, KPTI_KPT_CHUNK, head, sizeof *head, data, size);
    pthread_mutex_lock(&w->lock);
    error = put_locked(w, &r);
    if (error && w->fd >= 0 && head->thread != KPT_CHUNK_TABLE) {
        w->lost_bytes += event_bytes;
        error = 0;
    }
    pthread_mutex_unlock(&w->lock);
    return error ? KPT_E_IO : KPT_OK;
}

kpt_status kpti_kpt_put_chunk(void *writer, const kpt_chunk *chunk)
{
    kpti_kpt_writer *w = writer;
    const kpti_kpt_chunk head = {chunk->format,     chunk->thread,        chunk->sequence,
                                 chunk->run,        chunk->os_tid,        chunk->first_ticks,
                                 chunk->last_ticks, chunk->dropped_before};
    const size_t size = (size_t)chunk->size_bytes;
    /* A table may be in front of chunks that were put before it. */
    if (w->packing && chunk->thread != KPT_CHUNK_TABLE)
        return kpti_kpt_packing_put(w->packing, &head, chunk->data, size);
    return put_chunk(w, &head, chunk->data, size, size);
}

int kpti_kpt_pack(kpti_kpt_writer *w)
{
    kpti_assert(!w->packing);
    w->packing = kpti_kpt_packing_start(&w->out.heap, w->fd >= 0, put_chunk, w);
    return w->packing ? 0 : ENOMEM;
}

void kpti_kpt_drain(kpti_kpt_writer *w)
{
    if (w->packing) kpti_kpt_packing_drain(w->packing);
}

int kpti_kpt_put_record(kpti_kpt_writer *w, uint32_t kind, const void *first, size_t first_size,
                        const void *second, size_t second_size)
{
    record r;
    make_record(&r, kind, first, first_size, second, second_size);
    return put(w, &r);
}

int kpti_kpt_put_memory(kpti_kpt_writer *w, const void *bytes, uint64_t size)
{
    record r;
    int error;
    make_record(&r, KPTI_KPT_MEMORY, bytes, (size_t)size, NULL, 0);
    pthread_mutex_lock(&w->lock);
    error = put_locked(w, &r);
    if (error && w->fd >= 0) w->lost_memory += size;
    pthread_mutex_unlock(&w->lock);
    return error;
}

/* Writes one note as one record. There are few notes, and each must be whole. */
static int put_note_locked(kpti_kpt_writer *w, uint32_t number, const kpti_note *note)
{
    enum { INLINE = 1024 };
    kpti_kpt_note head = {number,
                          note->what,
                          note->partner,
                          (uint32_t)note->name.size,
                          (uint32_t)note->args.size,
                          0,
                          note->flow,
                          note->ns,
                          note->os_tid,
                          note->value};
    const size_t size = sizeof head + (size_t)note->name.size + (size_t)note->args.size;
    char small[INLINE];
    char *bytes = size <= sizeof small ? small : kpti_heap_take(&w->out.heap, size);
    record r;
    int error;
    if (!bytes) return ENOMEM;
    memcpy(bytes, &head, sizeof head);
    if (note->name.size) memcpy(bytes + sizeof head, note->name.data, (size_t)note->name.size);
    if (note->args.size)
        memcpy(bytes + sizeof head + note->name.size, note->args.data, (size_t)note->args.size);
    make_record(&r, KPTI_KPT_NOTES, bytes, size, NULL, 0);
    error = put_locked(w, &r);
    if (bytes != small) kpti_heap_give(&w->out.heap, bytes, size);
    return error;
}

void kpti_kpt_put_notes(kpti_kpt_writer *w, const kpti_notes *notes)
{
    const uint32_t first = kpti_notes_first(notes);
    int error = 0;
    pthread_mutex_lock(&w->lock);
    if (w->notes + 1 < first) w->notes = first - 1;
    while (!error && w->notes + 1 < first + notes->count) {
        error = put_note_locked(w, w->notes + 1, kpti_notes_get(notes, w->notes + 1));
        if (!error) w->notes++;
    }
    pthread_mutex_unlock(&w->lock);
}

int kpti_kpt_is_in_place(const kpti_kpt_writer *w)
{
    return !w->own || kpti_file_id_is_at(&w->id, w->out.place.path);
}

static int close_stream(kpti_kpt_writer *w)
{
    const int is_in_place = kpti_kpt_is_in_place(w);
    const int closed = kpti_descriptor_close(&w->id, w->fd);
    int error = w->error;
    if (!error && closed != EBADF) error = closed; /* the records are written without it */
    w->fd = -1;
    return !error && !is_in_place ? ESTALE : error;
}

int kpti_kpt_close(kpti_kpt_writer *w, int keep)
{
    kpti_kpt_end end;
    record r;
    int error;
    if (w->packing) kpti_kpt_packing_end(w->packing);
    w->packing = NULL;
    end.lost_bytes = w->lost_bytes + w->lost_memory;
    kpti_assert(!w->torn || w->error);
    make_record(&r, KPTI_KPT_END, &end, end.lost_bytes ? sizeof end : 0, NULL, 0);
    if (keep) (void)put(w, &r);
    error = w->fd >= 0 ? close_stream(w) : kpti_out_close(&w->out, keep);
    (void)pthread_mutex_destroy(&w->lock);
    return error;
}

void kpti_kpt_leave(kpti_kpt_writer *w)
{
    if (w->packing) kpti_kpt_packing_leave(w->packing);
    w->packing = NULL;
    (void)kpti_descriptor_close(&w->id, w->fd);
    w->fd = -1;
}
