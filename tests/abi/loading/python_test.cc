/* python_test.cc: the plugin beside real CPythons: opened by a C program, hidden or not, initialised or
 * not, and the python program itself. There is no backend, so the result is a no-op with the reason. */
#include <functional>

#include "tests/abi/loading/run.h"

namespace
{

/* Runs the test for each possible Python; skips, with the reasons, if there is none. */
template <typename Check> void for_each_python(const Check &check)
{
    std::string why;
    int tried = 0;
    for (const python &p : all_pythons(&why)) {
        SCOPED_TRACE(p.tag + " " + p.program);
        std::string reason;
        if (check(p, &reason))
            tried++;
        else
            why += "\n" + p.tag + ": " + reason;
        if (testing::Test::HasFatalFailure()) return;
    }
    if (!why.empty()) std::cout << "not tried:" << why << "\n";
    if (!tried) GTEST_SKIP() << why;
}

/* Removes the t of a free-threaded tag, for messages in which the plugin does not distinguish them. */
std::string plain(const std::string &tag)
{
    return tag.back() == 't' ? tag.substr(0, tag.size() - 1) : tag;
}

std::string looked_for(const python &p, const lone_plugin &plugin)
{
    return "there is no backend for CPython " + p.tag + ": looked for " + plugin.backend(p.tag);
}

class Embedded : public testing::TestWithParam<const char *>
{
  protected:
    /* Runs the helper with this Python in that state. Returns false if this Python can't be opened here. */
    bool report(const python &p, const char *state, result *r, std::string *why)
    {
        if (p.library.empty()) {
            *why = "it has no shared libpython here";
            return false;
        }
        *r = run_helper({plugin.path, "report", p.library, GetParam(), state},
                        {{"PYTHONHOME", p.home}, {"KPYTRACE_VERBOSE", "1"}});
        if (r->exit_code == 77) *why = r->out;
        return r->exit_code != 77;
    }

    void expect(const char *state, const std::function<std::string(const python &)> &reason)
    {
        for_each_python([&](const python &p, std::string *why) {
            result r;
            if (!report(p, state, &r, why)) return false;
            EXPECT_EQ(r.exit_code, 0) << r;
            EXPECT_TRUE(r.has("tracer: noop=1 reason=" + reason(p))) << r;
            EXPECT_TRUE(r.has("observer: noop=1 reason=" + reason(p))) << r;
            EXPECT_NE(r.err.find("kpytrace: python: found " + plain(p.tag) + "."),
                      std::string::npos)
                << r;
            EXPECT_NE(r.err.find(" in " + p.library + "\n"), std::string::npos) << r;
            EXPECT_NE(r.err.find("kpytrace: make: a no-op tracer: " + reason(p)), std::string::npos)
                << r;
            return true;
        });
    }

    lone_plugin plugin;
};

TEST_P(Embedded, NotInitialised)
{
    expect("asleep", [](const python &p) {
        return "CPython " + plain(p.tag) + " is not initialised, or finalised already\n";
    });
}

TEST_P(Embedded, Finalised)
{
    expect("finalised", [](const python &p) {
        return "CPython " + plain(p.tag) + " is being finalised, or finalised already\n";
    });
}

TEST_P(Embedded, Initialised)
{
    expect("ready", [this](const python &p) { return looked_for(p, plugin) + "\n"; });
}

TEST_P(Embedded, InitialisedAgainAfterAnEnd)
{
    expect("again", [this](const python &p) { return looked_for(p, plugin) + "\n"; });
}

INSTANTIATE_TEST_SUITE_P(Opened, Embedded, testing::Values("global", "local"),
                         [](const auto &each) { return std::string(each.param); });

bool host_script(const python &p, const lone_plugin &plugin, const char *when, environment changes,
                 result *r, std::string *why)
{
    if (!can_host(p, &changes, why)) return false;
    *r = run({p.program, "-I", KPT_SOURCE_DIR "/host.py", plugin.path, when}, changes);
    return true;
}

TEST(PythonProgram, GetsANoopThatSaysWhichBackendIsMissing)
{
    lone_plugin plugin;
    for_each_python([&](const python &p, std::string *why) {
        result r;
        if (!host_script(p, plugin, "now", {{"KPYTRACE_VERBOSE", "1"}}, &r, why)) return false;
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.out, "entry 0\nmake 0\nnoop 1\nreason " + looked_for(p, plugin) +
                             "\nstop 0 -3\nstopped stop: the tracer is stopped already\n"
                             "stats 0 2 0\ndestroy 0 -4\ndetach 0\n")
            << r;
        std::string place = p.in_executable ? " in the executable /" : " in /";
        EXPECT_NE(r.err.find(place), std::string::npos) << r;
        EXPECT_NE(r.err.find("python: found " + plain(p.tag) + "."), std::string::npos) << r;
        return true;
    });
}

TEST(PythonProgram, PrintsNothingUnlessAsked)
{
    lone_plugin plugin;
    for_each_python([&](const python &p, std::string *why) {
        result r;
        if (!host_script(p, plugin, "now", {{"KPYTRACE_VERBOSE", "0"}}, &r, why)) return false;
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.err, "") << r;
        return true;
    });
}

TEST(PythonProgram, ThatIsBeingFinalisedGetsANoop)
{
    lone_plugin plugin;
    for_each_python([&](const python &p, std::string *why) {
        result r;
        if (!host_script(p, plugin, "ending", {}, &r, why)) return false;
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_TRUE(r.has("finalizing True\nentry 0\nmake 0\nnoop 1\nreason CPython " +
                          plain(p.tag) + " is being finalised, or finalised already\n"))
            << r;
        EXPECT_TRUE(r.has("detach 0\n")) << r;
        return true;
    });
}

} // namespace
