/* writers.c: measures the cost of each writer per call, to a null device and to a file, beside plain writes
 * of as many bytes; and the cost of adding calls up by function. Only the writer is measured. The batches
 * are made before, from synthetic calls: nested, on four threads, of a thousand functions with names of
 * about fifty characters. usage: kpt_bench_writers FOLDER [MILLIONS...] */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/native/bench.h"
#include "writers/formats.h"
#include "writers/profile.h"
#include "writers/writer.h"

enum { NAMES = 1000, THREADS = 4, BATCH = 4096, BATCHES = 2, ROUNDS = 5, DEPTH = 8 };
enum { MILLION = 1000 * 1000, CALLS = 2 * MILLION };

/* One name in three has a character to be escaped; that cost is paid once and is hardly visible. */
static kpt_name names[NAMES];
static char texts[NAMES][96];
static kpt_thread threads[THREADS];
/* The same calls in both orders, as few as a plugin's batches hold, which it fills again and again. A
 * batch by time has half as many calls. */
static kpt_activity complete[BATCHES * BATCH];
static kpt_activity paired[2 * BATCHES * BATCH];
static const int64_t span_ns = INT64_C(1000) * BATCHES * BATCH; /* duration of all calls */

/* Processor time of this thread, which others on the machine disturb less; for files the time that
 * passes, since these are written by two threads. */
static clockid_t timing = CLOCK_THREAD_CPUTIME_ID;

static void make_names(void)
{
    static const char file[] = "/usr/lib/python3/site-packages/some_package/module.py";
    for (uint32_t i = 0; i < NAMES; i++) {
        (void)snprintf(texts[i], sizeof texts[i],
                       "site-packages/some_package/module_%u.py(%u): a_function%s", i % 50, i * 7,
                       i % 3 ? "_name" : "\"\\\"");
        names[i].index = i;
        names[i].first_line = i * 7;
        names[i].display = (kpt_str){texts[i], strlen(texts[i])};
        if (i % 3) names[i].file = (kpt_str){file, sizeof file - 1};
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i].index = i;
        threads[i].os_tid = 71000 + i;
        threads[i].name = (kpt_str){"Worker", 6};
    }
}

/* Makes towers of DEPTH calls, one after the other. Each call begins 500 ns after its parent, and ends 500
 * ns before it. The threads take turns. */
static void make_calls(void)
{
    int64_t ns = INT64_C(1700000012345678901);
    uint64_t made = 0;
    for (uint32_t tower = 0; made < (uint64_t)BATCHES * BATCH; tower++) {
        for (uint32_t i = 0; i < DEPTH && made < (uint64_t)BATCHES * BATCH; i++, made++) {
            uint32_t depth = DEPTH - 1 - i; /* children are first */
            kpt_activity *a = &complete[made];
            a->id = (uint64_t)tower * DEPTH + depth + 1;
            a->parent_id = depth ? a->id - 1 : 0;
            a->start_ns = ns + depth * INT64_C(500);
            a->end_ns = ns + (2 * DEPTH - 1 - depth) * INT64_C(500);
            a->thread = tower % THREADS;
            a->depth = depth;
            a->name = (tower * 31 + depth * 97) % NAMES;
            a->kind = names[a->name].file.size ? KPT_KIND_PYTHON : KPT_KIND_C;
            a->line = names[a->name].first_line;
        }
        ns += 2 * DEPTH * INT64_C(500);
    }
    for (uint64_t i = 0; i < made; i += DEPTH) {
        uint64_t count = made - i < DEPTH ? made - i : DEPTH;
        for (uint64_t k = 0; k < count; k++) {
            kpt_activity *begin = &paired[2 * i + k];
            *begin = complete[i + count - 1 - k];
            begin->phase = KPT_PHASE_BEGIN;
            begin->end_ns = begin->start_ns;
            paired[2 * i + count + k] = complete[i + k];
            paired[2 * i + count + k].phase = KPT_PHASE_END;
        }
    }
}

/* The next round of the same calls is later. */
static void move_on(kpt_activity *activities, uint64_t count, int64_t ns)
{
    for (uint64_t i = 0; i < count; i++) {
        activities[i].start_ns += ns;
        activities[i].end_ns += ns;
        activities[i].id += (uint64_t)BATCHES * BATCH;
        if (activities[i].parent_id) activities[i].parent_id += (uint64_t)BATCHES * BATCH;
    }
}

/* Delivers COUNT calls to SINK. Returns the nanoseconds for all of them. */
static double deliver(kpt_batch_fn sink, void *ctx, uint32_t order, uint64_t count)
{
    uint64_t of_call = order == KPT_ORDER_TIME ? 2 : 1;
    kpt_activity *all = order == KPT_ORDER_TIME ? paired : complete;
    uint64_t all_count = of_call * BATCHES * BATCH;
    double spent = 0;
    int64_t moved = 0;
    kpt_batch batch;
    KPT_INIT(&batch);
    batch.order = order;
    batch.names = names;
    batch.name_count = NAMES;
    batch.threads = threads;
    batch.thread_count = THREADS;
    batch.activity_stride = sizeof(kpt_activity);
    batch.name_stride = sizeof(kpt_name);
    batch.thread_stride = sizeof(kpt_thread);
    for (uint64_t done = 0; done < count * of_call; done += batch.activity_count) {
        uint64_t left = count * of_call - done;
        double begin;
        /* Not with wall time: the second thread would work during move_on, which is not measured. */
        if (done && done % all_count == 0 && timing != CLOCK_MONOTONIC) {
            move_on(all, all_count, span_ns);
            moved += span_ns;
        }
        batch.activities = all + done % all_count;
        batch.activity_count = left < BATCH ? (uint32_t)left : BATCH;
        begin = now_ns(timing);
        must(sink(ctx, &batch) == KPT_OK, "a batch");
        spent += now_ns(timing) - begin;
        batch.name_count = 0;
        batch.thread_count = 0;
    }
    for (; moved; moved -= span_ns)
        move_on(all, all_count, -span_ns);
    return spent;
}

/* Nanoseconds a call, and the bytes of all. */
static double write_calls(const kpti_format *format, const char *path, uint64_t count,
                          uint64_t *bytes)
{
    kpti_writer_options options;
    kpti_writer_result result;
    kpti_writer *writer;
    double begin = now_ns(timing);
    double spent;
    memset(&options, 0, sizeof options);
    options.base_ns = INT64_C(1700000000000000000);
    must(kpti_writer_open(format, path, &options, &writer, &result) == KPT_OK, path);
    spent = now_ns(timing) - begin;
    spent += deliver(kpti_writer_batch, writer, format->order, count);
    begin = now_ns(timing);
    must(kpti_writer_close(writer, KPT_OK, NULL, &result) == KPT_OK, result.text);
    *bytes = result.bytes;
    return (spent + now_ns(timing) - begin) / (double)count;
}

static double add_up(uint64_t count)
{
    kpti_heap heap = {NULL, NULL, NULL};
    kpti_profile *profile;
    uint32_t rows;
    double spent;
    must(kpti_profile_open(&heap, 0, &profile) == KPT_OK, "a profile");
    spent = deliver(kpti_profile_batch, profile, KPT_ORDER_THREAD, count);
    (void)kpti_profile_rows(profile, KPTI_PROFILE_BY_OWN, &rows);
    must(rows == NAMES && kpti_profile_calls(profile) == count, "adding up");
    kpti_profile_free(profile);
    return spent / (double)count;
}

/* Writes as many BYTES of nothing in particular. */
static double write_plainly(const char *path, uint64_t bytes)
{
    static char block[KPTI_OUT_BUFFER_BYTES];
    double begin = now_ns(timing);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    must(fd >= 0, path);
    memset(block, '{', sizeof block);
    for (uint64_t done = 0; done < bytes; done += sizeof block)
        must(write(fd, block, bytes - done < sizeof block ? bytes - done : sizeof block) > 0, path);
    must(close(fd) == 0, path);
    return now_ns(timing) - begin;
}

static double min(double a, double b)
{
    return b == 0 || a < b ? a : b;
}

/* speedscope's calls are kept in memory until the end, and no viewer opens such a large file. */
static uint64_t max_calls(const kpti_format *format)
{
    return strcmp(format->suffix, ".speedscope.json") == 0 ? 10 * MILLION : UINT64_MAX;
}

static void measure(const kpti_format *format, const char *folder, int argc, char **millions)
{
    char file[4096];
    double null_ns = 0;
    double file_ns = 0;
    double plain_ns = 0;
    uint64_t bytes = 0;
    uint64_t
        file_bytes; /* of calls whose times do not advance, which take more bytes in formats with differences */
    (void)snprintf(file, sizeof file, "%s/bench_writers%s", folder, format->suffix);
    for (int i = 0; i < ROUNDS; i++) {
        null_ns = min(write_calls(format, "/dev/null", CALLS, &bytes), null_ns);
        timing = CLOCK_MONOTONIC;
        file_ns = min(write_calls(format, file, CALLS, &file_bytes), file_ns);
        must(unlink(file) == 0, file);
        plain_ns = min(write_plainly(file, file_bytes) / CALLS, plain_ns);
        must(unlink(file) == 0, file);
        timing = CLOCK_THREAD_CPUTIME_ID;
    }
    printf("{\"format\": \"%s\", \"null_ns\": %.1f, \"file_ns\": %.1f, \"plain_ns\": %.1f, "
           "\"bytes\": %.1f, \"null_ns_at\": {",
           format->name, null_ns, file_ns, plain_ns, (double)bytes / CALLS);
    for (int i = 0; i < argc; i++) {
        uint64_t ignored;
        uint64_t count = strtoull(millions[i], NULL, 10) * MILLION;
        if (count > max_calls(format)) continue;
        printf("%s\"%sM\": %.1f", i ? ", " : "", millions[i],
               write_calls(format, "/dev/null", count, &ignored));
    }
    printf("}},\n");
}

int main(int argc, char **argv)
{
    size_t count;
    const kpti_format *const *formats = kpti_formats(&count);
    double top_ns = 0;
    must(argc >= 2, "usage: kpt_bench_writers FOLDER [MILLIONS...]");
    make_names();
    make_calls();
    printf("[");
    for (size_t i = 0; i < count; i++)
        measure(formats[i], argv[1], argc - 2, argv + 2);
    for (int i = 0; i < ROUNDS; i++)
        top_ns = min(add_up(CALLS), top_ns);
    printf("{\"format\": \"added up by function\", \"null_ns\": %.1f, \"null_ns_at\": {", top_ns);
    for (int i = 2; i < argc; i++)
        printf("%s\"%sM\": %.1f", i > 2 ? ", " : "", argv[i],
               add_up(strtoull(argv[i], NULL, 10) * MILLION));
    printf("}}]\n");
    return EXIT_SUCCESS;
}
