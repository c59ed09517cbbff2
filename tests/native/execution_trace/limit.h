/* limit.h: limits on the system's resources, for tests. */
#ifndef LIMIT_H
#define LIMIT_H

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

/* Files end at so many bytes, or there is so much of something else, while this lives. */
class Limit
{
  public:
    explicit Limit(rlim_t bytes, __rlimit_resource_t resource = RLIMIT_FSIZE) : what(resource)
    {
        handler = signal(SIGXFSZ, SIG_IGN);
        (void)getrlimit(what, &before);
        const rlimit limit = {bytes, before.rlim_max};
        (void)setrlimit(what, &limit);
    }
    ~Limit()
    {
        (void)setrlimit(what, &before);
        (void)signal(SIGXFSZ, handler);
    }

  private:
    const __rlimit_resource_t what;
    rlimit before;
    sighandler_t handler;
};

/* Returns the bytes of address space that the process uses. */
inline rlim_t addresses()
{
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

#endif
