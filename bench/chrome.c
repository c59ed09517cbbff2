/* chrome.c: what the Chrome JSON writer costs a call, onto a null device and into a file, beside
 * writing as many bytes plainly. The calls are made up: a million names would be rare, a thousand are
 * usual, of some fifty characters. usage: kpt_bench_chrome FOLDER */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "chrome_json.h"

enum { NAMES = 1000, THREADS = 4, BATCH = 4096, BATCHES = 16, ROUNDS = 5 };
enum { MILLION = 1000 * 1000, FILE_CALLS = 2 * MILLION };

/* One name in three has something to be escaped; that is paid once, and hardly seen. */
static kpt_name names[NAMES];
static char texts[NAMES][96];
static kpt_thread threads[THREADS];
static kpt_activity activities[BATCHES][BATCH];

static double now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "kpt_bench_chrome: %s failed\n", what);
    exit(EXIT_FAILURE);
}

static void make_calls(void)
{
    for (uint32_t i = 0; i < NAMES; i++) {
        (void)snprintf(texts[i], sizeof texts[i],
                       "site-packages/some_package/module_%u.py(%u): a_function%s", i % 50, i * 7,
                       i % 3 ? "_name" : "\"\\\"");
        names[i].index = i;
        names[i].first_line = i * 7;
        names[i].display = (kpt_str){texts[i], strlen(texts[i])};
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i].index = i;
        threads[i].os_tid = 71000 + i;
        threads[i].name = (kpt_str){"Worker", 6};
    }
    for (uint32_t i = 0; i < BATCHES * BATCH; i++) {
        kpt_activity *a = &activities[i / BATCH][i % BATCH];
        a->id = 3 * MILLION + i;
        a->parent_id = i % 100 ? a->id - 1 : 0;
        a->start_ns = INT64_C(1700000012345678901) + (int64_t)i * 1237;
        a->end_ns = a->start_ns + 100 + (int64_t)(i % 1000) * 31;
        a->thread = i / BATCH % THREADS;
        a->name = i * 7919u % NAMES;
        a->kind = i % 3 ? KPT_KIND_PYTHON : KPT_KIND_C;
        a->line = names[a->name].first_line;
    }
}

/* Writes COUNT calls to PATH; nanoseconds a call, and the bytes of all. */
static double write_calls(const char *path, uint64_t count, uint64_t *bytes)
{
    kpti_chrome_options options;
    kpti_chrome_result result;
    kpti_chrome *writer;
    kpt_batch batch;
    double begin = now_ns();
    memset(&options, 0, sizeof options);
    options.base_ns = INT64_C(1700000000000000000);
    must(kpti_chrome_open(path, &options, &writer, &result) == KPT_OK, path);
    KPT_INIT(&batch);
    batch.names = names;
    batch.name_count = NAMES;
    batch.threads = threads;
    batch.thread_count = THREADS;
    batch.activity_stride = sizeof(kpt_activity);
    batch.name_stride = sizeof(kpt_name);
    batch.thread_stride = sizeof(kpt_thread);
    for (uint64_t done = 0; done < count; done += batch.activity_count) {
        batch.activities = activities[done / BATCH % BATCHES];
        batch.activity_count = count - done < BATCH ? (uint32_t)(count - done) : BATCH;
        must(kpti_chrome_batch(writer, &batch) == KPT_OK, "a batch");
        batch.name_count = 0;
        batch.thread_count = 0;
    }
    must(kpti_chrome_close(writer, KPT_OK, NULL, &result) == KPT_OK, result.text);
    *bytes = result.bytes;
    return (now_ns() - begin) / (double)count;
}

/* Writes as many BYTES of nothing in particular. */
static double write_plainly(const char *path, uint64_t bytes)
{
    static char block[KPTI_OUT_BUFFER_BYTES];
    double begin = now_ns();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    must(fd >= 0, path);
    memset(block, '{', sizeof block);
    for (uint64_t done = 0; done < bytes; done += sizeof block)
        must(write(fd, block, bytes - done < sizeof block ? bytes - done : sizeof block) > 0, path);
    must(close(fd) == 0, path);
    return now_ns() - begin;
}

static double least(double a, double b)
{
    return b == 0 || a < b ? a : b;
}

int main(int argc, char **argv)
{
    char file[4096];
    char plain[4096];
    double null_ns = 0;
    double file_ns = 0;
    double plain_ns = 0;
    double growth_ns[3];
    uint64_t bytes = 0;
    must(argc == 2, "usage: kpt_bench_chrome FOLDER");
    (void)snprintf(file, sizeof file, "%s/bench_chrome.json", argv[1]);
    (void)snprintf(plain, sizeof plain, "%s/bench_chrome.plain", argv[1]);
    make_calls();
    for (int i = 0; i < ROUNDS; i++) {
        null_ns = least(write_calls("/dev/null", FILE_CALLS, &bytes), null_ns);
        file_ns = least(write_calls(file, FILE_CALLS, &bytes), file_ns);
        must(unlink(file) == 0, file);
        plain_ns = least(write_plainly(plain, bytes) / FILE_CALLS, plain_ns);
        must(unlink(plain) == 0, plain);
    }
    for (uint64_t i = 0, count = MILLION; i < 3; i++, count *= 10) {
        uint64_t ignored;
        growth_ns[i] = write_calls("/dev/null", count, &ignored);
    }
    printf("{\"null_ns_per_call\": %.1f, \"file_ns_per_call\": %.1f, \"plain_ns_per_call\": %.1f, "
           "\"bytes_per_call\": %.1f, \"null_ns_per_call_at\": "
           "{\"1M\": %.1f, \"10M\": %.1f, \"100M\": %.1f}}\n",
           null_ns, file_ns, plain_ns, (double)bytes / FILE_CALLS, growth_ns[0], growth_ns[1],
           growth_ns[2]);
    return EXIT_SUCCESS;
}
