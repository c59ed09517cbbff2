// objects.h: the modules and optimizers whose calls are watched, as they were when first seen. Holds
// weak references while it records, so that an address that is used again is another object, and
// keeps none alive. An answer is what travels with a call: an index from 1, 0 for nothing.
#ifndef KPTI_TORCH_OBJECTS_H
#define KPTI_TORCH_OBJECTS_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kpt.h"

namespace kpytrace
{

enum Watch : uint64_t { MODULE_CALL = 1, OPTIMIZER_STEP = 2 };

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

    // The watched calls that run now, of all threads. The GIL is held.
    void see_open_calls(PyCodeObject *module_call, PyCodeObject *optimizer_step);

    // The answer of the ORDINALth call of NAME that ran on this thread then; 0: none.
    uint64_t open_call(uint64_t os_tid, const kpt_name &name, uint32_t ordinal) const;

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
    struct OpenCall {
        uint64_t os_tid;
        std::string function;
        uint32_t first_line;
        uint64_t answer;
    };
    using Identities = std::unordered_map<PyObject *, Identity>;

    static Identity *find(Identities &in, PyObject *object, bool &fresh);
    void see_frames_of(PyThreadState *state, PyCodeObject *module_call, PyCodeObject *step);
    uint64_t number_of(PyTypeObject *type);

    mutable std::mutex lock_; // of sightings_: read without the GIL
    std::deque<Sighting> sightings_;
    Identities objects_; // the rest is the GIL's
    Identities classes_;
    std::deque<OpenCall> open_;
};

} // namespace kpytrace
#endif
