#include "writers/kpt/kpt_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/kpt_text.h"
#include "core/base/file_descriptor.h"
#include "core/base/packed_words.h"
#include "writers/kpt/kpt_gpu_read.h"

/* Most bytes of the file that stay resident while it is read. */
enum { MAX_RESIDENT = 8 << 20 };

const char *kpti_kpt_state_name(kpti_kpt_state state)
{
    static const char *const names[] = {[KPTI_KPT_WHOLE] = "whole",
                                        [KPTI_KPT_CUT_OFF] = "cut off",
                                        [KPTI_KPT_DAMAGED] = "damaged",
                                        [KPTI_KPT_LACKING] = "incomplete"};
    return names[state];
}

static int map(kpti_kpt_reader *r, int fd, const char **why)
{
    struct stat status;
    void *bytes;
    if (fstat(fd, &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode)) return ESPIPE;
    r->size = (uint64_t)status.st_size;
    if (r->size < sizeof(kpti_kpt_head)) {
        *why = "it is too short for a .kpt file";
        return EBADMSG;
    }
    bytes = mmap(NULL, (size_t)r->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) return errno;
    (void)madvise(bytes, (size_t)r->size, MADV_SEQUENTIAL);
    r->bytes = bytes;
    return 0;
}

void kpti_kpt_rewind(kpti_kpt_reader *r)
{
    r->at = r->let_go = sizeof(kpti_kpt_head);
}

static const char *check_head(kpti_kpt_reader *r)
{
    kpti_kpt_head head;
    memcpy(&head, r->bytes, sizeof head);
    if (memcmp(head.magic, KPTI_KPT_MAGIC, sizeof head.magic) != 0)
        return "it is not a .kpt file: it does not begin with \"" KPTI_KPT_MAGIC "\"";
    if (head.order != KPTI_KPT_ORDER) return "it was written on a machine with another byte order";
    if (head.version > KPTI_KPT_VERSION)
        return "it is a .kpt file of a newer version than this kpytrace reads: read it with a "
               "newer kpytrace";
    if (head.version != KPTI_KPT_VERSION) return "it is a .kpt file of an unknown version";
    if (head.sum != kpti_kpt_sum(0, &head, offsetof(kpti_kpt_head, sum)))
        return "its header is damaged";
    r->pid = head.pid;
    r->base_ns = head.base_ns;
    kpti_kpt_rewind(r);
    return NULL;
}

int kpti_kpt_open(kpti_kpt_reader *r, const char *path, const char **why)
{
    /* rejects a pipe without waiting */
    int fd = kpti_descriptor_open(path, O_RDONLY | O_NONBLOCK);
    int error;
    memset(r, 0, sizeof *r);
    *why = NULL;
    if (fd < 0) return errno;
    error = map(r, fd, why);
    (void)close(fd);
    if (error) return error;
    *why = check_head(r);
    if (!*why) return 0;
    kpti_kpt_unmap(r);
    return EBADMSG;
}

void kpti_kpt_unmap(kpti_kpt_reader *r)
{
    if (r->bytes) (void)munmap((void *)r->bytes, (size_t)r->size);
    r->bytes = NULL;
}

void kpti_kpt_release_pages(const kpti_kpt_reader *r)
{
    (void)madvise((void *)r->bytes, (size_t)r->size, MADV_DONTNEED);
}

const char *kpti_kpt_next_record(kpti_kpt_reader *r, kpti_kpt_record *head)
{
    const uint64_t left = r->size - r->at;
    const char *bytes = r->bytes + r->at + sizeof *head;
    uint64_t sum;
    r->state = KPTI_KPT_CUT_OFF;
    if (left < sizeof *head) return NULL;
    memcpy(head, r->bytes + r->at, sizeof *head);
    r->state = KPTI_KPT_DAMAGED;
    if (head->guard != KPTI_KPT_GUARD) return NULL;
    r->state = KPTI_KPT_CUT_OFF;
    if (head->size > left - sizeof *head ||
        kpti_kpt_padding(head->size) > left - sizeof *head - head->size)
        return NULL;
    sum = kpti_kpt_sum(0, head, offsetof(kpti_kpt_record, sum));
    sum = kpti_kpt_sum(sum, bytes, (size_t)head->size);
    r->state = KPTI_KPT_DAMAGED;
    if (sum != head->sum) return NULL;
    r->at += sizeof *head + head->size + kpti_kpt_padding(head->size);
    if (r->at - r->let_go > MAX_RESIDENT) {
        kpti_kpt_release_pages(r);
        r->let_go = r->at;
    }
    return bytes;
}

/* Returns 0 if there is no memory, or if the note is invalid. */
static int take_note(const kpti_kpt_reader *r, const char *bytes, uint64_t size)
{
    kpti_kpt_note head;
    kpti_note note;
    if (size < sizeof head) return 0;
    memcpy(&head, bytes, sizeof head);
    if ((uint64_t)head.name_size + head.args_size != size - sizeof head || !head.number) return 0;
    note = (kpti_note){head.what,
                       head.partner,
                       {bytes + sizeof head, head.name_size},
                       {bytes + sizeof head + head.name_size, head.args_size},
                       head.value,
                       head.flow,
                       head.ns,
                       head.os_tid};
    if (head.what != KPTI_NOTE_TASK && !kpti_note_args_are_json(note.args)) return 0;
    /* A flight recorder may have dropped notes in between. Then the notes before them are dropped too. */
    if (head.number > kpti_notes_first(r->notes) + r->notes->count)
        kpti_notes_keep_last(r->notes, 0);
    if (!r->notes->count) r->notes->first = head.number;
    if (head.number != kpti_notes_first(r->notes) + r->notes->count) return 0;
    return kpti_notes_add(r->notes, &note) == head.number;
}

kpt_status kpti_kpt_next_chunk(void *reader, kpt_chunk *out)
{
    kpti_kpt_reader *r = reader;
    kpti_kpt_record record;
    kpti_kpt_chunk head;
    const char *bytes;
    while ((bytes = kpti_kpt_next_record(r, &record))) {
        if (record.kind == KPTI_KPT_END) {
            r->state = record.size ? KPTI_KPT_LACKING : KPTI_KPT_WHOLE;
            return KPT_DECLINED;
        }
        if (record.kind == KPTI_KPT_INFO) r->info = (kpt_str){bytes, record.size};
        if (record.kind == KPTI_KPT_NOTES && r->notes && !take_note(r, bytes, record.size)) {
            r->why = "it has an invalid note";
            return KPT_E_INVALID;
        }
        if (record.kind == KPTI_KPT_GPU && r->gpu) {
            kpt_status status = kpti_gpu_take(r->gpu, bytes, record.size);
            if (status != KPT_OK) return status;
        }
        if (record.kind == KPTI_KPT_MEMORY) r->has_memory = 1;
        if (record.kind > KPTI_KPT_LAST_KIND || !record.kind) {
            r->skipped++;
            r->skipped_kind = record.kind;
        }
        if (record.kind != KPTI_KPT_CHUNK) continue;
        if (record.size < sizeof head) return KPT_E_INVALID;
        memcpy(&head, bytes, sizeof head);
        /* Fills only the fields that every loader has; the loader's struct may have another size. */
        out->format = head.format;
        r->formats |= head.format & ~(uint32_t)KPTI_PACKED_FORMAT;
        out->thread = head.thread;
        out->sequence = head.sequence;
        out->run = head.run;
        out->os_tid = head.os_tid;
        out->first_ticks = head.first_ticks;
        out->last_ticks = head.last_ticks;
        out->dropped_before = head.dropped_before;
        out->data = bytes + sizeof head;
        out->size_bytes = record.size - sizeof head;
        return KPT_OK;
    }
    return KPT_DECLINED;
}

kpt_str kpti_kpt_info(kpt_str info, const char *key)
{
    const char *at = info.size ? info.data : "";
    const char *end = at + info.size;
    const size_t size = strlen(key);
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) line_end = end;
        if ((size_t)(line_end - at) > size && memcmp(at, key, size) == 0 && at[size] == '=')
            return (kpt_str){at + size + 1, (uint64_t)(line_end - at) - size - 1};
        at = line_end + 1;
    }
    return (kpt_str){"", 0};
}
