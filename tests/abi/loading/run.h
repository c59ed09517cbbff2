/* run.h: starts programs for the load tests, and stores their output. */
#ifndef KPT_LOAD_RUN_H
#define KPT_LOAD_RUN_H

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

using environment = std::map<std::string, std::string>; /* an empty value removes the variable */

struct result {
    int exit_code = -1; /* -1 if a signal ended it, or if it was killed after two minutes */
    int signal = 0;
    std::string out;
    std::string err;
    std::string command;

    bool has(const std::string &text) const /* stdout does */
    {
        return out.find(text) != std::string::npos;
    }
};
std::ostream &operator<<(std::ostream &out, const result &r);

/* Runs a program of this machine, found in PATH. KPYTRACE_VERBOSE is not set unless CHANGES sets it. */
result run(const std::vector<std::string> &command, const environment &changes = {});

/* Returns this process's ASAN_OPTIONS, with the leak check on or off. */
std::string asan_options(bool find_leaks);

/* Runs kpt_helper with these arguments, through the emulator if there is one. AddressSanitizer's leak check
 * is off unless FIND_LEAKS is set: Python leaks at its end, and the check takes seconds at each exit on
 * some machines. */
result run_helper(const std::vector<std::string> &arguments, const environment &changes = {},
                  bool find_leaks = false);

/* Empty, or why this scenario can't be judged in this build. */
std::string unfit(const std::string &scenario, bool with_backend);

/* A folder that is removed with its contents. */
class temporary_folder
{
  public:
    temporary_folder();
    ~temporary_folder();
    temporary_folder(const temporary_folder &) = delete;
    temporary_folder &operator=(const temporary_folder &) = delete;

    std::string operator/(const std::string &name) const
    {
        return path + "/" + name;
    }
    std::string path;
};

/* A copy of the plugin in its own folder, without a backend unless a test adds one. */
class lone_plugin
{
  public:
    lone_plugin();
    std::string backend(const std::string &tag) const /* the path of a backend for that Python */
    {
        return folder / ("libkpytrace_cpython" + tag + ".so");
    }

    temporary_folder folder;
    std::string path = folder / "libkpytrace.so";
};

/* A Python of this machine, as tests/abi/loading/pythons.py describes it. */
struct python {
    std::string tag; /* 3.13t */
    std::string program;
    std::string library; /* its shared libpython, or empty */
    std::string home;
    bool in_executable;
};

/* Returns all Pythons that were found. The result is empty, with the reason in WHY, if there are none or
 * none can be used. */
std::vector<python> all_pythons(std::string *why);

/* Determines the environment that a foreign program needs to load our libraries: nothing, or the runtime of
 * the sanitizer that they are built with. Returns false, with the reason, if that does not work. */
bool can_host(const python &p, environment *changes, std::string *why);

#endif
