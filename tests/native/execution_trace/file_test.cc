/* file_test.cc: the file itself: when it exists, its content before it is complete, and its path. */
#include "tests/native/execution_trace/observing.h"

namespace
{

using File = Observing;

TEST_F(File, OpenReplacesWhatWasThereAndSaysThatItIsNotComplete)
{
    make_file("t.json", "something old");
    make();
    ASSERT_EQ(open("t.json"), KPT_OK);
    const json t = read();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), 1U);
    EXPECT_EQ(t["kpytrace"]["complete"].text, "false");
    EXPECT_EQ(t["kpytrace"]["journal"].text, path("t.json.journal"));
    EXPECT_TRUE(exists("t.json.journal"));
    ASSERT_EQ(close(), KPT_OK);
    EXPECT_EQ(read()["kpytrace"]["complete"].text, "true");
    EXPECT_FALSE(read()["kpytrace"].has("journal"));
    EXPECT_EQ(files(), 1U);
}

TEST_F(File, AFailedOpenSpoilsNothing)
{
    make();
    EXPECT_EQ(open("/there/is/no/such.json"), KPT_E_IO);
    EXPECT_NE(error.find("such.json"), std::string::npos) << error;
    std::filesystem::create_directory(path("folder.json"));
    EXPECT_EQ(open("folder.json"), KPT_E_IO);
    std::filesystem::create_directory(path("u.json.journal"));
    make_file("u.json.journal/in the way", "");
    EXPECT_EQ(open("u.json"), KPT_E_IO);
    EXPECT_FALSE(exists("u.json"));
    begin();
    run("op");
    expect_tree(finish());
    EXPECT_EQ(files(), 3U);
}

TEST_F(File, ADeviceIsWrittenIntoWithoutAJournal)
{
    begin("/dev/null");
    run("op");
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_OK) << error;
    EXPECT_FALSE(std::filesystem::exists("/dev/null.journal"));
    EXPECT_EQ(files(), 0U);
}

TEST_F(File, AFullDiskIsTold)
{
    begin("/dev/full");
    run("op");
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_E_IO);
    EXPECT_NE(error.find("No space left"), std::string::npos) << error;
    begin(); /* and the next one is as good as ever */
    run("op");
    expect_tree(finish());
}

TEST_F(File, OfTwoWithOneNameTheLastWins)
{
    void *other;
    kpti_error text = {""};
    begin();
    run("first");
    ASSERT_EQ(kpti_execution_trace.make(&env, &args, &other, &text), KPT_OK);
    ASSERT_EQ(kpti_execution_trace.open(other, path("t.json").c_str(), &text), KPT_OK);
    for (int i = 0; i < 10000; i++) /* in a journal that has no name any more */
        run("first");
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_OK) << error;
    expect_tree(read());
    kpti_execution_trace.destroy(other);
    EXPECT_EQ(read()["nodes"].items.size(), 1U);
}

} // namespace
