#include "hosts/torch/session/watched_objects.h"

#include <torch/csrc/utils/pythoncapi_compat.h>

#include "hosts/torch/session/module_snapshot.h"

namespace kpytrace
{

// Returns the entry of OBJECT. Makes one if there is none, or if the object of the entry with its address has
// died. Returns null if OBJECT has no weak references, since it could not be distinguished from its successors.
Objects::Identity *Objects::find(Identities &in, PyObject *object, bool &fresh)
{
    auto known = in.find(object);
    fresh = false;
    if (known != in.end()) {
        PyObject *alive = nullptr;
        (void)PyWeakref_GetRef(known->second.reference, &alive);
        Py_XDECREF(alive);
        if (alive == object) return &known->second;
        Py_DECREF(known->second.reference);
        in.erase(known);
    }
    PyObject *reference = PyWeakref_NewRef(object, nullptr);
    if (!reference) {
        PyErr_Clear();
        return nullptr;
    }
    fresh = true;
    return &in.emplace(object, Identity{reference, 0}).first->second;
}

// Returns how many objects of this class were seen before.
uint64_t Objects::number_of(PyTypeObject *type)
{
    bool fresh;
    Identity *known = find(classes_, reinterpret_cast<PyObject *>(type), fresh);
    return known ? known->number++ : 0;
}

uint64_t Objects::see(uint64_t watch, PyObject *self)
{
    bool fresh = false;
    Identity *known = self ? find(objects_, self, fresh) : nullptr;
    if (!known || !fresh) return known ? known->number : 0;
    Sighting sighting;
    if (watch == MODULE_CALL) {
        sighting.module = read_module(self, with_parameters_);
        sighting.module->id_ = number_of(Py_TYPE(self));
    } else {
        sighting.optimizer = read_optimizer(self);
    }
    std::lock_guard<std::mutex> guard(lock_);
    sightings_.push_back(std::move(sighting));
    return known->number = sightings_.size();
}

const Sighting *Objects::sighting(uint64_t answer) const
{
    std::lock_guard<std::mutex> guard(lock_);
    return answer && answer <= sightings_.size() ? &sightings_[answer - 1] : nullptr;
}

void Objects::release()
{
    if (objects_.empty() && classes_.empty()) return;
    if (Py_IsInitialized() && !Py_IsFinalizing()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        for (Identities *all : {&objects_, &classes_})
            for (auto &entry : *all)
                Py_DECREF(entry.second.reference);
        PyGILState_Release(gil);
    }
    objects_.clear();
    classes_.clear();
}

void Objects::drop_parameters()
{
    std::lock_guard<std::mutex> guard(lock_);
    for (Sighting &sighting : sightings_) {
        if (sighting.module) sighting.module->parameters_.clear();
        sighting.optimizer.reset();
    }
}

Objects::~Objects()
{
    release();
}

} // namespace kpytrace
