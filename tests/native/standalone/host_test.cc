/* host_test.cc: the embedded host without Python: with the plugin, which has only its no-op here,
 * and with the sample plugin, which plays a script of fourteen calls on two threads. */
#include "tests/native/standalone/standalone.h"

#include <sys/stat.h>

#include <atomic>
#include <thread>

namespace
{

TEST_F(Standalone, TheNoOpWorksAndSaysWhy)
{
    ASSERT_EQ(start(plugin), KPT_OK) << error.text;
    ASSERT_NE(kpti_session_noop_reason(session), nullptr);
    EXPECT_STREQ(kpti_session_noop_reason(session), "there is no CPython in this process");
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    ASSERT_EQ(write(path("t.json")), KPT_OK) << error.text;
    EXPECT_EQ(count.calls, 0u);
    EXPECT_EQ(calls().size(), 0u);
    EXPECT_EQ(kpti_session_close(session, &error), KPT_OK);
}

TEST_F(Standalone, ARecordingBecomesATrace)
{
    start_and_stop(sample);
    EXPECT_EQ(kpti_session_noop_reason(session), nullptr);
    ASSERT_EQ(write(path("t.json")), KPT_OK) << error.text;
    auto found = calls();
    EXPECT_EQ(found.size(), 13u) << "all but the collection";
    EXPECT_EQ(count.calls, 13u);
    EXPECT_EQ(count.threads, 2u);
    EXPECT_EQ(count.names, 7u);
    EXPECT_EQ(count.bytes, content("t.json").size());
    for (const json &call : found)
        if (call["name"].text == "main.py(20): größe") {
            EXPECT_EQ(call["dur"].text, "0.040");
            EXPECT_EQ(call["tid"].text, "101");
        }
    EXPECT_EQ(trace()["otherData"]["calls"].text, "13");
    EXPECT_NE(trace()["kpytrace"]["version"].text, "");
}

TEST_F(Standalone, ThePathChoosesTheFormat)
{
    start_and_stop(sample);
    for (const char *name : {"t.json", "t.pftrace", "t.speedscope.json", "t.collapsed"}) {
        ASSERT_EQ(write(path(name)), KPT_OK) << error.text;
        EXPECT_EQ(count.calls, 13u) << name;
        EXPECT_EQ(count.threads, 2u) << name;
        EXPECT_EQ(count.bytes, content(name).size()) << name;
    }
    EXPECT_EQ(calls().size(), 13u);
    EXPECT_EQ(content("t.pftrace")[0], '\n') << "the tag of a packet";
    EXPECT_EQ(read_json(content("t.speedscope.json"))["profiles"].items.size(), 2u);
}

TEST_F(Standalone, OptionsReachTheTracer)
{
    args.flags = KPT_TRACE_NO_C_CALLS;
    start_and_stop(sample, KPTI_SESSION_GC);
    ASSERT_EQ(write(path("t.json")), KPT_OK);
    int collections = 0;
    for (const json &call : calls()) {
        collections += call["name"].text == "Python GC";
        EXPECT_EQ(call["name"].text.find("<built-in"), std::string::npos);
    }
    EXPECT_EQ(collections, 1);
    EXPECT_EQ(count.calls, 11u);
}

TEST_F(Standalone, WritingAndCountingAgainGiveTheSame)
{
    kpti_session_count again;
    start_and_stop(sample);
    ASSERT_EQ(write(path("t.json")), KPT_OK);
    std::string first = content("t.json");
    ASSERT_EQ(write(path("t.json")), KPT_OK);
    EXPECT_EQ(content("t.json"), first);
    ASSERT_EQ(kpti_session_count_calls(session, &again, &error), KPT_OK);
    EXPECT_EQ(again.calls, count.calls);
    EXPECT_EQ(again.threads, count.threads);
    EXPECT_EQ(again.names, count.names);
    EXPECT_EQ(again.bytes, 0u);
}

TEST_F(Standalone, CountersCanBeAskedAtAnyTime)
{
    kpt_stats stats;
    ASSERT_EQ(start(sample), KPT_OK);
    ASSERT_EQ(kpti_session_stats(session, &stats, &error), KPT_OK);
    EXPECT_EQ(stats.state, static_cast<uint32_t>(KPT_STATE_RUNNING));
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    ASSERT_EQ(kpti_session_stats(session, &stats, &error), KPT_OK);
    EXPECT_EQ(stats.state, static_cast<uint32_t>(KPT_STATE_STOPPED));
}

TEST_F(Standalone, WhatIsNoPluginIsRefusedWithAText)
{
    EXPECT_EQ(start("/nowhere/libkpytrace.so"), KPT_E_INVALID);
    EXPECT_TRUE(error_has("can't be loaded")) << error.text;
    EXPECT_TRUE(error_has("/nowhere/libkpytrace.so")) << error.text;
    EXPECT_EQ(start(KPT_NO_ENTRY_PATH), KPT_E_INVALID);
    EXPECT_TRUE(error_has("is not a plugin of ABI 1")) << error.text;
    EXPECT_EQ(start(KPT_DECLINES_PATH), KPT_DECLINED);
    EXPECT_TRUE(error_has("refused this host")) << error.text;
    EXPECT_EQ(session, nullptr);
}

TEST_F(Standalone, ThePluginsRefusalKeepsItsWords)
{
    args.tool_id = 6;
    EXPECT_EQ(start(plugin), KPT_E_INVALID);
    EXPECT_TRUE(error_has("tool_id 6 is not between 0 and 5")) << error.text;
    KPT_INIT(&args);
    args.flags = 1u << 30;
    EXPECT_EQ(start(plugin), KPT_E_UNSUPPORTED);
    EXPECT_EQ(session, nullptr);
}

TEST_F(Standalone, ARunningSessionIsWrittenAsItIs)
{
    ASSERT_EQ(start(sample), KPT_OK);
    EXPECT_EQ(write(path("t.json")), KPT_OK) << error.text;
    EXPECT_EQ(calls().size(), 13u);
    EXPECT_EQ(kpti_session_count_calls(session, &count, &error), KPT_OK);
    EXPECT_EQ(count.calls, 13u);
}

TEST_F(Standalone, CallsAreRefusedInTheWrongState)
{
    kpt_stats stats;
    ASSERT_EQ(start(sample), KPT_OK);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    EXPECT_EQ(kpti_session_stop(session, &error), KPT_OK) << "it is stopped, and that is all";
    ASSERT_EQ(kpti_session_close(session, &error), KPT_OK);
    EXPECT_EQ(kpti_session_close(session, &error), KPT_OK);
    EXPECT_EQ(kpti_session_stop(session, &error), KPT_E_HANDLE);
    EXPECT_EQ(kpti_session_stats(session, &stats, &error), KPT_E_HANDLE);
    EXPECT_EQ(write(path("t.json")), KPT_E_HANDLE);
    EXPECT_TRUE(error_has("closed")) << error.text;
}

TEST_F(Standalone, AFailedWriteHasItsErrnoAndCanBeRepeated)
{
    start_and_stop(sample);
    EXPECT_EQ(write(path("none/t.json")), KPT_E_IO);
    EXPECT_EQ(error.os_error, ENOENT);
    EXPECT_EQ(write("/dev/full"), KPT_E_IO);
    EXPECT_EQ(error.os_error, ENOSPC);
    EXPECT_TRUE(error_has("No space left")) << error.text;
    EXPECT_EQ(write(path("t.json")), KPT_OK) << error.text;
    EXPECT_EQ(calls().size(), 13u);
}

/* A writer that waits for a pipe's reader is inside the session meanwhile. */
TEST_F(Standalone, ASecondCallIsToldThatTheSessionIsInUse)
{
    start_and_stop(sample);
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    kpt_status written = KPT_E_INTERNAL;
    std::thread writer([&] {
        do // the other call may be the one that is inside
            written = write(path("pipe"));
        while (written == KPT_E_BUSY);
    });
    kpt_stats stats;
    kpti_session_error other = {};
    kpt_status status = KPT_OK;
    for (int i = 0; i < 5000 && status == KPT_OK; i++) {
        status = kpti_session_stats(session, &stats, &other);
        if (status == KPT_OK) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(status, KPT_E_BUSY);
    EXPECT_EQ(kpti_session_close(session, &other), KPT_E_BUSY);
    EXPECT_NE(read_json(content("pipe"))["traceEvents"].items.size(), 0u);
    writer.join();
    EXPECT_EQ(written, KPT_OK) << error.text;
}

TEST_F(Standalone, ARunningSessionCanBeFreed)
{
    ASSERT_EQ(start(sample), KPT_OK);
    kpti_session_free(session);
    session = nullptr;
    kpti_session_free(nullptr);
    ASSERT_EQ(start(plugin), KPT_OK);
}

} // namespace
