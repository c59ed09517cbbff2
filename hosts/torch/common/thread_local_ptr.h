// thread_local_ptr.h: what a thread has for itself, found without a call. A library that is loaded late gets its
// thread-local memory through one, but for the few bytes that the system has left for all such libraries: so
// what is found there is a pointer.
#ifndef KPTI_HOSTS_TORCH_COMMON_THREAD_LOCAL_PTR_H
#define KPTI_HOSTS_TORCH_COMMON_THREAD_LOCAL_PTR_H

#include <memory>

namespace kpytrace
{

template <class T> class OfThread
{
  public:
    // Made at the first call of a thread, and gone with it. Who comes still later, in the destructor of
    // something else that the thread had, gets one that stays.
    static T &here()
    {
        return here_ ? *here_ : make();
    }

  private:
    struct Owner {
        std::unique_ptr<T> owned = std::make_unique<T>();
        ~Owner()
        {
            here_ = nullptr;
            is_gone_ = true;
        }
    };

    [[gnu::noinline]] static T &make()
    {
        if (is_gone_) return *(here_ = new T);
        static thread_local Owner owner;
        here_ = owner.owned.get();
        return *here_;
    }

    [[gnu::tls_model("initial-exec")]] static inline constinit thread_local T *here_ = nullptr;
    static inline constinit thread_local bool is_gone_ = false;
};

} // namespace kpytrace
#endif
