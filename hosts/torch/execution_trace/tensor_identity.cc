#include "hosts/torch/execution_trace/tensor_identity.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace kpytrace
{

namespace
{

using Target = c10::intrusive_ptr_target;

// The number of objects that are prefetched ahead, when many are read that were not read for a while.
enum { AHEAD = 6 };

void hold(Target *target)
{
    c10::raw::weak_intrusive_ptr::incref(target);
}

bool is_dead(Target *target)
{
    return c10::raw::weak_intrusive_ptr::use_count(target) == 0;
}

// The numbers, in an open-addressing table. A free slot has no target, and at most half of the slots are used.
// A tensor and a storage that both are held are never at the same address.
class Table
{
  public:
    Table()
    {
        SlotPrefetch::move(slots_.data(), slots_.size());
    }

    // Returns TARGET's number. A new target is held, and is young. The caller ensures that is_due() is false.
    // Not inlined, so that its two callers share one copy of the code.
    [[gnu::hot, gnu::noinline]] uint64_t number_of(Target *target)
    {
        size_t at = find(target);
        if (slots_[at].target) return slots_[at].number;
        if (count_ * 2 >= slots_.size()) {
            resize(slots_.size() * 2);
            at = find(target);
        }
        hold(target);
        slots_[at] = {target, ++last_};
        young_[young_count_++] = target;
        count_++;
        return last_;
    }

    // Returns true if the young targets must be checked before a tensor and its storage are numbered. Most
    // targets die young.
    bool is_due() const
    {
        return young_count_ + 2 > young_.size();
    }

    // Checks the older half of the young targets, which are then no longer young. The dead ones move to GONE.
    // The targets, and their slots in the table, are prefetched.
    void look(std::vector<Target *> &gone)
    {
        enum { HALF = YOUNG / 2 };
        gone.reserve(gone.size() + HALF); // may throw, so before any change
        for (size_t i = 0; i < HALF; i++) {
            __builtin_prefetch(young_[i + AHEAD]);
            SlotPrefetch::fetch(young_[i + AHEAD]);
            if (is_dead(young_[i])) gone.push_back(taken_out(find(young_[i])));
        }
        std::copy(young_.begin() + HALF, young_.begin() + young_count_, young_.begin());
        young_count_ -= HALF;
    }

    // Moves the dead targets to GONE when there are twice as many targets as survived the last time.
    void tidy(std::vector<Target *> &gone)
    {
        if (count_ >= limit_) sweep(gone, [](Target *target) { return !is_dead(target); });
    }

    // Moves the targets for which KEEP returns false to GONE.
    template <class Keep> void sweep(std::vector<Target *> &gone, Keep keep)
    {
        gone.reserve(gone.size() + count_); // may throw, so before any change
        young_count_ = 0;
        for (size_t at = 0; at < slots_.size(); at++)
            while (slots_[at].target && !keep(slots_[at].target)) // another may move up here
                gone.push_back(taken_out(at));
        limit_ = std::max<size_t>(MIN_LIMIT, count_ * 2);
    }

  private:
    enum { FIRST = 512, MIN_LIMIT = 1000, YOUNG = 128 };

    using Slot = SlotPrefetch::Slot;

    size_t after(size_t at) const
    {
        return (at + 1) & (slots_.size() - 1);
    }

    // Returns its slot if all slots were free.
    size_t home_of(Target *target) const
    {
        return SlotPrefetch::index(target, slots_.size());
    }

    // Returns the slot where it is, or would be.
    size_t find(Target *target) const
    {
        size_t at = home_of(target);
        while (slots_[at].target && slots_[at].target != target)
            at = after(at);
        return at;
    }

    // Removes the target in slot AT. Advances its epoch, so that data cached by its address becomes invalid.
    Target *taken_out(size_t at)
    {
        Target *target = slots_[at].target;
        AddressEpochs::advance(target);
        erase(at);
        return target;
    }

    // Moves later targets up, so that they are still found.
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

    [[gnu::noinline]] void resize(size_t size)
    {
        std::vector<Slot> old(size);
        old.swap(slots_);
        SlotPrefetch::move(slots_.data(), slots_.size());
        for (const Slot &slot : old)
            if (slot.target) slots_[find(slot.target)] = slot;
    }

    std::vector<Slot> slots_ = std::vector<Slot>(FIRST);
    std::array<Target *, YOUNG> young_{};
    size_t young_count_ = 0;
    size_t count_ = 0;
    size_t limit_ = MIN_LIMIT;
    uint64_t last_ = UNDEFINED_TENSOR;
};

struct Known {
    std::mutex lock; // no object of torch is freed under it
    Table table;
    // Weak references of dead objects, already removed from the table. Each identify() releases a few, so that
    // the allocator can reuse the memory for the next tensors.
    std::vector<Target *> gone;
};

[[gnu::hot]] Known &known()
{
    static Known *forever = new Known; // operators may run after static objects are destroyed
    return *forever;
}

[[gnu::hot, gnu::noinline]] void look_at_young_locked(Known &k)
{
    k.table.look(k.gone);
    k.table.tidy(k.gone);
}

// Releases all references in k.gone.
void release_all(Known &k)
{
    std::vector<Target *> gone;
    {
        std::lock_guard<std::mutex> guard(k.lock);
        gone.swap(k.gone);
    }
    for (size_t i = 0; i < gone.size(); i++) {
        __builtin_prefetch(gone[std::min(i + AHEAD, gone.size() - 1)], 1);
        c10::raw::weak_intrusive_ptr::decref(gone[i]);
    }
}

} // namespace

[[gnu::hot]] Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage, DeadRefs &gone)
{
    enum { AT_ONCE = 4 }; // more than are numbered in a call, so that the list shrinks
    Known &k = known();
    std::lock_guard<std::mutex> guard(k.lock);
    if (k.table.is_due()) look_at_young_locked(k);
    const uint64_t tensor_id = k.table.number_of(tensor);
    const uint64_t storage_id = storage ? k.table.number_of(storage) : 0;
    for (int i = 0; i < AT_ONCE && !k.gone.empty() && gone.has_space(); i++) {
        gone.add(k.gone.back());
        k.gone.pop_back();
    }
    return {tensor_id, storage_id, storage ? their_epoch(tensor, storage) : 0};
}

void forget(c10::TensorImpl *tensor)
{
    Known &k = known();
    {
        std::lock_guard<std::mutex> guard(k.lock);
        k.table.sweep(k.gone, [tensor](const Target *target) { return target != tensor; });
    }
    release_all(k);
}

void forget_all()
{
    Known &k = known();
    {
        std::lock_guard<std::mutex> guard(k.lock);
        k.table.sweep(k.gone, [](const Target *) { return false; });
    }
    release_all(k);
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
