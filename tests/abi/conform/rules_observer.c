/* rules_observer.c: R73x, R74x: the execution-trace observer. */
#include <stdio.h>
#include <unistd.h>

#include "tests/abi/conform/conform.h"

static void makes_observer(conform *c)
{
    kpt_observer o;
    conform_make_observer(c, &o);
    EXPECT(c, o.ops->struct_size >= KPT_OBSERVER_OPS_V1_SIZE, "struct_size is %u, below %u",
           o.ops->struct_size, KPT_OBSERVER_OPS_V1_SIZE);
    EXPECT(c,
           o.ops->open && o.ops->start && o.ops->stop && o.ops->close && o.ops->begin_op &&
               o.ops->end_op && o.ops->last_error && o.ops->destroy,
           "a function is missing");
}

static void start_closed(conform *c)
{
    kpt_observer o;
    conform_make_observer(c, &o);
    EXPECT_STATUS(c, KPT_E_STATE, o.ops->start(o.self));
}

static void repeats(conform *c)
{
    kpt_observer o;
    char path[64];
    kpt_status got[8];
    conform_make_observer(c, &o);
    conform_fresh_path(c, path, sizeof path);
    got[0] = o.ops->open(o.self, kpt_str_of(path));
    got[1] = o.ops->open(o.self, kpt_str_of(path));
    got[2] = o.ops->start(o.self);
    got[3] = o.ops->start(o.self);
    got[4] = o.ops->stop(o.self);
    got[5] = o.ops->stop(o.self);
    got[6] = o.ops->close(o.self);
    got[7] = o.ops->close(o.self);
    conform_remove_path(path);
    for (int i = 0; i < 8; i++)
        EXPECT(c, got[i] == KPT_OK, "call %d of open, start, stop, close, each twice: %s", i + 1,
               kpt_status_name(got[i]));
}

static void bad_paths(conform *c)
{
    const kpt_str none = {NULL, 0};
    const kpt_str with_nul = {"a\0b", 3};
    kpt_observer o;
    conform_make_observer(c, &o);
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->open(o.self, none));
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->open(o.self, with_nul));
}

static void no_file(conform *c)
{
    kpt_observer o;
    char path[64];
    int there;
    conform_make_observer(c, &o);
    conform_fresh_path(c, path, sizeof path);
    (void)o.ops->open(o.self, kpt_str_of(path));
    (void)o.ops->start(o.self);
    (void)o.ops->destroy(o.self);
    there = access(path, F_OK) == 0;
    conform_remove_path(path);
    if (o.flags & KPT_OBJECT_NOOP)
        EXPECT(c, !there, "a no-op has created a file");
    else
        EXPECT(c, there, "no file was created");
}

static void bad_ops(conform *c)
{
    kpt_observer o;
    kpt_op op;
    uint64_t id = 7;
    conform_make_observer(c, &o);
    KPT_INIT(&op);
    op.name = kpt_str_of("aten::add");
    EXPECT_STATUS(c, KPT_OK, o.ops->begin_op(o.self, &op, &id));
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->begin_op(o.self, NULL, &id));
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->begin_op(o.self, &op, NULL));
    op.value_count = 3;
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->begin_op(o.self, &op, &id));
    op.value_count = 0;
    op.struct_size = KPT_OP_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, o.ops->begin_op(o.self, &op, &id));
}

static void end_nothing(conform *c)
{
    const kpt_str none = {NULL, 0};
    kpt_observer o;
    kpt_op op;
    conform_make_observer(c, &o);
    KPT_INIT(&op);
    EXPECT_STATUS(c, KPT_OK, o.ops->end_op(o.self, 0, &op, none));
}

static void dead(conform *c)
{
    const kpt_str none = {NULL, 0};
    kpt_observer o;
    kpt_op op;
    kpt_tape *tape;
    uint64_t id;
    conform_make_observer(c, &o);
    if (o.ops->destroy(o.self) != KPT_OK) conform_unreached(c, "destroy failed");
    KPT_INIT(&op);
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->open(o.self, kpt_str_of("x")));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->start(o.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->stop(o.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->close(o.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->begin_op(o.self, &op, &id));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->end_op(o.self, 1, &op, none));
    if (KPT_HAS(o.ops, kpt_observer_ops, tape))
        EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->tape(o.self, &tape));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->destroy(o.self));
}

/* Makes an observer with the functions of 1.1. The rule is not reached with an older one. */
static void make_newer(conform *c, kpt_observer *o)
{
    conform_make_observer(c, o);
    if (!KPT_HAS(o->ops, kpt_observer_ops, recover)) conform_unreached(c, "it is of ABI 1.0");
}

static void stats(conform *c)
{
    kpt_observer o;
    kpt_observer_stats got;
    make_newer(c, &o);
    memset(&got, 0xFF, sizeof got);
    got.struct_size = sizeof got;
    EXPECT_STATUS(c, KPT_OK, o.ops->get_stats(o.self, &got));
    EXPECT(c, got.struct_size <= sizeof got, "struct_size is %u", got.struct_size);
    EXPECT(c, !got.ops && !got.dropped && !got.journal_bytes, "a new observer has recorded");
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->get_stats(o.self, NULL));
    got.struct_size = KPT_OBSERVER_STATS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, o.ops->get_stats(o.self, &got));
    EXPECT_STATUS(c, KPT_OK, o.ops->destroy(o.self));
    got.struct_size = sizeof got;
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->get_stats(o.self, &got));
}

static void recovers(conform *c)
{
    const kpt_str none = {NULL, 0};
    const kpt_str with_nul = {"a\0b", 3};
    const kpt_str usable = kpt_str_of("/there/is/no/such/journal");
    kpt_observer o;
    make_newer(c, &o);
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->recover(o.self, none, usable));
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->recover(o.self, usable, with_nul));
    EXPECT_STATUS(c, o.flags & KPT_OBJECT_NOOP ? KPT_E_UNSUPPORTED : KPT_E_IO,
                  o.ops->recover(o.self, usable, usable));
    EXPECT_STATUS(c, KPT_OK, o.ops->destroy(o.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, o.ops->recover(o.self, usable, usable));
}

static void bad_attrs(conform *c)
{
    const kpt_attr attr = {
        {"name", 4}, {"string", 6}, {KPT_VALUE_STRING, 0, 0, 0, {"x", 1}, NULL, NULL}};
    kpt_observer o;
    kpt_op op;
    uint64_t id = 7;
    make_newer(c, &o);
    KPT_INIT(&op);
    op.attr_count = 1;
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->begin_op(o.self, &op, &id));
    op.attrs = &attr;
    EXPECT_STATUS(c, KPT_OK, o.ops->begin_op(o.self, &op, &id));
}

static void bad_data_ops(conform *c)
{
    kpt_observer_args args;
    kpt_observer o;
    make_newer(c, &o);
    KPT_INIT(&args);
    args.data_ops = kpt_str_of("aten::gather");
    EXPECT_STATUS(c, KPT_OK, c->host.make_observer(c->host.observer_ctx, &args, &o));
    EXPECT_STATUS(c, KPT_OK, o.ops->destroy(o.self));
    args.data_ops.data = NULL;
    EXPECT_STATUS(c, KPT_E_INVALID, c->host.make_observer(c->host.observer_ctx, &args, &o));
}

static void numbers_ops(conform *c)
{
    const kpt_str none = {NULL, 0};
    kpt_observer o;
    kpt_op op;
    char path[64];
    uint64_t id[3] = {9, 9, 9};
    conform_make_observer(c, &o);
    conform_fresh_path(c, path, sizeof path);
    KPT_INIT(&op);
    op.name = kpt_str_of("aten::add");
    (void)o.ops->open(o.self, kpt_str_of(path));
    (void)o.ops->begin_op(o.self, &op, &id[0]);
    (void)o.ops->start(o.self);
    (void)o.ops->begin_op(o.self, &op, &id[1]);
    (void)o.ops->end_op(o.self, id[1], &op, none);
    (void)o.ops->stop(o.self);
    (void)o.ops->begin_op(o.self, &op, &id[2]);
    (void)o.ops->destroy(o.self);
    conform_remove_path(path);
    EXPECT(c, !id[0] && !id[2], "an operator has a number while the observer is not recording");
    if (o.flags & KPT_OBJECT_NOOP)
        EXPECT(c, !id[1], "a no-op has numbered an operator");
    else
        EXPECT(c, id[1], "an operator has no number");
}

/* Writes an operator on TAPE, with the number 4711 as input and no output. */
static uint64_t write_op(kpt_tape *tape, const kpt_op *op)
{
    const kpt_tape_value head = {.kind = KPT_VALUE_INT};
    uint32_t function;
    uint64_t id;
    if (!tape->ops->begin(tape)) return 0;
    function = tape->ops->function(tape, op);
    if (tape->limit - tape->at < 2) {
        tape->ops->give_up(tape);
        return 0;
    }
    memcpy(tape->at, &head, sizeof head);
    tape->at[1] = 4711;
    tape->at += 2;
    id = tape->ops->begun(tape, function, 1, -1, 1);
    if (id && tape->ops->end(tape, id)) tape->ops->ended(tape, 0);
    return id;
}

static void tapes(conform *c)
{
    const kpt_str none = {NULL, 0};
    kpt_observer o;
    kpt_tape *tape = NULL;
    kpt_op op;
    char path[64];
    uint64_t id = 0;
    int found;
    conform_make_observer(c, &o);
    if (!KPT_HAS(o.ops, kpt_observer_ops, tape))
        conform_unreached(c, "the observer's ABI version has no tapes");
    EXPECT_STATUS(c, KPT_E_INVALID, o.ops->tape(o.self, NULL));
    EXPECT_STATUS(c, KPT_OK, o.ops->tape(o.self, &tape));
    EXPECT(c, !tape || !(o.flags & KPT_OBJECT_NOOP), "a no-op has a tape");
    if (!tape) {
        (void)o.ops->destroy(o.self);
        return;
    }
    EXPECT(c, !tape->ops->begin(tape),
           "a tape accepts operators while the observer is not recording");
    conform_fresh_path(c, path, sizeof path);
    KPT_INIT(&op);
    op.name = kpt_str_of("reported");
    (void)o.ops->open(o.self, kpt_str_of(path));
    (void)o.ops->start(o.self);
    (void)o.ops->begin_op(o.self, &op, &id);
    (void)o.ops->end_op(o.self, id, &op, none);
    op.name = kpt_str_of("written");
    id = write_op(tape, &op);
    (void)o.ops->destroy(o.self);
    found = conform_has_text(path, "written") && conform_has_text(path, "4711");
    conform_remove_path(path);
    EXPECT(c, id && found, "an operator that was written to a tape is not in the trace");
}

static void bad_make(conform *c)
{
    kpt_observer_args args;
    kpt_observer o;
    conform_make_observer(c, &o);
    (void)o.ops->destroy(o.self);
    KPT_INIT(&args);
    KPT_INIT(&o);
    EXPECT_STATUS(c, KPT_E_INVALID, c->host.make_observer(c->host.observer_ctx, NULL, &o));
    EXPECT_STATUS(c, KPT_E_INVALID, c->host.make_observer(c->host.observer_ctx, &args, NULL));
    args.struct_size = KPT_OBSERVER_ARGS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, c->host.make_observer(c->host.observer_ctx, &args, &o));
    KPT_INIT(&args);
    o.struct_size = KPT_OBSERVER_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, c->host.make_observer(c->host.observer_ctx, &args, &o));
    o.struct_size = sizeof o;
    args.flags = 1U << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, c->host.make_observer(c->host.observer_ctx, &args, &o));
}

static void from_tracer(conform *c)
{
    kpt_tracer t;
    kpt_observer o;
    conform_make(c, &t);
    KPT_INIT(&o);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_extension(t.self, kpt_str_of(KPT_EXT_OBSERVER), &o));
    EXPECT(c, o.ops && o.self, "no object was made");
    EXPECT_STATUS(c, KPT_OK, o.ops->destroy(o.self));
}

const conform_rule conform_observer_rules[] = {
    RULE(R731, "make returns an observer with a complete ops table", makes_observer),
    RULE(R732, "start without a file is KPT_E_STATE", start_closed),
    RULE(R733, "a repeated open, start, stop or close changes nothing", repeats),
    RULE(R734, "an open without a usable path is KPT_E_INVALID", bad_paths),
    RULE(R735, "open creates its file; a no-op creates none", no_file),
    RULE(R736, "invalid operators are refused", bad_ops),
    RULE(R737, "the end of an operator that was not recorded is KPT_OK", end_nothing),
    RULE(R738, "every call on a destroyed observer is KPT_E_HANDLE", dead),
    RULE(R739, "bad args or out of an observer are refused", bad_make),
    RULE(R740, "a tracer's KPT_EXT_OBSERVER is an observer", from_tracer),
    RULE(R741, "get_stats fills the host's struct, or refuses its size", stats),
    RULE(R742, "recover refuses an invalid journal; a no-op refuses every journal", recovers),
    RULE(R743, "an operator with attributes, but a NULL array, is refused", bad_attrs),
    RULE(R744, "data_ops with a size, but NULL data, is refused", bad_data_ops),
    RULE(R745, "operators have numbers while they are recorded; a no-op's have none", numbers_ops),
    RULE(R747, "an observer may have tapes, a no-op has none; operators on a tape are recorded",
         tapes),
    {NULL, NULL, NULL},
};
