/* gzip_test.cc: .json.gz, with its resources. */
#include "tests/fixtures/readers/inflate.h"
#include "tests/native/execution_trace/observing.h"

namespace
{

class Gzip : public Observing
{
  protected:
    json unpacked(const std::string &name)
    {
        return read_json(gunzipped(content(name)));
    }
};

TEST_F(Gzip, IsCompressedFromTheFirst)
{
    make();
    ASSERT_EQ(open("t.json.gz"), KPT_OK);
    EXPECT_EQ(unpacked("t.json.gz")["kpytrace"]["complete"].text, "false");
    ASSERT_EQ(start(), KPT_OK);
    for (int i = 0; i < 3000; i++)
        run("op", {values.integer(i)});
    ASSERT_EQ(stop(), KPT_OK);
    ASSERT_EQ(close(), KPT_OK) << error;
    expect_tree(unpacked("t.json.gz"));
    EXPECT_EQ(unpacked("t.json.gz")["nodes"].items.size(), 3002U);
    EXPECT_EQ(files(), 1U);
}

TEST_F(Gzip, KeepsItsResources)
{
    const int64_t a[] = {1, 2};
    kpt_tensor &t = values.tensor(0x1000, {2});
    t.data = a;
    t.element_bytes = sizeof *a;
    t.elements = KPT_ELEMENTS_SIGNED;
    args.data_ops = kpt_str_of("op");
    begin("t.json.gz");
    run("op", {values.of(t)});
    ASSERT_EQ(stop(), KPT_OK);
    ASSERT_EQ(close(), KPT_OK) << error;
    EXPECT_EQ(content("t_resources/nid_3_tid_0.dat").size(), sizeof a);
}

} // namespace
