/* resumes_test.cc: which calls are resumes of tasks, by the points that lie in them. */
#include "writers/annotations/task_resumes.h"

#include <gtest/gtest.h>

#include "tests/fixtures/batches/parcel.h"
#include "tests/fixtures/failing_heap.h"

namespace
{

class Resumes : public testing::Test
{
  protected:
    ~Resumes() override
    {
        kpti_resumes_free(&resumes);
    }
    /* Adds a point of TASK in the call CALL, which began at NS. Returns whether the point begins a resume. */
    bool point(uint32_t task, uint64_t call, int64_t ns, uint32_t thread = 0)
    {
        kpt_activity a = parcel::plain(0, call, ns, ns);
        a.kind = KPT_KIND_POINT;
        a.value0 = task;
        a.thread = thread;
        int is_new = -1;
        EXPECT_EQ(kpti_resumes_point(&resumes, &a, &is_new), KPT_OK);
        EXPECT_TRUE(is_new == 0 || is_new == 1);
        return is_new == 1;
    }
    /* Returns the task that the ending call resumed, or 0. */
    uint32_t end(uint64_t call, int64_t start_ns, int64_t end_ns, uint32_t thread = 0)
    {
        kpt_activity a = parcel::plain(call, 0, start_ns, end_ns);
        a.thread = thread;
        kpti_resume out = {};
        if (!kpti_resumes_end(&resumes, &a, &out)) return 0;
        EXPECT_EQ(out.call_id, call);
        EXPECT_EQ(out.start_ns, start_ns);
        return out.task;
    }

    kpti_resumes resumes = {};
};

TEST_F(Resumes, ACallWithAPointIsOne)
{
    EXPECT_EQ(end(1, 0, 5), 0u) << "there was no point";
    EXPECT_TRUE(point(7, 2, 10));
    EXPECT_EQ(resumes.open, 1u);
    EXPECT_EQ(end(3, 12, 14), 0u) << "a call within it";
    EXPECT_EQ(end(2, 10, 20), 7u);
    EXPECT_EQ(resumes.open, 0u);
    EXPECT_EQ(end(2, 10, 20), 0u) << "it has ended";
    EXPECT_TRUE(point(7, 4, 30)) << "the task goes on";
    EXPECT_EQ(end(4, 30, 31), 7u);
}

TEST_F(Resumes, ATaskWithinAnothersResumeEndsFirst)
{
    EXPECT_TRUE(point(1, 10, 100));
    EXPECT_TRUE(point(2, 11, 110));
    EXPECT_EQ(resumes.open, 2u);
    EXPECT_EQ(end(11, 110, 120), 2u);
    EXPECT_TRUE(point(3, 12, 130));
    EXPECT_EQ(end(12, 130, 140), 3u);
    EXPECT_EQ(end(10, 100, 150), 1u);
}

TEST_F(Resumes, OneThatIsDrivenByHandBeginsNoOther)
{
    EXPECT_TRUE(point(1, 10, 100));
    EXPECT_FALSE(point(1, 11, 110));
    EXPECT_EQ(end(11, 110, 120), 0u);
    EXPECT_TRUE(point(2, 12, 130));
    EXPECT_FALSE(point(1, 13, 140)) << "also not two levels deeper";
    EXPECT_EQ(end(13, 140, 145), 0u);
    EXPECT_EQ(end(12, 130, 150), 2u);
    EXPECT_EQ(end(10, 100, 160), 1u);
}

/* If the resume is excluded or too short, its point lies in the enclosing call. */
TEST_F(Resumes, OneThatWasNotDeliveredIsNotItsCaller)
{
    EXPECT_TRUE(point(1, 10, 105));
    EXPECT_TRUE(point(2, 10, 115)) << "the one before was no resume of this call either";
    EXPECT_EQ(resumes.open, 1u);
    EXPECT_EQ(end(10, 100, 200), 0u) << "it began before its points";
    EXPECT_EQ(resumes.open, 0u);
}

TEST_F(Resumes, ThreadsAreApart)
{
    EXPECT_TRUE(point(1, 10, 100, 40));
    EXPECT_TRUE(point(1, 20, 100, 3)) << "as after a snapshot: not the other thread's";
    EXPECT_EQ(end(10, 100, 110, 3), 0u);
    EXPECT_EQ(end(10, 100, 110, 1000), 0u) << "a thread that had none";
    EXPECT_EQ(end(10, 100, 110, 40), 1u);
    EXPECT_EQ(end(20, 100, 110, 3), 1u);
}

TEST_F(Resumes, NoMemoryIsToldAndNothingIsLost)
{
    for (uint64_t nth = 1; nth <= 12; nth++) {
        const FailingHeap failing(nth);
        kpti_resumes own = {};
        own.heap = failing.heap();
        uint32_t begun = 0;
        for (uint32_t i = 0; i < 100; i++) {
            kpt_activity a = parcel::plain(0, i + 1, i, i);
            a.value0 = i + 1;
            a.thread = i % 2;
            int is_new = 0;
            const kpt_status status = kpti_resumes_point(&own, &a, &is_new);
            EXPECT_EQ(status, is_new ? KPT_OK : KPT_E_MEMORY);
            begun += is_new ? 1 : 0;
        }
        EXPECT_EQ(own.open, begun);
        EXPECT_GE(begun, 98u);
        kpti_resumes_free(&own);
    }
}

} // namespace
