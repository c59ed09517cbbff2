#include "hosts/torch/operators/op_texts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hosts/torch/common/hash.h"
#include "hosts/torch/common/thread_local_ptr.h"
#include "hosts/torch/operators/op_hot.h"
#include "hosts/torch/operators/text_view.h"

namespace kpytrace
{

namespace
{

// Counts in op_hot.removals.
class Removals : public c10::OpRegistrationListener
{
  public:
    void onOperatorRegistered(const c10::OperatorHandle &) override {}
    void onOperatorDeregistered(const c10::OperatorHandle &) override // before the removal
    {
        op_hot.removals.fetch_add(1, std::memory_order_release);
    }
};

struct Operator {
    std::string name;
    std::string overload;
    std::string schema;
    bool is_registered; // with the dispatcher, which reports removals
    uint64_t removals;  // their count when this was last verified; guarded by the lock
    FunctionTexts texts;
};

// All texts of all threads. They are never freed.
struct Seen {
    std::mutex lock;                                        // no call is made under it
    std::unordered_map<const char *, Operator *> operators; // by the address of torch's name
    std::unordered_map<std::string, FunctionTexts> names;
    std::map<c10::Device, std::string, bool (*)(const c10::Device &, const c10::Device &)> devices{
        [](const c10::Device &a, const c10::Device &b) {
            return std::pair(a.type(), a.index()) < std::pair(b.type(), b.index());
        }};
};

Seen &seen()
{
    static Seen *forever = new Seen;
    return *forever;
}

// The two cache entries that a function may be in.
class Pair
{
  public:
    // Returns the entry for which IS returns true, or null.
    template <class Is> Called *find(Is is)
    {
        for (Called &called : both_)
            if (is(called)) return &called;
        return nullptr;
    }

    // Replaces the older entry.
    Called &add(const Called &called)
    {
        both_[1] = both_[0];
        return both_[0] = called;
    }

  private:
    std::array<Called, 2> both_{};
};

// The thread's cache.
struct Recent {
    std::array<Pair, 128> operators{}; // verified by the number of removals
    std::array<Pair, 128> names{};     // verified by their hash
    FunctionTexts not_kept;
    c10::Device device{c10::DeviceType::CPU};
    kpt_str device_text = view("cpu");
};

Recent &recent()
{
    return ThreadLocalPtr<Recent>::here();
}

enum { MAX_NAMES = 1 << 16 };

// Returns true if the text at KEY is the dispatcher's own, whose removal is reported to us.
bool is_registered(const c10::FunctionSchema &schema, const char *key)
{
    const auto found = c10::Dispatcher::singleton().findSchema(schema.operator_name());
    return found && found->schema().name().c_str() == key;
}

// Returns the operator of SCHEMA. Makes a new one unless the last one at KEY has the same text.
const Operator *remembered(const c10::FunctionSchema &schema, const char *key, uint64_t removals)
{
    auto made = std::make_unique<Operator>(Operator{schema.name(),
                                                    schema.overload_name(),
                                                    c10::toString(schema),
                                                    is_registered(schema, key),
                                                    removals,
                                                    {}});
    made->texts = {view(made->name), view(made->schema),
                   static_cast<uint32_t>(schema.arguments().size()),
                   static_cast<uint32_t>(schema.returns().size())};
    Seen &all = seen();
    std::lock_guard<std::mutex> guard(all.lock);
    Operator *&last = all.operators[key];
    if (last && last->schema == made->schema && last->is_registered == made->is_registered) {
        last->removals = removals;
    } else {
        last = made.release();
    }
    return last;
}

// Returns the operator at KEY, or null. An operator that was registered at the address of an earlier one has
// its own texts, even if its name is the same.
const Operator *looked_up(const char *key, const char *overload, uint64_t removals)
{
    Seen &all = seen();
    std::lock_guard<std::mutex> guard(all.lock);
    const auto found = all.operators.find(key);
    if (found == all.operators.end()) return nullptr;
    const Operator &last = *found->second;
    const bool is_same = last.is_registered ? last.removals == removals
                                            : last.name == key && last.overload == overload;
    return is_same ? &last : nullptr;
}

// Returns the texts of NAME, which do not move, or null if there are too many names.
const FunctionTexts *kept(std::string_view name)
{
    Seen &all = seen();
    std::string copy(name);
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.names.size() >= MAX_NAMES && !all.names.contains(copy)) return nullptr;
    const auto [found, is_new] = all.names.try_emplace(std::move(copy));
    if (is_new) found->second.name = view(found->first);
    return &found->second;
}

[[gnu::noinline]] Called &add_name(Recent &here, Pair &pair, std::string_view name, uint64_t hash)
{
    const FunctionTexts *texts = kept(name);
    if (!texts) {
        here.not_kept.name = view(name);
        here.not_kept.numbered = 0; // of another name
    }
    return pair.add({texts ? texts->name.data : nullptr,
                     hash,
                     texts ? texts : &here.not_kept,
                     UINT32_MAX,
                     UINT32_MAX,
                     false,
                     {}});
}

// Returns the entry of an annotation, or of an autograd node.
[[gnu::hot]] Called &called_by_name(Recent &here, std::string_view name)
{
    const uint64_t hash = std::hash<std::string_view>{}(name);
    Pair &pair = here.names[hash % here.names.size()];
    Called *last = pair.find([hash, name](const Called &called) {
        return called.key && called.check == hash && called.texts->name.size == name.size() &&
               !memcmp(called.key, name.data(), name.size());
    });
    return last ? *last : add_name(here, pair, name, hash);
}

[[gnu::noinline]] Called &add_operator(Pair &pair, const at::RecordFunction &function,
                                       const char *key, uint64_t removals)
{
    const Operator *found = looked_up(key, function.overload_name(), removals);
    if (!found) found = remembered(*function.operator_schema(), key, removals);
    return pair.add({found->is_registered ? key : nullptr,
                     removals,
                     &found->texts,
                     found->texts.inputs,
                     found->texts.outputs,
                     found->texts.schema.size != 0,
                     {}});
}

} // namespace

[[gnu::hot]] Called &called_of(const at::RecordFunction &function)
{
    Recent &here = recent();
    const char *key = function.name();
    Pair &pair = here.operators[address_hash(key) >> 57];
    const uint64_t removals = op_hot.removals.load(std::memory_order_acquire);
    Called *last = pair.find([key, removals](const Called &called) {
        return called.key == key && called.check == removals;
    });
    if (last) return *last;
    if (!function.operator_name()) return called_by_name(here, key);
    return add_operator(pair, function, key, removals);
}

[[gnu::hot]] const FunctionTexts &texts_of_node(std::string_view name)
{
    return *called_by_name(recent(), name).texts;
}

namespace
{

// The dispatcher, the nodes of a backward pass and the engine record within a C++ function, at whose end the
// operator ends. Annotations begin and end in separate calls.
bool is_in_one_call(const kpt_op &op)
{
    constexpr std::string_view engine = "autograd::engine::";
    if (op.scope != static_cast<uint32_t>(at::RecordScope::FUNCTION))
        return op.scope == static_cast<uint32_t>(at::RecordScope::BACKWARD_FUNCTION);
    return op.schema.size ||
           std::string_view(op.name.data, op.name.size).substr(0, engine.size()) == engine;
}

} // namespace

kpt_op common_of(const at::RecordFunction &function, const FunctionTexts &texts)
{
    kpt_op op;
    KPT_INIT(&op);
    op.scope = static_cast<uint32_t>(function.scope());
    op.name = texts.name;
    op.schema = texts.schema;
    op.forward_thread = function.forwardThreadId();
    op.thread = function.threadId();
    if (is_in_one_call(op)) op.flags = KPT_OP_IN_ONE_CALL;
    return op;
}

[[gnu::hot]] kpt_str device_text(c10::Device device)
{
    Recent &here = recent();
    if (here.device == device) return here.device_text;
    Seen &all = seen();
    std::string text = device.str();
    std::lock_guard<std::mutex> guard(all.lock);
    here.device_text = view(all.devices.try_emplace(device, std::move(text)).first->second);
    here.device = device;
    return here.device_text;
}

void texts_watch()
{
    static const auto *const forever = new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Removals>()));
    (void)forever;
}

void texts_hold()
{
    seen().lock.lock();
}

void texts_release()
{
    seen().lock.unlock();
}

} // namespace kpytrace
