// thread_numbers.h: the threads of a recording as torch identifies them: torch's own number, the process and
// thread that Kineto writes, and the interpreter's order at the start ("Python thread").
#ifndef KPTI_HOSTS_TORCH_SESSION_THREAD_NUMBERS_H
#define KPTI_HOSTS_TORCH_SESSION_THREAD_NUMBERS_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

#include <mutex>
#include <unordered_map>

#include "abi/kpt.h"

namespace kpytrace
{

// Python 3.10 does not store a thread's OS id, so all threads count as late there.
template <class State> auto os_tid_of(State *state, int) -> decltype(state->native_thread_id)
{
    return state->native_thread_id;
}

template <class State> unsigned long os_tid_of(State *, long)
{
    return 0;
}

// Calls VISIT with each thread state of the interpreter, newest first. The GIL is held, and VISIT does not
// release it. Python 3.11 links a state before it is initialised. So this function makes a state of its own
// first, and visits the states behind it, which are complete.
template <class Visit> void each_thread_state(Visit visit)
{
    PyThreadState *own = PyThreadState_New(PyThreadState_GetInterpreter(PyThreadState_Get()));
    if (!own) return;
    for (auto *state = PyThreadState_Next(own); state; state = PyThreadState_Next(state))
        visit(state);
    PyThreadState_Clear(own);
    PyThreadState_Delete(own);
}

struct Thread {
    uint64_t tid = 0; // torch's number, by which it builds its trees
    torch::profiler::impl::kineto::DeviceAndResource where{};
    size_t python_tid = 0;
    bool late = false; // it began during the recording
};

class Threads
{
  public:
    // Lists the present threads, newest first, as the interpreter lists them. The GIL is held.
    void list_present();

    // Called on a thread that is about to record. Returns the thread's host_value, which is torch's number of the
    // thread. QUEUE may be null.
    uint64_t attach(torch::profiler::impl::RecordQueue *queue, uint64_t os_tid);

    // Returns the data of a delivered thread, also of a thread without an event of its own.
    Thread of(const kpt_thread &delivered);

  private:
    void number_locked(Thread &thread, uint64_t os_tid);

    std::mutex lock_; // threads attach at any time; no call is made under it
    std::unordered_map<uint64_t, size_t> numbers_;
    size_t present_ = 0;
    std::unordered_map<uint64_t, Thread> attached_; // by host_value
};

} // namespace kpytrace
#endif
