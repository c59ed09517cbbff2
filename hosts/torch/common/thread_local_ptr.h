// thread_local_ptr.h: a thread-local object that is found without a function call. A library that is loaded
// late reaches its thread-local memory through a call, except for the few bytes that the system reserves for
// all such libraries. So only a pointer is kept there.
#ifndef KPTI_HOSTS_TORCH_COMMON_THREAD_LOCAL_PTR_H
#define KPTI_HOSTS_TORCH_COMMON_THREAD_LOCAL_PTR_H

#include <memory>

namespace kpytrace
{

template <class T> class ThreadLocalPtr
{
  public:
    // Returns the thread's object. It is made at the thread's first call and freed when the thread ends. A
    // still later call, from the destructor of another thread-local object, gets an object that is never freed.
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
