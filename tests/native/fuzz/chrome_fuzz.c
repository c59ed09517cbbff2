/* chrome_fuzz.c: bytes as a trace in Chrome's JSON format, in pieces. Whatever they are, a .kpt file comes of them that
 * loads without repair, and has each call once.
 *
 * An input is a byte, which says how large the pieces are, and the text. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/recording/serialized/chunk_loader.h"
#include "core/recording/serialized/loaded_tracer.h"
#include "imports/chrome_import.h"
#include "tests/native/fuzz/delivering.h"
#include "writers/kpt/kpt_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

static kpt_status deliver_loaded(void *self, const kpt_delivery *delivery)
{
    kpti_error error;
    return kpti_loaded_tracer.deliver(self, delivery, &error);
}

static kpt_status count_calls(void *calls, const kpt_batch *batch)
{
    *(uint64_t *)calls += batch->activity_count;
    return KPT_OK;
}

static void check_calls(void *self, uint64_t calls)
{
    kpt_delivery delivery;
    kpt_stats stats;
    uint64_t found = 0;
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_THREAD;
    delivery.sink = count_calls;
    delivery.sink_ctx = &found;
    check(deliver_loaded(self, &delivery) == KPT_OK, "the calls are delivered");
    kpti_loaded_tracer.get_stats(self, &stats);
    check(found == calls, "each call is delivered once");
    check(stats.events_repaired == 0, "no event needs repair");
}

static void load(kpti_kpt_reader *reader, const kpti_chrome_import_result *result)
{
    static const kpti_env env = {0};
    kpti_notes notes = {0};
    kpti_gpu_log gpu;
    kpt_load_args args;
    kpti_error error = {""};
    void *self = NULL;
    uint32_t names;
    KPT_INIT(&args);
    args.next = kpti_kpt_next_chunk;
    args.next_ctx = reader;
    kpti_gpu_log_init(&gpu, &kpti_malloc_heap);
    reader->notes = &notes;
    reader->gpu = &gpu;
    check(kpti_loaded_make(&env, &args, &self, &error) == KPT_OK, "the file loads");
    check(reader->state == KPTI_KPT_WHOLE, "the file is whole");
    check(notes.count == result->notes, "the file has all notes");
    check_calls(self, result->calls);
    names = ((const kpti_loaded *)self)->names.count;
    deliver_in_all_orders(deliver_loaded, self, (wish){0}, (names ? names : 1) + 2,
                          ((const kpti_loaded *)self)->thread_count);
    kpti_loaded_tracer.destroy(self);
    kpti_notes_free(&notes);
    kpti_gpu_log_free(&gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, data + size};
    const size_t piece = (size_t)take(&in, 1) * (size_t)8 + 1;
    kpti_chrome_import *import = kpti_chrome_import_open();
    kpti_chrome_import_result result;
    kpti_kpt_reader reader;
    char path[64];
    const char *why;
    int os_error;
    kpt_status status;
    const int fd = memfd_create("kpt_fuzz", MFD_CLOEXEC);
    if (!import || fd < 0) abort();
    for (const uint8_t *at = in.at; at < in.end; at += piece) {
        const size_t left = (size_t)(in.end - at);
        status = kpti_chrome_import_feed(import, (const char *)at, left < piece ? left : piece);
        check(status == KPT_OK || status == KPT_DECLINED, "the text is read");
        if (left < piece) break;
    }
    kpti_chrome_import_end(import, &result);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    check(kpti_chrome_import_write(import, path, (kpt_str){"a=b\n", 4}, &os_error) == KPT_OK,
          "the file is written");
    check(kpti_kpt_open(&reader, path, &why) == 0, "the file opens");
    load(&reader, &result);
    kpti_kpt_unmap(&reader);
    kpti_chrome_import_free(import);
    (void)close(fd);
    return 0;
}
