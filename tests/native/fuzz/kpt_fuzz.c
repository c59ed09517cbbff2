/* kpt_fuzz.c: bytes as a .kpt file: read, loaded, delivered in every order, its counters and chunks asked
 * for. Whatever a file holds, reading it ends in a recording or a refusal.
 *
 * An input is a byte, which says whether the rest is the file as it is; else a wish and records follow,
 * whose heads and checksums are made here, so that a fuzzer gets behind them: a byte says which, see
 * put_record(). Numbers of threads and runs in tables are kept small: how large they may be is load.c's
 * business, and takes long. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/packed_words.h"
#include "core/recording/serialized/chunk_loader.h"
#include "core/recording/serialized/loaded_tracer.h"
#include "tests/native/fuzz/delivering.h"
#include "writers/gpu/gpu_summary.h"
#include "writers/kpt/kpt_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 16, MAX_CHUNKS = 1 << 12 };

/* --- a file ------------------------------------------------------------------------------------ */

typedef struct file {
    char bytes[MAX_BYTES];
    size_t size;
} file;

static void put(file *f, const void *bytes, size_t size)
{
    if (size > sizeof f->bytes - f->size) size = sizeof f->bytes - f->size;
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static void put_some(file *f, input *in, size_t size)
{
    for (; size > 0; size--) {
        const char byte = (char)take(in, 1);
        put(f, &byte, 1);
    }
}

static void put_head(file *f)
{
    kpti_kpt_head head = {KPTI_KPT_MAGIC, KPTI_KPT_VERSION, KPTI_KPT_ORDER, 1, 0, {0}, 0};
    head.sum = kpti_kpt_sum(0, &head, offsetof(kpti_kpt_head, sum));
    put(f, &head, sizeof head);
}

/* Sections, each of any words. */
static void put_table(file *f, input *in)
{
    for (uint64_t left = take(in, 1) & 7; left > 0; left--) {
        const uint32_t kind = (uint32_t)take(in, 1) & 7;
        const uint32_t words = (uint32_t)take(in, 1);
        const uint32_t size = 8 * words + (kind ? 0 : 1); /* 0: its size is wrong */
        const size_t at = f->size + sizeof kind + sizeof size;
        put(f, &kind, sizeof kind);
        put(f, &size, sizeof size);
        put_some(f, in, (size_t)8 * words);
        if ((kind == KPTI_METADATA_THREAD || kind == KPTI_METADATA_RUN) && at + 4 <= f->size)
            memset(f->bytes + at + 1, 0, 3);
    }
}

/* Events that are packed, of which some bytes are then others. */
static void put_packed(file *f, input *in)
{
    static kpti_packer packer;
    uint64_t words[256];
    char packed[256 * 10 + 64 + sizeof(kpti_packed_head)]; /* kpti_packed_bound */
    const uint32_t count = (uint32_t)take(in, 1);
    size_t size;
    for (uint32_t i = 0; i < count; i++)
        words[i] = take(in, 8);
    size = kpti_pack_words(&packer, words, count, packed);
    for (uint64_t changes = take(in, 1) & 3; changes > 0; changes--) {
        const size_t at = (size_t)take(in, 2) % size;
        packed[at] = (char)take(in, 1);
    }
    if (take(in, 1) & 1) size = (size_t)take(in, 2) % (size + 1);
    put(f, packed, size);
}

static void put_chunk(file *f, input *in, int is_table)
{
    const uint32_t choice = (uint32_t)take(in, 1);
    /* 3 and 7 are unknown, and rare. Some chunks are called packed, and have any bytes. */
    const int is_packed = choice >= 128 && !is_table;
    const kpti_kpt_chunk head = {.format = choice % 48 / 15 |
                                           (choice >= 64 ? (uint32_t)KPTI_PACKED_FORMAT : 0),
                                 .thread = is_table ? KPT_CHUNK_TABLE : (uint32_t)take(in, 1),
                                 .sequence = (uint32_t)take(in, 1),
                                 .run = (uint32_t)take(in, 1) & 3,
                                 .os_tid = take(in, 1),
                                 .first_ticks = take(in, 4),
                                 .last_ticks = take(in, 4),
                                 .dropped_before = take(in, 1)};
    put(f, &head, sizeof head);
    if (is_table)
        put_table(f, in);
    else if (is_packed)
        put_packed(f, in);
    else
        put_some(f, in, (size_t)take(in, 1) * sizeof(kpti_event));
}

static void put_note(file *f, input *in)
{
    kpti_kpt_note head = {.number = (uint32_t)take(in, 1),
                          .what = (uint32_t)take(in, 1),
                          .partner = (uint32_t)take(in, 1),
                          .name_size = (uint32_t)take(in, 1),
                          .args_size = (uint32_t)take(in, 1)};
    put(f, &head, sizeof head);
    put_some(f, in, (size_t)head.name_size + head.args_size + take(in, 1) % 2);
}

/* Texts, stacks, devices, names or events of GPUs, of any bytes. */
static void put_gpu(file *f, input *in)
{
    kpti_kpt_gpu head = {.what = (uint32_t)take(in, 1) & 7,
                         .count = (uint32_t)take(in, 1),
                         .first = (uint32_t)take(in, 1)};
    put(f, &head, sizeof head);
    put_some(f, in, take(in, 1));
}

static void put_record(file *f, input *in)
{
    static const uint32_t kinds[] = {KPTI_KPT_CHUNK, KPTI_KPT_CHUNK, KPTI_KPT_NOTES, KPTI_KPT_INFO,
                                     KPTI_KPT_END,   KPTI_KPT_GPU,   KPTI_KPT_NOTES, 99};
    const uint32_t choice = (uint32_t)take(in, 1) & 7;
    kpti_kpt_record head = {KPTI_KPT_GUARD, kinds[choice], 0, 0};
    const size_t at = f->size;
    const size_t body = at + sizeof head;
    if (body > sizeof f->bytes) return;
    put(f, &head, sizeof head);
    if (choice < 2)
        put_chunk(f, in, choice == 0);
    else if (choice == 2)
        put_note(f, in);
    else if (choice == 5)
        put_gpu(f, in);
    else
        put_some(f, in, take(in, 1));
    head.size = f->size - body;
    head.sum = kpti_kpt_sum(0, &head, offsetof(kpti_kpt_record, sum));
    head.sum = kpti_kpt_sum(head.sum, f->bytes + body, (size_t)head.size);
    memcpy(f->bytes + at, &head, sizeof head);
    put(f, "\0\0\0\0\0\0\0", kpti_kpt_padding(head.size));
}

/* --- its recording ----------------------------------------------------------------------------- */

/* Chunks whose memory ends with their last byte, so that a read behind it is seen. */
typedef struct copies {
    kpti_kpt_reader *reader;
    void *copies[MAX_CHUNKS];
    uint32_t count;
} copies;

static kpt_status next_copy(void *ctx, kpt_chunk *out)
{
    copies *c = ctx;
    kpt_status status = c->count < MAX_CHUNKS ? kpti_kpt_next_chunk(c->reader, out) : KPT_DECLINED;
    void *copy;
    if (status != KPT_OK) return status;
    copy = malloc(out->size_bytes ? out->size_bytes : 1);
    if (!copy) abort();
    memcpy(copy, out->data, out->size_bytes);
    out->data = c->copies[c->count++] = copy;
    return KPT_OK;
}

static kpt_status deliver_loaded(void *self, const kpt_delivery *delivery)
{
    kpti_error error;
    return kpti_loaded_tracer.deliver(self, delivery, &error);
}

static kpt_status count_chunk(void *ctx, const kpt_chunk *chunk)
{
    if ((chunk->format & ~(uint32_t)KPTI_PACKED_FORMAT) > KPTI_CHUNK_FORMAT_NEWEST) abort();
    ++*(uint32_t *)ctx;
    return KPT_OK;
}

static void use(void *self, wish w, uint32_t chunks)
{
    const kpti_loaded *r = self;
    kpti_error error;
    kpt_stats stats;
    const uint32_t functions = r->names.count ? r->names.count : 1; /* one that has no name */
    uint32_t handed = 0;
    const kpt_chunk_sink sink = {sizeof sink, KPT_CHUNKS_WHOLE, 0, count_chunk, &handed};
    w.min_duration_ns = r->min_duration_ns;
    deliver_in_all_orders(deliver_loaded, self, w, functions + 2, r->thread_count);
    kpti_loaded_tracer.get_stats(self, &stats);
    if (kpti_loaded_tracer.get_chunks(self, &sink, &error) != KPT_OK || handed != chunks) abort();
}

/* What a table has cannot be more than the log has. */
static void add_up(const kpti_gpu_log *log)
{
    kpti_gpu_report report = {.heap = {NULL, NULL, NULL}};
    kpti_gpu_launches launches = {.heap = {NULL, NULL, NULL}};
    uint64_t count = 0;
    if (kpti_gpu_launches_make(&launches, log) != KPT_OK) abort();
    if (kpti_gpu_report_make(&report, log, &launches) != KPT_OK) abort();
    for (uint32_t i = 0; i < report.name_count; i++)
        count += report.names[i].count;
    if (count > log->events) abort();
    kpti_gpu_report_free(&report);
    kpti_gpu_launches_free(&launches);
}

static void load(kpti_kpt_reader *reader, wish w)
{
    static const kpti_env env = {0};
    static const kpti_heap heap = {NULL, NULL, NULL};
    copies c = {.reader = reader};
    kpti_notes notes = {0};
    kpti_gpu_log gpu;
    kpt_load_args args;
    kpti_error error = {""};
    void *self = NULL;
    KPT_INIT(&args);
    args.next = next_copy;
    args.next_ctx = &c;
    args.min_duration_ns = w.min_duration_ns;
    kpti_gpu_log_init(&gpu, &heap);
    reader->notes = &notes;
    reader->gpu = &gpu;
    if (kpti_loaded_make(&env, &args, &self, &error) == KPT_OK) {
        use(self, w, c.count);
        kpti_loaded_tracer.destroy(self);
    } else if (!error.text[0]) {
        abort();
    }
    (void)kpti_kpt_info(reader->info, "version");
    kpti_notes_free(&notes);
    add_up(&gpu);
    kpti_gpu_log_free(&gpu);
    while (c.count > 0)
        free(c.copies[--c.count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static file f;
    input in = {data, data + size};
    const int is_raw = take(&in, 1) & 1;
    const wish w = is_raw ? (wish){0} : take_wish(&in);
    kpti_kpt_reader reader;
    char path[64];
    const char *why;
    const int fd = memfd_create("kpt_fuzz", MFD_CLOEXEC);
    f.size = 0;
    if (is_raw)
        put(&f, in.at, (size_t)(in.end - in.at));
    else
        put_head(&f);
    while (!is_raw && in.at < in.end)
        put_record(&f, &in);
    if (fd < 0 || write(fd, f.bytes, f.size) != (ssize_t)f.size) abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (kpti_kpt_open(&reader, path, &why) == 0) {
        load(&reader, w);
        kpti_kpt_unmap(&reader);
    } else if (!is_raw || !why) {
        abort();
    }
    (void)close(fd);
    return 0;
}
