/* elf_symbol_test.cc: lookup of symbols in loaded objects: the executable, the C library, libraries of
 * either kind of hash table opened RTLD_LOCAL, and the kernel's vdso. */
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <set>
#include <string>

#include "tests/abi/plugin_unit/private.h"

extern "C" {
/* Symbols that the executable exports, for the test below. */
__attribute__((visibility("default"))) int kpt_unit_marker(void);
__attribute__((visibility("default"))) extern int kpt_unit_data;
int kpt_unit_data = 7;
int kpt_unit_marker(void)
{
    return 4711;
}
}

namespace
{

/* Visits the object whose path ends in ENDING ("" is the executable) and stores the result. */
struct question {
    std::string ending;
    const char *symbol;
    int objects = 0;
    uintptr_t address = 0;
    int has_gnu_hash = 0;
    int has_sysv_hash = 0;
};

int look(const kpti_elf_object *object, void *ctx)
{
    auto *q = static_cast<question *>(ctx);
    std::string path = object->path;
    bool meant = q->ending.empty() ? path.empty()
                                   : path.size() >= q->ending.size() &&
                                         path.compare(path.size() - q->ending.size(),
                                                      std::string::npos, q->ending) == 0;
    if (!meant) return 0;
    q->objects++;
    q->address = kpti_elf_symbol(object, q->symbol);
    for (auto *d = static_cast<const ElfW(Dyn) *>(object->dynamic); d && d->d_tag != DT_NULL; d++) {
        q->has_gnu_hash |= d->d_tag == DT_GNU_HASH;
        q->has_sysv_hash |= d->d_tag == DT_HASH;
    }
    return 1;
}

question ask(const char *ending, const char *symbol)
{
    question q{ending, symbol};
    kpti_elf_walk(look, &q);
    EXPECT_EQ(q.objects, 1) << "no object like " << ending;
    return q;
}

uintptr_t address_of(int (*function)(void))
{
    return reinterpret_cast<uintptr_t>(function);
}

TEST(ElfSymbol, FindsWhatTheExecutableExports)
{
    EXPECT_EQ(ask("", "kpt_unit_marker").address, address_of(kpt_unit_marker));
    EXPECT_EQ(ask("", "kpt_unit_data").address, reinterpret_cast<uintptr_t>(&kpt_unit_data));
}

TEST(ElfSymbol, FindsNeitherWhatIsUndefinedNorWhatIsNowhere)
{
    ASSERT_GT(getpid(), 0); /* the executable refers to it, the C library defines it */
    EXPECT_EQ(ask("", "getpid").address, 0U);
    EXPECT_EQ(ask("", "kpt_unit_marke").address, 0U);
    EXPECT_EQ(ask("", "kpt_unit_marker2").address, 0U);
    EXPECT_EQ(ask("", "").address, 0U);
}

TEST(ElfSymbol, FindsWhatTheCLibraryExports)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(libc, nullptr) << dlerror();
    for (const char *name : {"dlopen", "getpid", "environ", "qsort"})
        EXPECT_EQ(ask("/libc.so.6", name).address, reinterpret_cast<uintptr_t>(dlsym(libc, name)))
            << name;
    EXPECT_EQ(ask("/libc.so.6", "Py_IsInitialized").address, 0U);
    dlclose(libc);
}

struct hash_style {
    const char *path;
    int gnu;
    int sysv;
};

class ElfHash : public testing::TestWithParam<hash_style>
{
};

TEST_P(ElfHash, IsEnoughByItself)
{
    const hash_style &style = GetParam();
    void *peer = dlopen(style.path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(peer, nullptr) << dlerror();
    EXPECT_EQ(dlsym(RTLD_DEFAULT, "peer_function"), nullptr) << "it is hidden from dlsym";
    for (const char *name : {"peer_function", "peer_other_function", "peer_number"}) {
        question q = ask(style.path, name);
        EXPECT_NE(q.address, 0U) << name;
        EXPECT_EQ(q.address, reinterpret_cast<uintptr_t>(dlsym(peer, name))) << name;
        EXPECT_EQ(q.has_gnu_hash, style.gnu);
        EXPECT_EQ(q.has_sysv_hash, style.sysv);
    }
    for (const char *name : {"getpid", "peer_hidden", "peer_functio", "peer_function_", ""})
        EXPECT_EQ(ask(style.path, name).address, 0U) << name;
    dlclose(peer);
}

const hash_style STYLES[] = {{KPT_PEER_GNU, 1, 0}, {KPT_PEER_SYSV, 0, 1}, {KPT_PEER_BOTH, 1, 1}};
INSTANTIATE_TEST_SUITE_P(Styles, ElfHash, testing::ValuesIn(STYLES));

TEST(ElfSymbol, FindsNothingInALibraryThatExportsNothing)
{
    for (const char *path : {KPT_PEER_EMPTY_GNU, KPT_PEER_EMPTY_SYSV}) {
        void *peer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(peer, nullptr) << dlerror();
        EXPECT_EQ(ask(path, "peer_function").address, 0U);
        EXPECT_EQ(ask(path, "getpid").address, 0U);
        dlclose(peer);
    }
}

struct vdso {
    uintptr_t base;
    bool seen;
    uintptr_t clock;
};

TEST(ElfSymbol, WalksTheVdsoWhoseAddressesAreNotRelocated)
{
    vdso v{getauxval(AT_SYSINFO_EHDR), false, 0};
    kpti_elf_walk(
        [](const kpti_elf_object *object, void *ctx) {
            auto *wanted = static_cast<vdso *>(ctx);
            EXPECT_EQ(kpti_elf_symbol(object, "Py_IsInitialized"), 0U) << object->path;
            if (object->base != wanted->base || !wanted->base) return 0;
            wanted->seen = true;
            for (const char *name : {"__kernel_clock_gettime", "__vdso_clock_gettime"})
                wanted->clock |= kpti_elf_symbol(object, name);
            return 0;
        },
        &v);
    if (!v.base) GTEST_SKIP() << "there is no vdso here, as in some emulators and containers";
    if (!v.seen) GTEST_SKIP() << "the loader does not list the vdso";
    EXPECT_GT(v.clock, v.base);
    EXPECT_LT(v.clock, v.base + 0x10000);
}

TEST(ElfWalk, VisitsEachObjectOnceAndStopsWhenTold)
{
    std::multiset<uintptr_t> seen;
    kpti_elf_walk(
        [](const kpti_elf_object *object, void *ctx) {
            static_cast<std::multiset<uintptr_t> *>(ctx)->insert(
                reinterpret_cast<uintptr_t>(object->dynamic));
            return 0;
        },
        &seen);
    EXPECT_GE(seen.size(), 3U);
    for (uintptr_t dynamic : seen)
        EXPECT_EQ(seen.count(dynamic), 1U);
    int visits = 0;
    kpti_elf_walk([](const kpti_elf_object *, void *ctx) { return ++*static_cast<int *>(ctx) / 2; },
                  &visits);
    EXPECT_EQ(visits, 2);
}

TEST(ElfSymbol, HasNothingToSayOfAnObjectWithoutTables)
{
    const ElfW(Dyn) empty[] = {{DT_NULL, {0}}};
    kpti_elf_object none = {"", 0, nullptr};
    kpti_elf_object bare = {"", 0, empty};
    EXPECT_EQ(kpti_elf_symbol(&none, "main"), 0U);
    EXPECT_EQ(kpti_elf_symbol(&bare, "main"), 0U);
}

} // namespace
