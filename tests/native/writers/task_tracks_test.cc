/* task_tracks_test.cc: which tasks have a track in a file, and the track's name. */
#include "writers/annotations/task_tracks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

class TaskTracks : public testing::Test
{
  protected:
    ~TaskTracks() override
    {
        kpti_task_tracks_free(&tracks);
    }
    kpti_task_track *resume(uint32_t task)
    {
        kpti_task_track *out = nullptr;
        EXPECT_EQ(kpti_task_tracks_resume(&tracks, &notes, task, &out), KPT_OK);
        return out;
    }

    kpti_notes notes = {}; /* only its first number is used */
    kpti_task_tracks tracks = {};
};

TEST_F(TaskTracks, ComeInTheOrderOfFirstResumes)
{
    EXPECT_EQ(resume(5)->track, 1u);
    EXPECT_EQ(resume(1)->track, 2u);
    EXPECT_EQ(resume(5)->track, 1u);
    EXPECT_EQ(resume(5)->resumes, 3u);
    EXPECT_EQ(resume(1)->resumes, 2u);
    EXPECT_EQ(tracks.count, 2u);
    EXPECT_EQ(tracks.without, 0u);
}

/* A flight recorder's numbers begin anywhere, and a table from 1 on would be as large as they are. */
TEST_F(TaskTracks, BeginWithTheOldestNote)
{
    notes.first = 4000000000U;
    EXPECT_EQ(resume(4000000010U)->track, 1u);
    EXPECT_EQ(resume(4000000000U)->track, 2u);
    EXPECT_LT(tracks.capacity, 1000u);
    notes.first = 4000000005U; /* the writer's own does not change while it writes */
    EXPECT_EQ(resume(4000000010U)->resumes, 2u);
}

TEST_F(TaskTracks, AreNotMoreThanViewersDraw)
{
    for (uint32_t task = 1; task <= KPTI_MAX_TASK_TRACKS; task++)
        ASSERT_EQ(resume(task)->track, task);
    for (int round = 0; round < 3; round++)
        for (uint32_t task = 1; task <= 7; task++)
            EXPECT_EQ(resume(KPTI_MAX_TASK_TRACKS + task), nullptr);
    EXPECT_EQ(tracks.count, uint32_t{KPTI_MAX_TASK_TRACKS});
    EXPECT_EQ(tracks.without, 7u) << "tasks, not resumes";
    EXPECT_EQ(resume(3)->resumes, 2u);
}

TEST_F(TaskTracks, WithoutMemoryAreLeftOut)
{
    auto host = std::make_unique<mock_host>();
    mock_host_init(host.get(), "test");
    host->fail_alloc_at = 1;
    tracks.heap = {host.get(), host->table.alloc, host->table.dealloc};
    kpti_task_track *out = nullptr;
    EXPECT_EQ(kpti_task_tracks_resume(&tracks, &notes, 3, &out), KPT_E_MEMORY);
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(tracks.count, 0u);
    EXPECT_EQ(resume(3)->track, 1u);
    kpti_task_tracks_free(&tracks);
    tracks = {};
    EXPECT_EQ(host->live_blocks, 0u);
    EXPECT_EQ(host->bad_frees, 0u);
}

std::string name_of(const std::string &name, const std::string &coroutine)
{
    char text[KPTI_MAX_TASK_NAME];
    kpti_note note = {};
    note.name = {name.empty() ? nullptr : name.data(), name.size()};
    note.args = {coroutine.empty() ? nullptr : coroutine.data(), coroutine.size()};
    const kpt_str made = kpti_task_name(&note, text);
    return {made.data, made.size};
}

TEST(TaskName, HasTheCoroutineBehindIt)
{
    EXPECT_EQ(name_of("Task-3", "Server.handle"), "Task-3 Server.handle");
    EXPECT_EQ(name_of("Task-3", ""), "Task-3");
    EXPECT_EQ(name_of("", "Server.handle"), "Server.handle");
    EXPECT_EQ(name_of("", ""), "");
    EXPECT_EQ(name_of("100 %s", "%n"), "100 %s %n");
}

TEST(TaskName, IsCutWhereItIsTooLong)
{
    const std::string longest(KPTI_MAX_TASK_NAME / 2 - 1, 'a');
    EXPECT_EQ(name_of(longest + "cut", std::string(5000, 'b')),
              longest + " " + std::string(longest.size(), 'b'));
    EXPECT_EQ(name_of(longest, "f"), longest + " f");
}

} // namespace
