/* execution_trace.c: measures the cost of an operator in an execution trace: its record, its node in the
 * file, and the bytes of both. Operators have two tensors and a number as inputs, a tensor as output, a
 * schema and, every third, a child; there are no Python stacks. Times are processor time of the thread, and
 * of the whole process for the file, since compression runs on another thread. The best of three counts.
 * usage: kpt_bench_execution_trace FOLDER [THOUSANDS] */
#include <sys/stat.h>
#include <unistd.h>

#include "abi/impl/kpti_execution_trace.h"
#include "abi/kpt_text.h"
#include "bench/native/bench.h"

enum { ROUNDS = 3, NAMES = 64, TENSORS = 512, DEFAULT_THOUSANDS = 500 };

static uint32_t no_stack(uint32_t depth, uint64_t *gathered)
{
    (void)depth;
    (void)gathered;
    return 0;
}

const kpti_stack_source kpti_observer_stacks = {.gather = no_stack};

static char names[NAMES][32];
static char schemas[NAMES][160];
static kpt_tensor tensors[TENSORS];

static void write_program(void)
{
    static const int64_t sizes[] = {64, 1024};
    static const int64_t strides[] = {1024, 1};
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "aten::operator_%d", i);
        (void)snprintf(schemas[i], sizeof schemas[i],
                       "aten::operator_%d.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
                       "Tensor",
                       i);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        kpt_tensor *t = &tensors[i];
        KPT_INIT(t);
        t->dimensions = 2;
        t->tensor_id = 0x7F0000001000 + 64 * (uint64_t)i;
        t->storage_id = 0x7F0000900000 + 64 * (uint64_t)i;
        t->element_count = 65536;
        t->element_bytes = 4;
        t->sizes = sizes;
        t->strides = strides;
        t->dtype = kpt_str_of("float");
        t->device = kpt_str_of("cuda:0");
        t->generation = i;
    }
}

static void run_op(void *self, uint32_t number, int with_child)
{
    const kpt_value in[] = {{.kind = KPT_VALUE_TENSOR, .tensor = &tensors[number % TENSORS]},
                            {.kind = KPT_VALUE_TENSOR, .tensor = &tensors[number * 7 % TENSORS]},
                            {.kind = KPT_VALUE_INT, .number = 1}};
    const kpt_value out = {.kind = KPT_VALUE_TENSOR, .tensor = &tensors[number * 3 % TENSORS]};
    kpt_op op;
    uint64_t id = 0;
    KPT_INIT(&op);
    op.name = kpt_str_of(names[number % NAMES]);
    op.schema = kpt_str_of(schemas[number % NAMES]);
    op.flags = KPT_OP_IN_ONE_CALL;
    op.record_id = number;
    op.external_id = number;
    op.thread = 1;
    op.sequence = number;
    op.values = in;
    op.value_count = 3;
    (void)kpti_execution_trace.begin_op(self, &op, &id);
    if (with_child) run_op(self, number + 1, 0);
    op.values = &out;
    op.value_count = 1;
    (void)kpti_execution_trace.end_op(self, id, &op, (kpt_str){NULL, 0});
}

static void measure(const char *path, uint32_t count)
{
    static const kpti_env env;
    kpt_observer_args args;
    kpti_error error = {""};
    double best[2] = {0, 0};
    double journal_bytes = 0;
    struct stat info;
    KPT_INIT(&args);
    for (int round = 0; round < ROUNDS; round++) {
        double took[2];
        kpt_observer_stats stats = {0};
        void *self;
        must(kpti_execution_trace.make(&env, &args, &self, &error) == KPT_OK, "make");
        must(kpti_execution_trace.open(self, path, &error) == KPT_OK, "open");
        must(kpti_execution_trace.start(self, &error) == KPT_OK, "start");
        took[0] = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t i = 0; i < count; i += i % 3 ? 1 : 2)
            run_op(self, i, i % 3 == 0);
        took[0] = now_ns(CLOCK_THREAD_CPUTIME_ID) - took[0];
        must(kpti_execution_trace.stop(self, &error) == KPT_OK, "stop");
        kpti_execution_trace.get_stats(self, &stats);
        journal_bytes = (double)stats.journal_bytes;
        must(stats.dropped == 0, "recording all");
        took[1] = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        must(kpti_execution_trace.close(self, &error) == KPT_OK, error.text);
        took[1] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - took[1];
        kpti_execution_trace.destroy(self);
        for (int i = 0; i < 2; i++)
            if (round == 0 || took[i] < best[i]) best[i] = took[i];
    }
    must(stat(path, &info) == 0, "stat");
    printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", strrchr(path, '.'), best[0] / count,
           best[1] / count, journal_bytes / count, (double)info.st_size / count);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    static const char *const suffixes[] = {"json", "json.gz"};
    const uint32_t thousands = argc > 2 ? (uint32_t)atoi(argv[2]) : DEFAULT_THOUSANDS;
    char path[4096];
    must(argc > 1, "finding the folder in the arguments");
    write_program();
    printf("| file | record, ns | write, ns | journal, bytes | file, bytes "
           "|\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(path, sizeof path, "%s/kpt_bench.%s", argv[1], suffixes[i]);
        measure(path, thousands * 1000);
    }
    return 0;
}
