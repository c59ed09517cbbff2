/* load_test.cc: the plugin in a process without Python, its output, and libraries that are not plugins.
 * Most scenarios check themselves, in their own process. */
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/abi/loading/run.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

const char NO_PYTHON[] = "noop=1 reason=there is no CPython in this process\n";

TEST(WithoutPython, EveryObjectIsANoopThatKnowsWhy)
{
    result r = run_helper({KPT_PLUGIN_PATH, "report"}, {}, true);
    EXPECT_EQ(r.exit_code, 0) << r;
    for (const char *kind : {"tracer: ", "memory: ", "observer: ", "tracebacks: "})
        EXPECT_TRUE(r.has(kind + std::string(NO_PYTHON))) << r;
    EXPECT_TRUE(r.has("activities: 0\n")) << r;
    EXPECT_TRUE(r.has("log: 1 make: a no-op tracer: there is no CPython in this process\n")) << r;
}

class Scenario : public testing::TestWithParam<const char *>
{
  protected:
    /* Returns whether LeakSanitizer checks the scenario's process. In every scenario the mock host counts what
     * the plugin allocates through it. Quick runs look for other leaks where allocations fail; the report above
     * makes one object of each kind. */
    static bool finds_leaks()
    {
        return getenv("KPYTRACE_TEST_LONG") || GetParam() == std::string("failing_alloc");
    }
};

TEST_P(Scenario, GoesWell)
{
    std::string why = unfit(GetParam(), false);
    if (!why.empty()) GTEST_SKIP() << why;
    temporary_folder folder;
    std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path); /* no-ops leave no file there */
    result r = run_helper({KPT_PLUGIN_PATH, GetParam()}, {}, finds_leaks());
    EXPECT_EQ(r.exit_code, 0) << r;
    EXPECT_EQ(r.err, "");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path));
    std::filesystem::current_path(before);
}

INSTANTIATE_TEST_SUITE_P(All, Scenario,
                         testing::Values("two_hosts", "twice", "closed", "fork", "threads",
                                         "fork_threads", "failing_alloc", "states", "refusals"),
                         [](const auto &each) { return std::string(each.param); });

TEST(Output, IsEmptyUnlessAskedFor)
{
    for (const char *value : {"", "0"}) {
        result r = run_helper({KPT_PLUGIN_PATH, "silent"}, {{"KPYTRACE_VERBOSE", value}});
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.out, "") << value;
        EXPECT_EQ(r.err, "") << value;
    }
    /* Set, but to nothing: which env does and a shell's VARIABLE= too. */
    result r = run({"env", "KPYTRACE_VERBOSE=", KPT_HELPER, KPT_PLUGIN_PATH, "silent"},
                   {{"ASAN_OPTIONS", asan_options(false)}});
    if (!*KPT_EMULATOR) {
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.out + r.err, "");
    }
}

/* Checks that TEXT contains each of these, one after the other. */
void expect_in_order(const std::string &text, const std::vector<std::string> &steps)
{
    size_t from = 0;
    for (const auto &step : steps) {
        size_t at = text.find(step, from);
        ASSERT_NE(at, std::string::npos) << "no \"" << step << "\" after byte " << from << " of:\n"
                                         << text;
        from = at + step.size();
    }
}

TEST(Output, TellsEveryStepWhenAsked)
{
    for (const char *value : {"1", "yes", "2"}) {
        result r = run_helper({KPT_PLUGIN_PATH, "silent"}, {{"KPYTRACE_VERBOSE", value}});
        EXPECT_EQ(r.exit_code, 0) << r;
        EXPECT_EQ(r.out, "") << "the log is on stderr";
        expect_in_order(r.err,
                        {"kpytrace: entry: kpytrace ", "ABI 1." + std::to_string(KPT_ABI_MINOR),
                         "\"a \"small\" host\"", "kpytrace: entry: registered the tracer factory\n",
                         "kpytrace: entry: registered the memory tracer factory\n",
                         "kpytrace: entry: registered the observer factory\n",
                         "kpytrace: make: a no-op tracer: there is no CPython",
                         "kpytrace: make: a no-op memory tracer: there is no CPython",
                         "kpytrace: make: a no-op observer: there is no CPython"});
        std::istringstream lines(r.err);
        for (std::string line; std::getline(lines, line);)
            EXPECT_EQ(line.rfind("kpytrace: ", 0), 0U) << line;
    }
}

TEST(Output, TellsWhyTheEntryRefused)
{
    result r = run_helper({KPT_PLUGIN_PATH, "refusals"}, {{"KPYTRACE_VERBOSE", "1"}});
    EXPECT_EQ(r.exit_code, 0) << r;
    expect_in_order(r.err, {"kpytrace: entry: refused: the host sets flags",
                            "kpytrace: entry: refused: the host has no register_tracer\n",
                            "kpytrace: entry: refused: the host has an incomplete allocator",
                            "kpytrace: entry: refused: the host refused the tracer factory"});
}

/* The three libraries that every loader must distinguish, and one of another major version. */
class Library : public testing::Test
{
  protected:
    void SetUp() override
    {
        mock_host_init(&host, "library");
        KPT_INIT(&info);
    }
    kpt_plugin_entry_fn open(const std::string &path)
    {
        return mock_open_plugin(path.c_str(), &why);
    }
    mock_host host;
    kpt_plugin_info info;
    const char *why = "";
};

#define SKIP_WITHOUT(path) \
    if (access((path).c_str(), R_OK) != 0) GTEST_SKIP() << (path) << " is not built"

TEST_F(Library, WithoutAnEntryIsNoPlugin)
{
    const std::string path = KPT_PLUGINS_DIR "/no_entry.so";
    SKIP_WITHOUT(path);
    EXPECT_EQ(open(path), nullptr);
    EXPECT_NE(std::string(why).find(KPT_PLUGIN_ENTRY_NAME), std::string::npos) << why;
}

TEST_F(Library, OfAnotherMajorIsNoPlugin)
{
    EXPECT_EQ(open(KPT_OTHER_MAJOR), nullptr);
    EXPECT_NE(std::string(why).find(KPT_PLUGIN_ENTRY_NAME), std::string::npos) << why;
}

TEST_F(Library, ThatDoesNotExistIsNone)
{
    EXPECT_EQ(open("/no/such/plugin.so"), nullptr);
    EXPECT_NE(std::string(why).find("/no/such/plugin.so"), std::string::npos) << why;
}

TEST_F(Library, MayDecline)
{
    const std::string path = KPT_PLUGINS_DIR "/declines.so";
    SKIP_WITHOUT(path);
    kpt_plugin_entry_fn entry = open(path);
    ASSERT_NE(entry, nullptr) << why;
    EXPECT_EQ(entry(&host.table, &info), KPT_DECLINED);
    EXPECT_EQ(info.self, 0U);
    EXPECT_EQ(host.tracers_registered, 0U);
    EXPECT_EQ(host.live_blocks, 0U);
}

TEST_F(Library, MayAccept)
{
    const std::string path = KPT_PLUGINS_DIR "/sample.so";
    SKIP_WITHOUT(path);
    kpt_tracer_args args;
    kpt_tracer tracer;
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    kpt_plugin_entry_fn entry = open(path);
    ASSERT_NE(entry, nullptr) << why;
    ASSERT_EQ(entry(&host.table, &info), KPT_OK);
    EXPECT_EQ(host.tracers_registered, 1U);
    ASSERT_EQ(host.make_tracer(host.tracer_ctx, &args, &tracer), KPT_OK);
    EXPECT_EQ(tracer.ops->destroy(tracer.self), KPT_OK);
    EXPECT_EQ(info.detach(info.self), KPT_OK);
    EXPECT_EQ(host.live_blocks, 0U);
}

} // namespace
