/* rules_range.c: R551–R553: the operators and ranges that a host records with a tracer. */
#include "tests/abi/conform/conform.h"

/* Makes a running tracer that has the functions. */
static void make_with_operators(conform *c, kpt_tracer *t)
{
    conform_make(c, t);
    if (!KPT_HAS(t->ops, kpt_tracer_ops, end_operator))
        conform_unreached(c, "the tracer is of ABI 1.1 or earlier: it has no begin_operator");
}

static void expect_refused(conform *c, const kpt_tracer *t, kpt_status expected, kpt_operator op)
{
    uint64_t token = 1;
    EXPECT_STATUS(c, expected, t->ops->begin_operator(t->self, &op, &token));
    EXPECT(c, token == 0, "a refused operator has a token");
}

static void bad_operators(conform *c)
{
    kpt_tracer t;
    kpt_operator op;
    uint32_t name;
    uint64_t token;
    make_with_operators(c, &t);
    EXPECT_STATUS(c, KPT_OK,
                  t.ops->name_operator(t.self, kpt_str_of("op"), KPT_SCOPE_FUNCTION, &name));
    KPT_INIT(&op);
    expect_refused(c, &t, KPT_E_INVALID, op); /* neither a name nor a text */
    op.text = kpt_str_of("range");
    op.scope = KPT_SCOPE_MAX + 1;
    expect_refused(c, &t, KPT_E_INVALID, op);
    op.scope = 0;
    op.name = name;
    expect_refused(c, &t, KPT_E_INVALID, op); /* both */
    op.text = kpt_str_of("");
    op.flags = 1U << 31;
    expect_refused(c, &t, KPT_E_UNSUPPORTED, op);
    op.flags = 0;
    op.inputs.size = 1; /* without data */
    expect_refused(c, &t, KPT_E_INVALID, op);
    op.inputs.size = 0;
    op.struct_size = KPT_OPERATOR_V1_SIZE - 1;
    expect_refused(c, &t, KPT_E_SIZE, op);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->begin_operator(t.self, NULL, &token));
}

static void names(conform *c)
{
    static const kpt_str none = {NULL, 0};
    kpt_tracer t;
    uint32_t first;
    uint32_t again;
    uint32_t other;
    make_with_operators(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->name_operator(t.self, kpt_str_of("op"), 0, &first));
    EXPECT_STATUS(c, KPT_OK, t.ops->name_operator(t.self, kpt_str_of("op"), 0, &again));
    EXPECT_STATUS(c, KPT_OK, t.ops->name_operator(t.self, kpt_str_of("operator"), 0, &other));
    EXPECT(c, first && other, "the number of a name is 0");
    EXPECT(c, first == again, "a name has two numbers");
    if (!(t.flags & KPT_OBJECT_NOOP)) EXPECT(c, first != other, "two names have one number");
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->name_operator(t.self, none, 0, &first));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->name_operator(t.self, kpt_str_of("op"), 0, NULL));
}

static void tokens(conform *c)
{
    kpt_tracer t;
    kpt_operator op;
    uint64_t token = 1;
    make_with_operators(c, &t);
    KPT_INIT(&op);
    op.text = kpt_str_of("range");
    EXPECT_STATUS(c, KPT_OK, t.ops->end_operator(t.self, 0));
    EXPECT_STATUS(c, KPT_OK, t.ops->begin_operator(t.self, &op, &token));
    EXPECT_STATUS(c, KPT_OK, t.ops->end_operator(t.self, token));
    EXPECT_STATUS(c, KPT_OK, t.ops->stop(t.self));
    EXPECT_STATUS(c, KPT_OK, t.ops->begin_operator(t.self, &op, &token));
    EXPECT(c, token == 0, "an operator is recorded while the tracer is stopped");
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->end_operator(t.self, 0));
}

const conform_rule conform_range_rules[] = {
    RULE(R551, "an operator without a name, with an unknown flag, or too short is refused",
         bad_operators),
    RULE(R552, "equal names of operators get equal numbers, never 0", names),
    RULE(R553, "a stopped tracer records no operator, and token 0 has no effect", tokens),
    {NULL, NULL, NULL},
};
