/* symbolize_test.cc: tracebacks as lists of frames: the order of the three kinds, what was generated, each
 * frame once, equal tracebacks together, and no memory. */
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/native/callstacks/tables.h"

/* Functions of this program that the loader can name. */
extern "C" __attribute__((visibility("default"), noinline)) void my_PyEval_EvalFrame(void)
{
    __asm__ volatile("nop; nop; nop; nop");
}
__attribute__((visibility("default"), noinline)) void a_function_of_cpp(int)
{
    __asm__ volatile("nop; nop; nop; nop");
}
namespace InterpreterStateImpl
{
__attribute__((visibility("default"), noinline)) void run(void)
{
    __asm__ volatile("nop; nop; nop; nop");
}
} // namespace InterpreterStateImpl

namespace
{

template <typename F> uint32_t native(F *function)
{
    return place_native(reinterpret_cast<uintptr_t>(function) + 4);
}

uint32_t make_held(const std::vector<uint32_t> &locations)
{
    return stack_make(locations.data(), static_cast<uint32_t>(locations.size()));
}

struct taken {
    std::vector<std::vector<std::string>> lists;
    std::vector<kpt_symbol_span> spans;
    std::vector<uint32_t> kinds; /* of the symbols */
    std::vector<uint32_t> frames;
    uint64_t symbols = 0;
    int calls = 0;
};

kpt_status take(void *ctx, const kpt_symbols *s)
{
    auto *t = static_cast<taken *>(ctx);
    t->calls++;
    t->symbols = s->symbol_count;
    for (uint64_t i = 0; i < s->symbol_count; i++)
        t->kinds.push_back(s->symbols[i].kind);
    t->frames.assign(s->frames, s->frames + s->frame_count);
    for (uint64_t i = 0; i < s->span_count; i++) {
        std::vector<std::string> names;
        for (uint64_t k = 0; k < s->spans[i].count; k++) {
            const kpt_symbol &symbol = s->symbols[s->frames[s->spans[i].first + k]];
            names.emplace_back(symbol.name.data, symbol.name.size);
        }
        t->lists.push_back(names);
        t->spans.push_back(s->spans[i]);
    }
    return KPT_OK;
}

taken read(const std::vector<kpt_traceback> &tracebacks, kpt_generated_fn generated = nullptr,
           void *generated_ctx = nullptr)
{
    taken t;
    EXPECT_EQ(
        symbolize(tracebacks.data(), tracebacks.size(), generated, generated_ctx, take, &t, 0),
        KPT_OK);
    EXPECT_EQ(t.calls, 1);
    return t;
}

using names = std::vector<std::string>;

TEST(Symbolize, NothingIsOneEmptyCall)
{
    EXPECT_TRUE(read({}).lists.empty());
    EXPECT_EQ(read({{0, 0, 0, 0}}).lists, (std::vector<names>{{}}));
}

TEST(Symbolize, EachFrameIsThereOnceAndEqualTracebacksTogether)
{
    const uint32_t outer = place_python("outer", 2, 10);
    const uint32_t a = make_held({place_python("a", 4, 20), outer});
    const uint32_t b = make_held({place_python("b", 6, 30), outer});
    const taken t = read({{0, a, 0, 0}, {0, b, 0, 0}, {0, a, 0, 0}});
    EXPECT_EQ(t.lists, (std::vector<names>{{"a", "outer"}, {"b", "outer"}, {"a", "outer"}}));
    EXPECT_EQ(t.symbols, 3u);
    EXPECT_EQ(t.spans[0].first, t.spans[2].first);
    EXPECT_EQ(t.frames.size(), 4u);
}

TEST(Symbolize, PythonComesBeforeTheNativeFrameThatRunsIt)
{
    const uint32_t python = make_held(
        {place_python("inner", 1, 1), place_python("outer", 2, 2), place_python("last", 3, 3)});
    const uint32_t cpp = make_held({native(a_function_of_cpp), native(my_PyEval_EvalFrame),
                                    native(a_function_of_cpp), native(my_PyEval_EvalFrame)});
    EXPECT_EQ(read({{0, python, 0, cpp}}).lists[0],
              (names{"a_function_of_cpp(int)", "inner", "my_PyEval_EvalFrame",
                     "a_function_of_cpp(int)", "outer", "my_PyEval_EvalFrame", "last"}));
}

TEST(Symbolize, ScriptComesOnceBeforeItsInterpreter)
{
    const uint32_t script = make_held({place_told(KPT_SYMBOL_SCRIPT, "s1", "model.py", 5),
                                       place_told(KPT_SYMBOL_SCRIPT, "s2", "model.py", 6)});
    const uint32_t cpp = make_held({native(a_function_of_cpp), native(InterpreterStateImpl::run),
                                    native(InterpreterStateImpl::run)});
    EXPECT_EQ(read({{0, 0, script, cpp}}).lists[0],
              (names{"a_function_of_cpp(int)", "s1", "s2", "InterpreterStateImpl::run()",
                     "InterpreterStateImpl::run()"}));
    const uint32_t python = make_held({place_python("p", 1, 1)});
    EXPECT_EQ(read({{0, python, script, 0}}).lists[0], (names{"s1", "s2", "p"}));
}

void tell(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx)
{
    ++*static_cast<int *>(ctx);
    if (std::string(file.data, file.size) != "file.py" || line != 77) return;
    std::string name = "made from";
    add(add_ctx, {name.data(), name.size()}, {"user.py", 7}, 12);
    name = "xxxxxxxxx"; /* it was copied */
    add(add_ctx, {"and from", 8}, {"user.py", 7}, 13);
}

TEST(Symbolize, WhatWasGeneratedFollowsItsFrame)
{
    const uint32_t generated = place_python("kernel", 1, 77);
    const uint32_t stack = make_held({place_python("x", 1, 1), generated, place_python("y", 1, 2)});
    const uint32_t again = make_held({generated});
    int asked = 0;
    const taken t = read({{0, stack, 0, 0}, {0, again, 0, 0}}, tell, &asked);
    EXPECT_EQ(t.lists, (std::vector<names>{{"x", "kernel", "made from", "and from", "y"},
                                           {"kernel", "made from", "and from"}}));
    EXPECT_EQ(asked, 3); /* once for each place */
    EXPECT_EQ(t.kinds[2], static_cast<uint32_t>(KPT_SYMBOL_GENERATED));
}

TEST(Symbolize, ANativeFrameWithoutANameIsStillThere)
{
    const kpt_symbol symbol = place_symbol(place_native(8));
    EXPECT_EQ(std::string(symbol.name.data, symbol.name.size), "??");
    EXPECT_EQ(symbol.address, 8u);
    EXPECT_EQ(symbol.kind, static_cast<uint32_t>(KPT_SYMBOL_NATIVE));
}

kpt_status refuse(void *, const kpt_symbols *)
{
    return KPT_E_IO;
}

TEST(Symbolize, TheSinksAnswerComesBack)
{
    EXPECT_EQ(symbolize(nullptr, 0, nullptr, nullptr, refuse, nullptr, 0), KPT_E_IO);
}

TEST(Symbolize, EachMissingAllocationIsToldAndNothingLeaks)
{
    std::vector<kpt_traceback> tracebacks;
    for (uint32_t i = 0; i < 200; i++)
        tracebacks.push_back(
            {0, make_held({place_python("f", i, i), place_python("g", i, 1)}), 0, 0});
    kpt_status status = KPT_E_MEMORY;
    uint32_t allocation = 0;
    while (status == KPT_E_MEMORY) {
        taken t;
        status = symbolize(tracebacks.data(), tracebacks.size(), nullptr, nullptr, take, &t,
                           ++allocation);
        EXPECT_EQ(t.calls, status == KPT_OK);
    }
    EXPECT_EQ(status, KPT_OK);
    EXPECT_GT(allocation, 10u);
}

TEST(SymbolizePlaces, TakesPlacesOfPythonOnly)
{
    taken t;
    const uint32_t good[] = {place_python("one", 1, 1), place_python("two", 1, 1)};
    EXPECT_EQ(symbolize_places(good, 2, take, &t), KPT_OK);
    EXPECT_EQ(t.lists, (std::vector<names>{{"one"}, {"two"}}));
    for (uint32_t bad : {0u, places_end(), UINT32_MAX, place_native(64),
                         place_told(KPT_SYMBOL_SCRIPT, "s", "f", 1)})
        EXPECT_EQ(symbolize_places(&bad, 1, take, &t), KPT_E_INVALID) << bad;
    EXPECT_EQ(t.calls, 1);
}

} // namespace
