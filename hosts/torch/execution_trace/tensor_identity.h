// tensor_identity.h: which tensor is which: numbers for tensors and storages that are never given twice.
//
// An address names a tensor only while it lives. The table holds each tensor and storage that it has
// numbered by a weak reference, under which torch frees what they own at once, but not the few bytes at
// the address: so whoever is found there is the one that was numbered. References to those that have died
// are given back soon, while the allocator has use for their memory. Any thread may use it.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_IDENTITY_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_IDENTITY_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <atomic>

namespace kpytrace
{

enum : uint64_t { UNDEFINED_TENSOR = 1 }; // torch has one for all

// The numbers of a tensor and its storage. They hold for what lies at these addresses as long as
// their_epoch is the same.
struct Identity {
    uint64_t tensor_id;
    uint64_t storage_id; // 0 without a storage
    uint32_t epoch;
};

// Dead ones, whose references are to be given back where anything may run: some hold another tensor, which dies with
// them, and its finalizers are Python.
class Gone
{
  public:
    Gone() {}
    ~Gone()
    {
        give_back();
    }
    Gone(const Gone &) = delete;
    Gone &operator=(const Gone &) = delete;

    bool has_room() const
    {
        return count_ < targets_.size();
    }
    void add(c10::intrusive_ptr_target *target)
    {
        targets_[count_++] = target;
    }
    // What runs meanwhile may use this.
    [[gnu::hot]] void give_back()
    {
        while (count_)
            c10::raw::weak_intrusive_ptr::decref(targets_[--count_]);
    }

  private:
    size_t count_ = 0;
    std::array<c10::intrusive_ptr_target *, 15> targets_;
};

// Both live during the call; STORAGE may be null. Runs nothing: some who have died meanwhile are GONE. Throws
// std::bad_alloc.
Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage, Gone &gone);

// Gives TENSOR's reference back; should it come again it counts as another one.
void forget(c10::TensorImpl *tensor);

// Gives all references back.
void forget_all();

// Before a fork, so that the child has whole tables; after it, in the parent and in the child.
void identities_hold();
void identities_release();

// Addresses, by some of their bits: how often a reference to one of these was given back. It counts before
// that: who finds another tensor at an address sees it.
class Epochs
{
  public:
    static uint64_t mixed(const void *address)
    {
        return reinterpret_cast<uintptr_t>(address) * UINT64_C(0x9E3779B97F4A7C15);
    }
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
        return counts_[mixed(address) >> (64 - BITS)];
    }

    static inline std::array<std::atomic<uint32_t>, 1 << BITS> counts_{};
};

// Where the table looks for an address first.
class Homes
{
  public:
    struct Slot {
        c10::intrusive_ptr_target *target = nullptr;
        uint64_t number = 0;
    };

    // Of SIZE slots, a power of two.
    static size_t index(const void *address, size_t size)
    {
        return Epochs::mixed(address) >> 24 & (size - 1);
    }
    // Has it in the cache, for who is about to identify what is there. The table may be another one meanwhile.
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

// Both only grow, and come round after days of doing nothing else: the sum is the same if each of them is.
inline uint32_t their_epoch(const c10::TensorImpl *tensor, const c10::StorageImpl *storage)
{
    return Epochs::of(tensor) + Epochs::of(storage);
}

} // namespace kpytrace
#endif
