// identities.h: which tensor is which: numbers for tensors and storages that are never given twice.
//
// An address names a tensor only while it lives. The table holds each tensor and storage that it has
// numbered by a weak reference, under which torch frees what they own at once, but not the few bytes at
// the address: so whoever is found there is the one that was numbered. Those that have died are swept out
// as the table fills. Any thread may use it.
#ifndef KPTI_TORCH_IDENTITIES_H
#define KPTI_TORCH_IDENTITIES_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <atomic>

namespace kpytrace
{

enum : uint64_t { UNDEFINED_TENSOR = 1 }; // torch has one for all

// The numbers of a tensor and its storage. They hold for what lies at these addresses as long as
// identities_epoch is the same.
struct Identity {
    uint64_t tensor_id;
    uint64_t storage_id; // 0 without a storage
    uint64_t epoch;
};

// Both live during the call; STORAGE may be null. Throws std::bad_alloc.
Identity identify(c10::TensorImpl *tensor, c10::StorageImpl *storage);

// Another one before a reference is given back: who finds another tensor at an address sees that.
extern std::atomic<uint64_t> identities_epoch;

// Gives TENSOR's reference back; should it come again it counts as another one.
void forget(c10::TensorImpl *tensor);

// Gives all references back.
void forget_all();

// In the child of a fork, on its only thread: the lock is free, whoever had it.
void identities_forked();

} // namespace kpytrace
#endif
