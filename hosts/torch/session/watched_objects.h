// watched_objects.h: the modules and optimizers whose calls are watched, as they were at their first call.
// Holds weak references while it records, so that an object at a reused address is distinguished from the
// previous one, and keeps no object alive. An answer is a number that is recorded with a call: an index from 1,
// or 0 for none.
#ifndef KPTI_HOSTS_TORCH_SESSION_WATCHED_OBJECTS_H
#define KPTI_HOSTS_TORCH_SESSION_WATCHED_OBJECTS_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include "abi/kpt.h"

namespace kpytrace
{

// KEPT_CALL: a call that torch receives in every mode with calls. Its object is not read.
enum Watch : uint64_t { MODULE_CALL = 1, OPTIMIZER_STEP = 2, KEPT_CALL = 3 };

struct Sighting {
    std::optional<torch::profiler::impl::NNModuleInfo> module;
    std::optional<torch::profiler::impl::OptimizerInfo> optimizer;
};

class Objects
{
  public:
    // WITH_PARAMETERS: torch's tree of events will be asked for the parameters of modules.
    explicit Objects(bool with_parameters) : with_parameters_(with_parameters) {}
    ~Objects();

    // Called when a watched call of SELF begins. The GIL is held. No exception is left set.
    uint64_t see(uint64_t watch, PyObject *self);

    // Returns the object of an answer, or null. It lives as long as this.
    const Sighting *sighting(uint64_t answer) const;

    // Releases the weak references. Acquires the GIL for it, if Python still runs.
    void release();

    // Frees the data that only torch's tree needs.
    void drop_parameters();

  private:
    struct Identity {
        PyObject *reference; // a weak reference
        uint64_t number;
    };
    using Identities = std::unordered_map<PyObject *, Identity>;

    static Identity *find(Identities &in, PyObject *object, bool &fresh);
    uint64_t number_of(PyTypeObject *type);

    const bool with_parameters_;
    mutable std::mutex lock_; // guards sightings_, which is read without the GIL
    std::deque<Sighting> sightings_;
    Identities objects_; // the GIL guards the rest
    Identities classes_;
};

} // namespace kpytrace
#endif
