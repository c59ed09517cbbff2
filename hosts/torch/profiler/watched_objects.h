// watched_objects.h: the modules and optimizers whose calls are watched, as they were when first seen. Holds
// weak references while it records, so that an address that is used again is another object, and
// keeps none alive. An answer is what travels with a call: an index from 1, 0 for nothing.
#ifndef KPTI_HOSTS_TORCH_PROFILER_WATCHED_OBJECTS_H
#define KPTI_HOSTS_TORCH_PROFILER_WATCHED_OBJECTS_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include "abi/kpt.h"

namespace kpytrace
{

// KEPT_CALL: a call that torch gets in every mode that gives it calls; its object is not looked at.
enum Watch : uint64_t { MODULE_CALL = 1, OPTIMIZER_STEP = 2, KEPT_CALL = 3 };

struct Sighting {
    std::optional<torch::profiler::impl::NNModuleInfo> module;
    std::optional<torch::profiler::impl::OptimizerInfo> optimizer;
};

class Objects
{
  public:
    ~Objects();

    // A watched call of SELF begins. The GIL is held; no exception is left.
    uint64_t see(uint64_t watch, PyObject *self);

    // What an answer stands for; null: nothing. It lives as long as this.
    const Sighting *sighting(uint64_t answer) const;

    // Gives the weak references back; the GIL is taken for it, where there still is one.
    void release();

    // Forgets what only torch's tree needs.
    void drop_parameters();

  private:
    struct Identity {
        PyObject *reference; // a weak one
        uint64_t number;
    };
    using Identities = std::unordered_map<PyObject *, Identity>;

    static Identity *find(Identities &in, PyObject *object, bool &fresh);
    uint64_t number_of(PyTypeObject *type);

    mutable std::mutex lock_; // of sightings_: read without the GIL
    std::deque<Sighting> sightings_;
    Identities objects_; // the rest is the GIL's
    Identities classes_;
};

} // namespace kpytrace
#endif
