#include "identities.h"

#include <mutex>
#include <vector>

namespace kpytrace
{

namespace
{

using Target = c10::intrusive_ptr_target;

void hold(Target *target)
{
    c10::raw::weak_intrusive_ptr::incref(target);
}

bool is_dead(Target *target)
{
    return c10::raw::weak_intrusive_ptr::use_count(target) == 0;
}

// Those whose reference is to be given back, when the lock is not held any more.
class Leaving
{
  public:
    Leaving() {}
    ~Leaving()
    {
        for (size_t i = 0; i < count_; i++)
            c10::raw::weak_intrusive_ptr::decref(few_[i]);
        for (Target *target : many_)
            c10::raw::weak_intrusive_ptr::decref(target);
    }
    Leaving(const Leaving &) = delete;
    Leaving &operator=(const Leaving &) = delete;

    // Room for COUNT more: add does not throw.
    void reserve(size_t count)
    {
        many_.reserve(many_.size() + count);
    }

    void add(Target *target)
    {
        Epochs::advance(target);
        if (count_ < few_.size())
            few_[count_++] = target;
        else
            many_.push_back(target);
    }

  private:
    std::array<Target *, 2> few_; // one for each table: what an ordinary call gives back
    size_t count_ = 0;
    std::vector<Target *> many_;
};

struct Storage {
    Target *target = nullptr;
    uint64_t id = 0;
};

struct Tensor {
    Target *target = nullptr;
    uint64_t id = 0;
    Target *storage = nullptr; // of which the number is known
    uint64_t storage_id = 0;
    uint32_t storage_epoch = 0;
};

// Open addressing; a free slot has no target. At most half of the slots are taken.
template <class Slot> class Table
{
  public:
    // TARGET's slot, new if its id is 0. Of the newest ones the oldest leaves if it is dead: most tensors
    // die young.
    Slot &at(Target *target, Leaving &leaving)
    {
        if (slots_.empty()) resize(FIRST);
        Slot &known = slots_[find(target)];
        if (known.target) return known;
        if (count_ >= limit_)
            sweep(leaving, [](const Slot &slot) { return !is_dead(slot.target); });
        if (count_ * 2 >= slots_.size()) resize(slots_.size() * 2);
        Target *&young = young_[next_++ % young_.size()];
        if (young && is_dead(young)) {
            leaving.add(young);
            erase(find(young));
        }
        Slot &slot = slots_[find(target)];
        slot.target = young = target;
        count_++;
        return slot;
    }

    // Those that KEEP refuses leave.
    template <class Keep> void sweep(Leaving &leaving, Keep keep)
    {
        leaving.reserve(count_); // before anything is changed
        young_ = {};
        for (size_t at = 0; at < slots_.size(); at++)
            while (slots_[at].target && !keep(slots_[at])) { // another one may come to its place
                leaving.add(slots_[at].target);
                erase(at);
            }
        limit_ = std::max<size_t>(LEAST_LIMIT, count_ * 2);
    }

  private:
    enum { FIRST = 512, LEAST_LIMIT = 1000 };

    size_t after(size_t at) const
    {
        return (at + 1) & (slots_.size() - 1);
    }

    // Where it would be if all slots were free.
    size_t home_of(Target *target) const
    {
        return Epochs::mixed(target) >> 24 & (slots_.size() - 1);
    }

    size_t find(Target *target) const
    {
        size_t at = home_of(target);
        while (slots_[at].target && slots_[at].target != target)
            at = after(at);
        return at;
    }

    // Those behind it move up, so that they are found as before.
    void erase(size_t hole)
    {
        for (size_t at = after(hole); slots_[at].target; at = after(at)) {
            const size_t mask = slots_.size() - 1;
            if (((at - home_of(slots_[at].target)) & mask) < ((at - hole) & mask)) continue;
            slots_[hole] = slots_[at];
            hole = at;
        }
        slots_[hole] = Slot();
        count_--;
    }

    void resize(size_t size)
    {
        std::vector<Slot> old(size);
        old.swap(slots_);
        for (const Slot &slot : old)
            if (slot.target) slots_[find(slot.target)] = slot;
    }

    std::vector<Slot> slots_;
    std::array<Target *, 64> young_{};
    size_t next_ = 0;
    size_t count_ = 0;
    size_t limit_ = LEAST_LIMIT;
};

struct Known {
    std::mutex lock; // nothing of torch's is freed under it
    Table<Tensor> tensors;
    Table<Storage> storages;
    uint64_t last = UNDEFINED_TENSOR;
};

Known &known()
{
    static Known *forever = new Known; // operators may run after static objects are gone
    return *forever;
}

uint64_t storage_id_locked(Known &k, Target *storage, Leaving &leaving)
{
    Storage &slot = k.storages.at(storage, leaving);
    if (!slot.id) {
        hold(storage);
        slot.id = ++k.last;
    }
    return slot.id;
}

// A tensor's storage may have gone with a set_ that nobody saw, and another one be where it was.
[[gnu::hot]] Identity identify_locked(Known &k, Target *tensor, Target *storage, Leaving &leaving)
{
    Tensor &slot = k.tensors.at(tensor, leaving);
    if (!slot.id) {
        hold(tensor);
        slot.id = ++k.last;
    }
    if (!storage) return {slot.id, 0, 0};
    if (slot.storage != storage || slot.storage_epoch != Epochs::of(storage)) {
        slot.storage_id = storage_id_locked(k, storage, leaving);
        slot.storage = storage;
        slot.storage_epoch = Epochs::of(storage);
    }
    return {slot.id, slot.storage_id, Epochs::of(tensor) + slot.storage_epoch};
}

} // namespace

[[gnu::hot]] Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage)
{
    Leaving leaving;
    Known &k = known();
    std::lock_guard<std::mutex> guard(k.lock);
    return identify_locked(k, tensor, storage, leaving);
}

void forget(c10::TensorImpl *tensor)
{
    Leaving leaving;
    Known &k = known();
    std::lock_guard<std::mutex> guard(k.lock);
    k.tensors.sweep(leaving, [tensor](const Tensor &slot) { return slot.target != tensor; });
}

void forget_all()
{
    Leaving leaving;
    Known &k = known();
    std::lock_guard<std::mutex> guard(k.lock);
    k.tensors.sweep(leaving, [](const Tensor &) { return false; });
    k.storages.sweep(leaving, [](const Storage &) { return false; });
}

void identities_hold()
{
    known().lock.lock();
}

void identities_release()
{
    known().lock.unlock();
}

} // namespace kpytrace
