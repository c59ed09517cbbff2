#include "tests/native/execution_trace/observing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <set>

static thread_local uint32_t next_stack;
static thread_local uint64_t known;
static thread_local bool stays = true;
static int begun;

void gather_stack(uint32_t stack)
{
    next_stack = stack;
}

void move_frame(bool moves)
{
    stays = !moves;
}

bool stack_was_known()
{
    return known != 0;
}

int stacks_begun()
{
    return begun;
}

static void begin_stacks()
{
    begun++;
}

static void end_stacks()
{
    begun--;
}

static uint32_t gather(uint32_t depth, uint64_t *gathered)
{
    static uint64_t last;
    known = *gathered;
    if (!known || !stays) *gathered = ++last;
    return depth && depth < next_stack ? depth : next_stack;
}

static void read_stack(uint32_t stack, uint32_t *below, uint32_t *place)
{
    *below = stack - 1;
    *place = stack;
}

static kpt_symbol describe(uint32_t place)
{
    static const char *const names[] = {"", "main", "step", "forward \"x\""};
    kpt_symbol symbol = {};
    symbol.name = symbol.qualname = kpt_str_of(place < 4 ? names[place] : "deep");
    symbol.file = kpt_str_of("train.py");
    symbol.line = place * 10;
    return symbol;
}

const kpti_stack_source kpti_observer_stacks = {begin_stacks, end_stacks, gather, read_stack,
                                                describe};

kpt_value Values::none() const
{
    return kpt_value();
}

kpt_value Values::boolean(bool truth) const
{
    kpt_value value = integer(truth);
    value.kind = KPT_VALUE_BOOL;
    return value;
}

kpt_value Values::integer(int64_t number) const
{
    kpt_value value = {};
    value.kind = KPT_VALUE_INT;
    value.number = number;
    return value;
}

kpt_value Values::real(double number) const
{
    kpt_value value = {};
    value.kind = KPT_VALUE_DOUBLE;
    value.real = number;
    return value;
}

kpt_value Values::string(const char *text) const
{
    return of(KPT_VALUE_STRING, text);
}

kpt_value Values::of(uint32_t kind, const char *text) const
{
    kpt_value value = {};
    value.kind = kind;
    value.text = kpt_str_of(text);
    return value;
}

kpt_value Values::list(std::vector<kpt_value> items, uint32_t kind)
{
    kpt_value value = {};
    lists.push_back(std::move(items));
    value.kind = kind;
    value.items = lists.back().data();
    value.item_count = static_cast<uint32_t>(lists.back().size());
    return value;
}

kpt_tensor &Values::tensor(uint64_t id, std::vector<int64_t> sizes)
{
    kpt_tensor t;
    std::vector<int64_t> strides(sizes.size());
    KPT_INIT(&t);
    t.element_count = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = t.element_count;
        t.element_count = static_cast<int64_t>(static_cast<uint64_t>(t.element_count) *
                                               static_cast<uint64_t>(sizes[i]));
    }
    t.dimensions = static_cast<uint32_t>(sizes.size());
    t.tensor_id = id;
    t.storage_id = id + 1;
    t.element_bytes = 4;
    t.dtype = kpt_str_of("float");
    t.device = kpt_str_of("cpu");
    numbers.push_back(std::move(sizes));
    t.sizes = numbers.back().data();
    numbers.push_back(std::move(strides));
    t.strides = numbers.back().data();
    tensors.push_back(t);
    return tensors.back();
}

kpt_value Values::of(const kpt_tensor &tensor) const
{
    kpt_value value = {};
    value.kind = KPT_VALUE_TENSOR;
    value.tensor = &tensor;
    return value;
}

kpt_op op_of(const char *name)
{
    kpt_op op;
    KPT_INIT(&op);
    op.name = kpt_str_of(name);
    op.thread = 1;
    op.sequence = -1;
    return op;
}

Observing::Observing()
{
    KPT_INIT(&args);
}

Observing::~Observing()
{
    if (self) kpti_execution_trace.destroy(self);
}

void Observing::make()
{
    kpti_error text = {""};
    ASSERT_EQ(kpti_execution_trace.make(&env, &args, &self, &text), KPT_OK) << text.text;
}

void Observing::begin(const std::string &name)
{
    if (!self) make();
    ASSERT_EQ(open(name), KPT_OK) << error;
    ASSERT_EQ(start(), KPT_OK) << error;
}

kpt_status Observing::open(const std::string &name)
{
    kpti_error text = {""};
    const std::string target = name[0] == '/' ? name : path(name);
    const kpt_status status = kpti_execution_trace.open(self, target.c_str(), &text);
    error = text.text;
    return status;
}

kpt_status Observing::start()
{
    kpti_error text = {""};
    const kpt_status status = kpti_execution_trace.start(self, &text);
    error = text.text;
    return status;
}

kpt_status Observing::stop()
{
    kpti_error text = {""};
    return kpti_execution_trace.stop(self, &text);
}

kpt_status Observing::close()
{
    kpti_error text = {""};
    const kpt_status status = kpti_execution_trace.close(self, &text);
    error = text.text;
    return status;
}

uint64_t Observing::begin_op(const kpt_op &op, const std::vector<kpt_value> &in)
{
    kpt_op with = op;
    with.values = in.data();
    with.value_count = in.size();
    uint64_t id = 0;
    EXPECT_EQ(kpti_execution_trace.begin_op(self, &with, &id), KPT_OK);
    return id;
}

void Observing::end_op(uint64_t id, const std::vector<kpt_value> &out, const char *text)
{
    kpt_op op = op_of("");
    op.values = out.data();
    op.value_count = out.size();
    EXPECT_EQ(kpti_execution_trace.end_op(self, id, &op, kpt_str_of(text)), KPT_OK);
}

uint64_t Observing::run(const char *name, const std::vector<kpt_value> &in,
                        const std::vector<kpt_value> &out)
{
    const uint64_t id = begin_op(op_of(name), in);
    end_op(id, out);
    return id;
}

kpt_observer_stats Observing::stats()
{
    kpt_observer_stats out = {};
    kpti_execution_trace.get_stats(self, &out);
    return out;
}

json Observing::finish(const std::string &name)
{
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_OK) << error;
    return read(name);
}

json Observing::read(const std::string &name)
{
    return read_json(content(name));
}

void Observing::in_a_child(const std::function<bool()> &work)
{
    const pid_t child = fork();
    if (child == 0) {
        kpti_execution_trace.forked(self);
        const bool is_good = work();
        kpti_execution_trace.destroy(self);
        _exit(is_good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

bool Observing::record_own(const std::string &name)
{
    return open(name) == KPT_OK && start() == KPT_OK && run("own") != 0 && stop() == KPT_OK &&
           close() == KPT_OK;
}

static const json nothing;

const json &node_of(const json &trace, std::string_view name)
{
    for (const json &node : trace["nodes"].items)
        if (node["name"].text == name) return node;
    return nothing;
}

const json &attr_of(const json &node, std::string_view name)
{
    for (const json &attr : node["attrs"].items)
        if (attr["name"].text == name) return attr["value"];
    return nothing;
}

const json &extra_of(const json &node, std::string_view name)
{
    return attr_of(node, "kpytrace")[name];
}

std::string text_of(const json &value)
{
    std::string text;
    if (value.is == json::STRING) return "\"" + value.text + "\"";
    if (value.is != json::ARRAY) return value.text;
    for (const json &item : value.items)
        text += (text.empty() ? "" : ",") + text_of(item);
    return "[" + text + "]";
}

void expect_tree(const json &trace)
{
    std::set<std::string> ids;
    for (const json &node : trace["nodes"].items)
        EXPECT_TRUE(ids.insert(node["id"].text).second) << node["id"].text << " is there twice";
    for (const json &node : trace["nodes"].items)
        EXPECT_EQ(ids.count(node["ctrl_deps"].text), 1U) << node["name"].text;
    ASSERT_FALSE(trace["nodes"].items.empty());
    EXPECT_EQ(trace["nodes"].items.back()["id"].text, "1");
    EXPECT_EQ(trace["nodes"].items.back()["name"].text,
              "[pytorch|profiler|execution_trace|process]");
}
