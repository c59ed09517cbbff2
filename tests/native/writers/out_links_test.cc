/* out_links_test.cc: in a folder that all users may write to, such as /tmp, another user's links and pipes
 * do not redirect an output, whatever fs.protected_symlinks is; the user's own links do, as before. Root
 * makes the links of the other user. */
#include "writers/io/output_symlinks.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_descriptor.h"
#include "tests/fixtures/scratch.h"
#include "writers/io/output_file.h"

namespace
{

constexpr uid_t STRANGER = 12345;

class OutLinks : public Scratch
{
  protected:
    void make_folder(const std::string &name, mode_t mode)
    {
        ASSERT_EQ(mkdir(path(name).c_str(), 0755), 0);
        ASSERT_EQ(chmod(path(name).c_str(), mode), 0);
    }
    void make_link(const std::string &target, const std::string &name, uid_t owner = geteuid())
    {
        ASSERT_EQ(symlink(target.c_str(), path(name).c_str()), 0);
        ASSERT_EQ(lchown(path(name).c_str(), owner, static_cast<gid_t>(-1)), 0);
    }
    int write(const std::string &name, const std::string &text)
    {
        kpti_out_file out = {};
        int error = kpti_out_open(&out, path(name).c_str());
        if (error) return error;
        kpti_out_put(&out, text.data(), text.size());
        return kpti_out_close(&out, 1);
    }
    std::string resolved(const std::string &name)
    {
        char out[PATH_MAX];
        int error = kpti_out_links_resolve(name.c_str(), out);
        return error ? strerror(error) : out;
    }
};

#define NEEDS_ROOT() \
    if (geteuid() != 0) GTEST_SKIP() << "only root can make another user's files"

TEST_F(OutLinks, AnotherUsersLinkInASharedFolderIsNotFollowed)
{
    NEEDS_ROOT();
    make_file("victim", "old");
    make_folder("shared", 01777);
    make_link(path("victim"), "shared/link", STRANGER);
    make_link("../missing", "shared/dangling", STRANGER);
    EXPECT_EQ(write("shared/link", "new"), EACCES);
    EXPECT_EQ(write("shared/dangling", "new"), EACCES);
    EXPECT_EQ(content("victim"), "old");
    EXPECT_FALSE(exists("missing"));
}

TEST_F(OutLinks, NorIsOneOnTheWay)
{
    NEEDS_ROOT();
    make_folder("home", 0755);
    make_folder("shared", 01777);
    make_link(path("home"), "shared/folder", STRANGER);
    make_link(path("shared/folder"), "own");
    EXPECT_EQ(write("shared/folder/a.json", "new"), EACCES);
    EXPECT_EQ(write("own/a.json", "new"), EACCES) << "a link of one's own leads there";
    EXPECT_EQ(write("shared/folder/../a.json", "new"), EACCES);
    EXPECT_FALSE(exists("home/a.json"));
}

TEST_F(OutLinks, NorIsAnotherUsersPipeWrittenTo)
{
    NEEDS_ROOT();
    make_folder("shared", 01777);
    ASSERT_EQ(mkfifo(path("shared/pipe").c_str(), 0666), 0);
    ASSERT_EQ(chown(path("shared/pipe").c_str(), STRANGER, STRANGER), 0);
    const int reader =
        open(path("shared/pipe").c_str(), O_RDONLY | O_NONBLOCK); /* else the mistake would hang */
    EXPECT_EQ(write("shared/pipe", "new"), EACCES);
    close(reader);
}

/* Another user may replace the pipe between the check and the opening. */
TEST_F(OutLinks, NorIsOneThatTookThePlaceOfAPipe)
{
    kpti_out_path place;
    make_file("victim", "old");
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    ASSERT_EQ(kpti_out_path_find(path("pipe").c_str(), &place), 0);
    ASSERT_EQ(place.kind, KPTI_OUT_INTO);
    ASSERT_EQ(unlink(path("pipe").c_str()), 0);
    make_link(path("victim"), "pipe");
    EXPECT_EQ(kpti_descriptor_open(place.path, place.open_flags), -1);
    EXPECT_EQ(errno, ELOOP);
}

TEST_F(OutLinks, OnesOwnAndThoseOfTheFoldersOwnerAre)
{
    make_file("file", "old");
    make_folder("shared", 01777);
    make_link(path("file"), "shared/link");
    EXPECT_EQ(write("shared/link", "new"), 0);
    EXPECT_EQ(content("file"), "new");
    NEEDS_ROOT();
    make_link(path("file"), "shared/owners", STRANGER);
    ASSERT_EQ(chown(path("shared").c_str(), STRANGER, STRANGER), 0);
    EXPECT_EQ(write("shared/owners", "newer"), 0);
    EXPECT_EQ(content("file"), "newer");
}

TEST_F(OutLinks, InOtherFoldersAllAre)
{
    NEEDS_ROOT();
    make_file("file", "old");
    make_folder("plain", 0755);
    make_folder("group", 01775);
    make_link(path("file"), "plain/link", STRANGER);
    make_link(path("file"), "group/link", STRANGER);
    EXPECT_EQ(write("plain/link", "a"), 0);
    EXPECT_EQ(write("group/link", "b"), 0);
    EXPECT_EQ(content("file"), "b");
}

TEST_F(OutLinks, FoldersAreResolvedAsByRealpath)
{
    make_folder("a", 0755);
    make_folder("a/b", 0755);
    make_file("file", "");
    make_link("b", "a/relative");
    make_link(path("a/b"), "absolute");
    make_link("loop", "loop");
    make_link("/", "root");
    make_link("../a/./relative/..", "a/up");
    const std::string names[] = {"a",          "a/",       "a//b",        "a/./b/..",
                                 "a/relative", "absolute", "absolute/..", "root",
                                 "root/tmp",   "a/up",     "a/up/b",      "loop",
                                 "none",       "none/b",   "file",        "file/x"};
    for (const std::string &name : names) {
        char expected[PATH_MAX];
        const char *found = realpath(path(name).c_str(), expected);
        const bool is_folder = found && std::filesystem::is_directory(found);
        EXPECT_EQ(resolved(path(name)), is_folder ? found
                                        : found   ? strerror(ENOTDIR)
                                                  : strerror(errno))
            << name;
    }
    EXPECT_EQ(resolved("/"), "/");
    EXPECT_EQ(resolved("/.."), "/");
    EXPECT_EQ(resolved("//tmp/.."), "/");
    EXPECT_EQ(resolved("."), std::filesystem::current_path());
    EXPECT_EQ(resolved(std::string(PATH_MAX, 'x')), strerror(ENAMETOOLONG));
    EXPECT_EQ(resolved("/proc/self/cwd"), std::filesystem::current_path());
}

} // namespace
