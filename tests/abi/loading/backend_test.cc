/* backend_test.cc: a copy of the plugin with a backend beside it: a good backend is opened and used, also
 * if libpython is hidden; each kind of wrong backend is refused with a reason. */
#include <filesystem>
#include <fstream>

#include "tests/abi/loading/run.h"

namespace
{

namespace fs = std::filesystem;

/* A copy of the plugin, and beside it the fake backend of that name for a Python. */
class plugin_copy : public lone_plugin
{
  public:
    plugin_copy(const python &p, const std::string &variant) : beside(backend(p.tag))
    {
        const std::string built = std::string(KPT_BACKENDS_DIR) + "/libkpt_fake_" + variant + ".so";
        if (variant == "no_elf")
            std::ofstream(beside) << "this is not a library\n";
        else
            fs::copy_file(built, beside);
    }
    std::string beside;
};

result run_beside(const python &p, const plugin_copy &copy, const char *scenario,
                  const char *visibility, const char *state = "ready")
{
    return run_helper({copy.path, scenario, p.library, visibility, state},
                      {{"PYTHONHOME", p.home}, {"KPYTRACE_VERBOSE", "1"}});
}

/* Every Python with a shared libpython that a C program can open here. */
std::vector<python> embeddable(std::string *why)
{
    std::vector<python> usable;
    for (const python &p : all_pythons(why)) {
        if (p.library.empty()) continue;
        result r = run_helper({KPT_PLUGIN_PATH, "silent", p.library, "local", "asleep"});
        if (r.exit_code != 77) usable.push_back(p);
    }
    if (usable.empty() && why->empty()) *why = "no Python here has a shared libpython";
    return usable;
}

class Backend : public testing::Test
{
  protected:
    void SetUp() override
    {
        std::string why;
        pythons = embeddable(&why);
        if (pythons.empty()) GTEST_SKIP() << why;
    }
    std::vector<python> pythons;
};

TEST_F(Backend, IsOpenedAndUsedAlsoWhereLibpythonIsHidden)
{
    for (const python &p : pythons) {
        plugin_copy copy(p, "good");
        for (const char *visibility : {"global", "local"}) {
            SCOPED_TRACE(p.tag + " " + visibility);
            result r = run_beside(p, copy, "report", visibility);
            EXPECT_EQ(r.exit_code, 0) << r;
            EXPECT_TRUE(r.has("tracer: noop=0 reason=\n")) << r;
            EXPECT_TRUE(r.has("activities: 1\n")) << r;
            EXPECT_TRUE(r.has("memory: noop=1 reason=the backend has no memory tracer\n")) << r;
            EXPECT_TRUE(r.has("observer: noop=1 reason=the backend has no observer\n")) << r;
            EXPECT_TRUE(r.has("tracebacks: noop=0 reason=\ngathered: 7\n")) << r;
            size_t found = r.err.find("kpytrace: python: found ");
            size_t seen = r.err.find("kpytrace: backend: " + p.library + " is visible to backends");
            size_t opened = r.err.find("kpytrace: backend: opened " + copy.beside + "\n");
            EXPECT_LT(found, seen) << r;
            EXPECT_LT(seen, opened) << r;
            EXPECT_NE(opened, std::string::npos) << r;
        }
    }
}

TEST_F(Backend, IsLeftAloneWherePythonSleeps)
{
    plugin_copy copy(pythons[0], "good");
    for (const char *state : {"asleep", "finalised"}) {
        result r = run_beside(pythons[0], copy, "report", "local", state);
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_TRUE(r.has("tracer: noop=1 reason=CPython ")) << r;
        EXPECT_EQ(r.err.find("backend: "), std::string::npos) << r;
    }
}

/* The scenarios that need no Python go well with a real tracer, too. */
TEST_F(Backend, LivesThroughEveryScenario)
{
    for (const char *scenario : {"two_hosts", "twice", "closed", "fork", "threads", "fork_threads",
                                 "failing_alloc", "states"}) {
        const python &p = pythons.back();
        if (!unfit(scenario, true).empty()) continue;
        SCOPED_TRACE(scenario);
        plugin_copy copy(p, "good");
        result r = run_beside(p, copy, scenario, "local");
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_NE(r.err.find("kpytrace: backend: opened "), std::string::npos);
    }
}

/* A child that is forked while a library is loaded would hang at its own next load. */
TEST_F(Backend, IsWaitedForByForkWhileItIsLoaded)
{
    plugin_copy copy(pythons.back(), "slow");
    result r = run_beside(pythons.back(), copy, "fork_load", "local");
    EXPECT_EQ(r.exit_code, 0) << r;
}

struct wrong {
    const char *variant;
    const char *reason; /* with %v for the plugin's version, %t for 3.13t, %b for the backend */
};

class WrongBackend : public Backend, public testing::WithParamInterface<wrong>
{
};

std::string filled_in(std::string text, const python &p, const plugin_copy &copy)
{
    const std::pair<const char *, std::string> words[] = {
        {"%v", KPT_VERSION}, {"%t", p.tag}, {"%b", copy.beside}};
    for (const auto &[mark, word] : words)
        for (size_t at; (at = text.find(mark)) != std::string::npos;)
            text.replace(at, 2, word);
    return text;
}

TEST_P(WrongBackend, GivesANoopThatKnowsWhy)
{
    const python &p = pythons[0];
    plugin_copy copy(p, GetParam().variant);
    std::string reason = filled_in(GetParam().reason, p, copy);
    result r = run_beside(p, copy, "report", "local");
    EXPECT_EQ(r.exit_code, 0) << r;
    EXPECT_TRUE(r.has("tracer: noop=1 reason=" + reason)) << "expected: " << reason << "\n" << r;
    EXPECT_NE(r.err.find("kpytrace: make: a no-op tracer: " + reason), std::string::npos) << r;
}

const char NOT_OURS[] = "%b is not a backend of kpytrace %v for CPython %t\n";
const wrong WRONGS[] = {
    {"interface", NOT_OURS},
    {"version", NOT_OURS},
    {"minor", NOT_OURS},
    {"free_threaded", NOT_OURS},
    {"no_entry", NOT_OURS},
    {"null", NOT_OURS},
    {"no_elf", "the backend can't be loaded: %b: "},
    {"declines", "the fake backend has no wish to\n"},
    {"no_tracer", "the backend has no tracer\n"},
};
INSTANTIATE_TEST_SUITE_P(All, WrongBackend, testing::ValuesIn(WRONGS),
                         [](const auto &each) { return std::string(each.param.variant); });

TEST_F(Backend, WithoutTracebacksGivesANoopOfThem)
{
    const python &p = pythons[0];
    plugin_copy copy(p, "no_tracer");
    result r = run_beside(p, copy, "report", "local");
    EXPECT_EQ(r.exit_code, 0) << r;
    EXPECT_TRUE(r.has("tracebacks: noop=1 reason=the backend has no traceback gatherer\n")) << r;
    EXPECT_TRUE(r.has("gathered: 0\n")) << r;
}

TEST_F(Backend, ThatFailsFailsTheMakeWithItsText)
{
    const python &p = pythons[0];
    plugin_copy copy(p, "fails");
    result r = run_beside(p, copy, "report", "local");
    EXPECT_EQ(r.exit_code, 1) << r;
    EXPECT_TRUE(r.has("status == KPT_OK: somebody else has the fake hook")) << r;
    EXPECT_NE(
        r.err.find("kpytrace: make: the tracer was not made: somebody else has the fake hook\n"),
        std::string::npos)
        << r;
}

TEST(PythonProgramBackend, IsOpenedAndUsed)
{
    std::string why;
    int tried = 0;
    for (const python &p : all_pythons(&why)) {
        SCOPED_TRACE(p.program);
        environment changes;
        if (!can_host(p, &changes, &why)) continue;
        plugin_copy good(p, "good"), failing(p, "fails");
        result r = run({p.program, "-I", KPT_SOURCE_DIR "/host.py", good.path, "now"}, changes);
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.out, "entry 0\nmake 0\nnoop 0\nreason \nstop 0 -3\nstopped stop: the tracer is "
                         "stopped already\nstats 0 2 1\ndestroy 0 -4\ndetach 0\n")
            << r;
        r = run({p.program, "-I", KPT_SOURCE_DIR "/host.py", failing.path, "now"}, changes);
        EXPECT_EQ(r.out, "entry 0\nmake -5\nreason somebody else has the fake hook\ndetach 0\n")
            << r;
        tried++;
    }
    if (!tried) GTEST_SKIP() << why;
}

} // namespace
