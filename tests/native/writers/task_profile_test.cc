/* task_profile_test.cc: resumes added up by task. */
#include "writers/annotations/task_profile.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/fixtures/batches/batches.h"
#include "tests/fixtures/failing_heap.h"

namespace
{

class TaskProfile : public testing::Test
{
  protected:
    ~TaskProfile() override
    {
        kpti_task_profile_free(profile);
        kpti_notes_free(&notes);
    }
    uint32_t note(uint32_t what)
    {
        kpti_note n = {};
        n.what = what;
        return kpti_notes_add(&notes, &n);
    }
    /* A resume of TASK, with a call in it. */
    void resume(uint32_t task, int64_t begin, int64_t end)
    {
        t.enter(thread, name, begin);
        t.point(thread, task, begin);
        t.enter(thread, name, begin + 1);
        t.leave(thread, end - 1);
        t.leave(thread, end);
    }
    void open()
    {
        ASSERT_EQ(kpti_task_profile_open(&heap, &profile), KPT_OK);
        kpti_task_profile_notes(profile, &notes);
    }
    kpt_status take()
    {
        delivered = t.delivery(KPT_ORDER_THREAD);
        return kpti_task_profile_batch(profile, delivered.batch());
    }
    std::map<uint32_t, kpti_task_row> rows()
    {
        std::map<uint32_t, kpti_task_row> found;
        uint32_t count;
        const kpti_task_row *all = kpti_task_profile_rows(profile, &count);
        for (uint32_t i = 0; i < count; i++)
            if (all[i].task) {
                EXPECT_TRUE(found.emplace(all[i].task, all[i]).second) << "one row for each task";
            }
        return found;
    }

    kpti_heap heap = {};
    kpti_notes notes = {};
    tape t;
    uint32_t name = t.name("f");
    uint32_t thread = t.thread("T");
    kpti_task_profile *profile = nullptr;
    parcel delivered;
};

TEST_F(TaskProfile, AddsUpEachTasksResumes)
{
    const uint32_t one = note(KPTI_NOTE_TASK), mark = note(KPTI_NOTE_MARK),
                   two = note(KPTI_NOTE_TASK), never = note(KPTI_NOTE_TASK);
    resume(one, 100, 110);
    resume(two, 120, 150);
    resume(mark, 160, 170);
    resume(one, 200, 205);
    resume(9999, 300, 310); /* an unknown task */
    open();
    ASSERT_EQ(take(), KPT_OK);
    const auto found = rows();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found.count(never), 0u);
    EXPECT_EQ(found.at(one).resumes, 2u);
    EXPECT_EQ(found.at(one).running_ns, 15u);
    EXPECT_EQ(found.at(one).first_ns, 100);
    EXPECT_EQ(found.at(one).last_ns, 205);
    EXPECT_EQ(found.at(two).resumes, 1u);
    EXPECT_EQ(found.at(two).running_ns, 30u);
}

/* Threads are delivered one after the other, so a task's later resume may be delivered first. */
TEST_F(TaskProfile, ATaskThatChangesItsThread)
{
    const uint32_t task = note(KPTI_NOTE_TASK);
    resume(task, 500, 510);
    thread = t.thread("U");
    resume(task, 100, 120);
    open();
    ASSERT_EQ(take(), KPT_OK);
    const kpti_task_row row = rows().at(task);
    EXPECT_EQ(row.resumes, 2u);
    EXPECT_EQ(row.running_ns, 30u);
    EXPECT_EQ(row.first_ns, 100);
    EXPECT_EQ(row.last_ns, 510);
}

TEST_F(TaskProfile, OfAFlightRecorderBeginsWithTheOldestNote)
{
    for (int i = 0; i < 5000; i++)
        note(KPTI_NOTE_TASK);
    kpti_notes_keep_last(&notes, 3);
    resume(4000, 10, 20); /* which has been forgotten */
    resume(4999, 30, 40);
    open();
    ASSERT_EQ(take(), KPT_OK);
    EXPECT_EQ(rows().size(), 1u);
    EXPECT_EQ(rows().at(4999).resumes, 1u);
    uint32_t count;
    (void)kpti_task_profile_rows(profile, &count);
    EXPECT_LT(count, 1000u);
}

TEST_F(TaskProfile, RecordsOfOtherSizes)
{
    const uint32_t task = note(KPTI_NOTE_TASK);
    resume(task, 10, 20);
    open();
    parcel longer = t.delivery(KPT_ORDER_THREAD, 24);
    ASSERT_EQ(kpti_task_profile_batch(profile, longer.batch()), KPT_OK);
    EXPECT_EQ(rows().at(task).running_ns, 10u);
    kpt_batch shorter = *longer.batch();
    shorter.activity_stride = 8;
    EXPECT_EQ(kpti_task_profile_batch(profile, &shorter), KPT_E_SIZE);
    EXPECT_EQ(kpti_task_profile_batch(profile, longer.batch()), KPT_E_SIZE) << "the first failure";
}

TEST_F(TaskProfile, NoMemoryIsTheStatus)
{
    for (int i = 0; i < 300; i++) {
        const uint32_t task = note(KPTI_NOTE_TASK);
        resume(task, 100 * i, 100 * i + 50);
    }
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &failing) {
        kpt_status status = kpti_task_profile_open(&failing, &profile);
        if (status == KPT_OK) {
            kpti_task_profile_notes(profile, &notes);
            status = take();
        }
        if (status == KPT_OK) {
            EXPECT_EQ(rows().size(), 300u);
        }
        kpti_task_profile_free(profile);
        profile = nullptr;
        return status;
    });
    EXPECT_GE(failures, 4U);
}

} // namespace
