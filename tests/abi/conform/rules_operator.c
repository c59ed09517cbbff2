/* rules_operator.c: the stacks of operators, and a host's promises about an operator. */
#include "tests/abi/conform/conform.h"

/* An operator that runs inside of a Python function. */
static void run_op(void *ctx)
{
    const kpt_str none = {NULL, 0};
    const kpt_observer *o = ctx;
    kpt_op op;
    uint64_t id = 0;
    KPT_INIT(&op);
    op.name = kpt_str_of("aten::add");
    (void)o->ops->begin_op(o->self, &op, &id);
    (void)o->ops->end_op(o->self, id, &op, none);
}

enum { PATH_BYTES = 64 };

/* Starts O with stacks; its file is PATH. Returns the result of make_observer. */
static kpt_status record_stacks(conform *c, kpt_observer *o, char *path)
{
    kpt_observer_args args;
    kpt_status status;
    (void)o->ops->destroy(o->self);
    KPT_INIT(&args);
    args.flags = KPT_OBSERVER_STACKS | KPT_OBSERVER_RANGES;
    status = c->host.make_observer(c->host.observer_ctx, &args, o);
    if (status != KPT_OK) return status;
    conform_fresh_path(c, path, PATH_BYTES);
    (void)o->ops->open(o->self, kpt_str_of(path));
    (void)o->ops->start(o->self);
    return KPT_OK;
}

static void stacks(conform *c)
{
    kpt_observer o;
    char path[PATH_BYTES];
    int found;
    conform_make_observer(c, &o);
    if (c->info.abi_minor < 1) conform_unreached(c, "it is of ABI 1.0");
    EXPECT_STATUS(c, KPT_OK, record_stacks(c, &o, path));
    conform_in_python(c, "def around_the_operator():\n    call()\naround_the_operator()\n", run_op,
                      &o);
    (void)o.ops->destroy(o.self);
    found = conform_has_text(path, "around_the_operator");
    conform_remove_path(path);
    EXPECT(c, found || (o.flags & KPT_OBJECT_NOOP), "the operator's stack lacks its caller");
}

/* One that stays open when the call returns in which it began: its host has promised nothing. */
typedef struct open_op {
    kpt_observer o;
    uint64_t id;
} open_op;

static void leave_open(void *ctx)
{
    open_op *open = ctx;
    kpt_op op;
    KPT_INIT(&op);
    op.name = kpt_str_of("aten::add");
    op.schema = kpt_str_of("aten::add(Tensor a) -> Tensor");
    (void)open->o.ops->begin_op(open->o.self, &op, &open->id);
}

/* Both calls are at the same place on the thread's stack of frames, and at the same instruction. */
static void flags_of_ops(conform *c)
{
    static const char program[] = "def shared():\n    call()\ndef first():\n    shared()\n"
                                  "def second():\n    shared()\nfirst()\nsecond()\n";
    open_op open;
    kpt_op op;
    char path[PATH_BYTES];
    int found;
    conform_make_observer(c, &open.o);
    if (c->info.abi_minor < 2) conform_unreached(c, "it is older than ABI 1.2");
    KPT_INIT(&op);
    op.flags = KPT_OP_IN_ONE_CALL;
    EXPECT_STATUS(c, KPT_OK, open.o.ops->begin_op(open.o.self, &op, &open.id));
    op.flags = 1U << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, open.o.ops->begin_op(open.o.self, &op, &open.id));
    if (record_stacks(c, &open.o, path) != KPT_OK)
        conform_unreached(c, "the observer can't record stacks");
    conform_in_python(c, program, leave_open, &open);
    (void)open.o.ops->destroy(open.o.self);
    found = conform_has_text(path, "second");
    conform_remove_path(path);
    EXPECT(c, found || (open.o.flags & KPT_OBJECT_NOOP),
           "an operator has another operator's stack");
}

const conform_rule conform_operator_rules[] = {
    RULE(R746, "an observer may record stacks, which contain the operator's caller", stacks),
    RULE(R748,
         "without KPT_OP_IN_ONE_CALL an operator has its own stack; unknown flags are refused",
         flags_of_ops),
    {NULL, NULL, NULL},
};
