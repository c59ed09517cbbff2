/* recovery_test.cc: the journal of a killed process, complete, truncated or damaged, becomes a trace. */
#include <signal.h>
#include <sys/wait.h>

#include <random>

#include "execution_trace/journal/journal_format.h"
#include "execution_trace/output/trace_file.h"
#include "tests/native/execution_trace/observing.h"

namespace
{

class Recovery : public Observing
{
  protected:
    /* The used part of t.json.journal: the head, the stream of starts, one thread. Prepared space follows. */
    std::string journal() const
    {
        const size_t taken = 3U * 65536;
        const std::string all = content("t.json.journal");
        EXPECT_GE(all.size(), taken);
        EXPECT_EQ(all.find_first_not_of('\0', taken), std::string::npos);
        return all.substr(0, taken);
    }
    /* Kills a process with an open operator, which leaves t.json.journal. */
    void be_killed()
    {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            args.flags = KPT_OBSERVER_STACKS;
            gather_stack(3);
            begin();
            run("first", {values.of(values.tensor(0x1000, {2, 3})), values.string("text")},
                {values.list({values.real(1.5)})});
            const uint64_t failed = begin_op(op_of("failed"));
            end_op(failed, {}, "an error");
            (void)begin_op(op_of("open"));
            run("inside");
            (void)kill(getpid(), SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
    }
    kpt_status recover(const std::string &journal, const std::string &name)
    {
        kpti_error text = {""};
        if (!self) make();
        const kpt_status status =
            kpti_execution_trace.recover(self, path(journal).c_str(), path(name).c_str(), &text);
        error = text.text;
        return status;
    }
    /* Makes the trace of a journal's bytes, which is strict JSON and a tree, or fails. */
    kpt_status make_of(const std::string &bytes)
    {
        kpti_error text = {""};
        const std::string target = path("made.json");
        kpti_trace_file file = {};
        file.path = target.c_str();
        const std::vector<uint64_t> aligned = words_of(bytes);
        const kpt_status status = kpti_trace_file_from(&file, aligned.data(), bytes.size(), &text);
        if (status == KPT_OK) expect_tree(read("made.json"));
        return status;
    }
    /* A journal's words, in which the second operator's tensor is the first one's. */
    std::vector<uint64_t> with_a_reference(size_t &reference)
    {
        const kpt_tensor &t = values.tensor(0x1000, {2, 3});
        begin();
        run("first", {values.of(t)});
        run("second", {values.of(t)});
        run("third", {values.integer(1)});
        std::vector<uint64_t> words = words_of(journal());
        reference = 0;
        for (size_t i = 0; i < words.size(); i++) {
            kpt_tape_value value;
            memcpy(&value, &words[i], sizeof value);
            const bool is_one = value.kind == KPT_TAPE_SAME && !value.flags && !value.dimensions;
            if (is_one && value.size < 8192) reference = reference ? SIZE_MAX : i;
        }
        return words;
    }
    static std::vector<uint64_t> words_of(const std::string &bytes)
    {
        std::vector<uint64_t> words(bytes.size() / 8 + 1);
        memcpy(words.data(), bytes.data(), bytes.size());
        return words;
    }
};

TEST_F(Recovery, OfAKilledProcess)
{
    be_killed();
    EXPECT_EQ(read()["kpytrace"]["complete"].text, "false");
    EXPECT_EQ(read()["nodes"].items.size(), 1U);
    ASSERT_EQ(recover("t.json.journal", "t.json"), KPT_OK) << error;
    const json t = read();
    expect_tree(t);
    ASSERT_EQ(t["nodes"].items.size(), 6U);
    EXPECT_EQ(t["kpytrace"]["complete"].text, "false");
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
    EXPECT_EQ(t["kpytrace"]["stacks"].items.size(), 3U);
    EXPECT_EQ(extra_of(node_of(t, "open"), "ended_by").text, "kill");
    EXPECT_EQ(attr_of(node_of(t, "failed"), "error").text, "an error");
    EXPECT_EQ(node_of(t, "inside")["ctrl_deps"].text, node_of(t, "open")["id"].text);
    EXPECT_EQ(text_of(node_of(t, "first")["inputs"]["values"]), "[[4,5,0,6,4,\"cpu\"],\"text\"]");
    EXPECT_TRUE(exists("t.json.journal")); /* until the user removes it */
}

TEST_F(Recovery, OfWhatIsNoJournal)
{
    make_file("empty", "");
    make_file("other", std::string(100000, 'x'));
    EXPECT_EQ(recover("there is none", "t.json"), KPT_E_IO);
    EXPECT_NE(error.find("there is none"), std::string::npos);
    EXPECT_EQ(recover("empty", "t.json"), KPT_E_INVALID);
    EXPECT_EQ(recover("other", "t.json"), KPT_E_INVALID);
    EXPECT_EQ(recover("other", "t.json"), KPT_E_INVALID);
    EXPECT_FALSE(exists("t.json"));
}

TEST_F(Recovery, OfAJournalThatIsCutAnywhere)
{
    be_killed();
    const std::string whole = journal();
    for (size_t size = 0; size < whole.size(); size += size % 65536 < 2048 ? 40 : 8192) {
        const kpt_status status = make_of(whole.substr(0, size));
        EXPECT_TRUE(status == KPT_OK || (size < 256 && status == KPT_E_INVALID)) << size;
    }
}

TEST_F(Recovery, OfAJournalOfWhichAPageIsBlank)
{
    be_killed();
    const std::string whole = journal();
    const auto damaged = [this](const std::string &bytes) {
        EXPECT_EQ(make_of(bytes), KPT_OK);
        return read("made.json")["kpytrace"]["damaged"].text;
    };
    const std::string capacity(65536 * 2, '\0');
    for (const size_t page : {1U, 2U}) {
        std::string blank = whole;
        blank.replace(65536 * page, 4096, 4096, '\0');
        EXPECT_NE(damaged(blank), "0") << page; /* the texts are still there */
        blank.replace(65536 * page, 65536, 65536, '\0');
        EXPECT_EQ(damaged(blank), page == 1 ? "1" : "0"); /* a chunk follows, or it was none */
    }
    EXPECT_EQ(damaged(whole + capacity), "0");
    EXPECT_EQ(damaged(whole.substr(0, 65536 * 2) + capacity + whole.substr(65536 * 2)), "2");
}

TEST_F(Recovery, OfAJournalWithWrongBytes)
{
    be_killed();
    const std::string whole = journal();
    std::mt19937 random(1);
    for (int round = 0; round < 300; round++) {
        std::string broken = whole;
        for (int i = 0; i < 4; i++) {
            const size_t chunk = 65536 * (random() % (whole.size() / 65536));
            const size_t at = chunk + random() % 2048;
            broken[at] = static_cast<char>(random() % 3 ? random() : 0xFF);
        }
        const kpt_status status = make_of(broken);
        EXPECT_TRUE(status == KPT_OK || status == KPT_E_INVALID) << status;
    }
}

TEST_F(Recovery, OfAReferenceToATensorThatIsNoneThere)
{
    size_t reference;
    const std::vector<uint64_t> whole = with_a_reference(reference);
    ASSERT_GT(reference, 0U);
    ASSERT_LT(reference, whole.size()); /* there is just one */
    kpt_tape_value value;
    memcpy(&value, &whole[reference], sizeof value);
    const auto in_chunk = static_cast<uint32_t>(reference % (65536 / 8));
    const uint32_t wrong[] = {0,        1,    value.size + 1, value.size - 1, in_chunk,
                              8192 - 1, 8192, 8192 * 3,       UINT32_MAX,     UINT32_MAX - 8};
    for (const uint32_t place : wrong) {
        std::vector<uint64_t> words = whole;
        value.size = place;
        memcpy(&words[reference], &value, sizeof value);
        const std::string bytes(reinterpret_cast<const char *>(words.data()), words.size() * 8 - 8);
        ASSERT_EQ(make_of(bytes), KPT_OK) << place;
        const json t = read("made.json");
        EXPECT_NE(t["kpytrace"]["damaged"].text, "0") << place;
        EXPECT_EQ(node_of(t, "second").is, json::NOTHING) << place; /* dropped, and counted */
        EXPECT_EQ(text_of(node_of(t, "third")["inputs"]["values"]), "[1]") << place;
    }
}

} // namespace
