// tensor_identity.h: unique numbers for tensors and storages, which are never reused.
//
// An address identifies a tensor only while the tensor lives. The table holds a weak reference to each tensor
// and storage that it has numbered. torch then frees their contents at once, but not the few bytes at the
// address. So an object found at that address is the one that was numbered. References to dead objects are
// released soon, while the allocator can reuse their memory. Any thread may use it.
//
// It has its own table, not core/base/hash_table.h: other threads prefetch a slot without the lock, so the table
// publishes its address and size whenever it moves, and a sweep removes targets while it walks the slots.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_IDENTITY_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_IDENTITY_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <atomic>

#include "hosts/torch/common/hash.h"

namespace kpytrace
{

enum : uint64_t { UNDEFINED_TENSOR = 1 }; // torch has one undefined tensor

// The numbers of a tensor and its storage. They are valid for the objects at these addresses as long as
// their_epoch is the same.
struct Identity {
    uint64_t tensor_id;
    uint64_t storage_id; // 0 if there is no storage
    uint32_t epoch;
};

// References to dead objects, to be released where any code may run. Some of the objects hold another tensor,
// which dies with them, and its finalizers are Python.
class DeadRefs
{
  public:
    DeadRefs() {}
    ~DeadRefs()
    {
        release();
    }
    DeadRefs(const DeadRefs &) = delete;
    DeadRefs &operator=(const DeadRefs &) = delete;

    bool has_space() const
    {
        return count_ < targets_.size();
    }
    void add(c10::intrusive_ptr_target *target)
    {
        targets_[count_++] = target;
    }
    // Code that runs meanwhile may use this object.
    [[gnu::hot]] void release()
    {
        while (count_)
            c10::raw::weak_intrusive_ptr::decref(targets_[--count_]);
    }

  private:
    size_t count_ = 0;
    std::array<c10::intrusive_ptr_target *, 15> targets_;
};

// Numbers both. They must live during the call; STORAGE may be null. Runs no other code: references to some
// objects that have died are moved to GONE. Throws std::bad_alloc.
Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage, DeadRefs &gone);

// Releases the reference to TENSOR. If TENSOR is identified again, it gets a new number.
void forget(c10::TensorImpl *tensor);

// Releases all references.
void forget_all();

// Called before a fork, so that the child's tables are consistent, and after it, in the parent and in the
// child.
void identities_hold();
void identities_release();

// Counts, by some bits of the address, how often a reference to an object there was released. The counter
// advances before the release, so a thread that finds another tensor at the address sees the new count.
class AddressEpochs
{
  public:
    static uint32_t of(const void *address)
    {
        return at(address).load(std::memory_order_acquire);
    }
    static void advance(const void *address)
    {
        at(address).fetch_add(1, std::memory_order_release);
    }

  private:
    enum { BITS = 9 };

    static std::atomic<uint32_t> &at(const void *address)
    {
        return counts_[address_hash(address) >> (64 - BITS)];
    }

    static inline std::array<std::atomic<uint32_t>, 1 << BITS> counts_{};
};

// Where the table's search for an address begins.
class SlotPrefetch
{
  public:
    struct Slot {
        c10::intrusive_ptr_target *target = nullptr;
        uint64_t number = 0;
    };

    // Returns the first slot among SIZE slots, a power of two.
    static size_t index(const void *address, size_t size)
    {
        return address_hash(address) >> 24 & (size - 1);
    }
    // Prefetches the slot for a thread that is about to identify the object at ADDRESS. The table may be
    // replaced meanwhile, which does no harm.
    static void fetch(const void *address)
    {
        const Slot *slots = slots_.load(std::memory_order_relaxed);
        __builtin_prefetch(slots + index(address, size_.load(std::memory_order_relaxed)), 1);
    }
    static void move(const Slot *slots, size_t size)
    {
        slots_.store(slots, std::memory_order_relaxed);
        size_.store(size, std::memory_order_relaxed);
    }

  private:
    static inline std::atomic<const Slot *> slots_{nullptr};
    static inline std::atomic<size_t> size_{1};
};

// Both epochs only increase, and wrap around only after days of doing nothing else. So the sum is the same only
// if both are.
inline uint32_t their_epoch(const c10::TensorImpl *tensor, const c10::StorageImpl *storage)
{
    return AddressEpochs::of(tensor) + AddressEpochs::of(storage);
}

} // namespace kpytrace
#endif
