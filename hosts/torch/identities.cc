#include "identities.h"

#include <mutex>
#include <vector>

namespace kpytrace
{

std::atomic<uint64_t> identities_epoch{1};

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

struct Storage {
    Target *target = nullptr;
    uint64_t id = 0;
};

struct Tensor {
    Target *target = nullptr;
    uint64_t id = 0;
    Target *storage = nullptr; // of which the number is known
    uint64_t storage_id = 0;
};

// Open addressing; a free slot has no target. At most half of the slots are taken.
template <class Slot> class Table
{
  public:
    // TARGET's slot, new if its id is 0.
    Slot &at(Target *target)
    {
        if (count_ * 2 >= slots_.size()) resize(slots_.size() ? slots_.size() * 2 : FIRST);
        Slot &slot = *find(target);
        if (!slot.target) {
            slot.target = target;
            count_++;
        }
        return slot;
    }

    bool is_full() const
    {
        return count_ >= limit_;
    }

    // Moves those that KEEP refuses to DEAD.
    template <class Keep> void sweep(std::vector<Target *> &dead, Keep keep)
    {
        dead.reserve(dead.size() + count_); // before anything is changed
        swept_.assign(slots_.size(), Slot());
        swept_.swap(slots_);
        count_ = 0;
        for (Slot &slot : swept_) {
            if (!slot.target) continue;
            if (keep(slot)) {
                *find(slot.target) = slot;
                count_++;
            } else {
                dead.push_back(slot.target);
            }
        }
        limit_ = std::max<size_t>(LEAST_LIMIT, count_ * 2);
    }

  private:
    enum { FIRST = 2048, LEAST_LIMIT = 1000 };

    Slot *find(Target *target)
    {
        size_t at = reinterpret_cast<uintptr_t>(target) * UINT64_C(0x9E3779B97F4A7C15) >> 24;
        for (;; at++) {
            Slot &slot = slots_[at & (slots_.size() - 1)];
            if (!slot.target || slot.target == target) return &slot;
        }
    }

    void resize(size_t size)
    {
        std::vector<Slot> old(size);
        old.swap(slots_);
        for (const Slot &slot : old)
            if (slot.target) *find(slot.target) = slot;
    }

    std::vector<Slot> slots_;
    std::vector<Slot> swept_; // the memory for the next sweep
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

uint64_t storage_id_locked(Known &k, Target *storage)
{
    Storage &slot = k.storages.at(storage);
    if (!slot.id) {
        hold(storage);
        slot.id = ++k.last;
    }
    return slot.id;
}

Identity identify_locked(Known &k, Target *tensor, Target *storage)
{
    Tensor &slot = k.tensors.at(tensor);
    if (!slot.id) {
        hold(tensor);
        slot.id = ++k.last;
    }
    if (storage && slot.storage != storage) {
        slot.storage_id = storage_id_locked(k, storage);
        slot.storage = storage;
    }
    return {slot.id, storage ? slot.storage_id : 0, identities_epoch};
}

// A tensor's storage may have gone with a set_ that nobody saw: its number is looked up again.
void sweep_locked(Known &k, std::vector<Target *> &dead)
{
    identities_epoch++;
    k.tensors.sweep(dead, [](Tensor &slot) {
        slot.storage = nullptr;
        return !is_dead(slot.target);
    });
    k.storages.sweep(dead, [](const Storage &slot) { return !is_dead(slot.target); });
}

void give_back(const std::vector<Target *> &dead)
{
    for (Target *target : dead)
        c10::raw::weak_intrusive_ptr::decref(target);
}

} // namespace

Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage)
{
    std::vector<Target *> dead;
    Known &k = known();
    Identity found;
    {
        std::lock_guard<std::mutex> guard(k.lock);
        if (k.tensors.is_full() || k.storages.is_full()) sweep_locked(k, dead);
        found = identify_locked(k, tensor, storage);
    }
    give_back(dead);
    return found;
}

void forget(c10::TensorImpl *tensor)
{
    std::vector<Target *> dead;
    Known &k = known();
    {
        std::lock_guard<std::mutex> guard(k.lock);
        identities_epoch++;
        k.tensors.sweep(dead, [tensor](const Tensor &slot) { return slot.target != tensor; });
    }
    give_back(dead);
}

void forget_all()
{
    std::vector<Target *> dead;
    Known &k = known();
    {
        std::lock_guard<std::mutex> guard(k.lock);
        identities_epoch++;
        k.tensors.sweep(dead, [](const Tensor &) { return false; });
        k.storages.sweep(dead, [](const Storage &) { return false; });
    }
    give_back(dead);
}

void identities_forked()
{
    new (&known().lock) std::mutex;
}

} // namespace kpytrace
