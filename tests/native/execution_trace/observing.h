/* observing.h: an observer with its own folder, operators for it, and a reader of its file. */
#ifndef OBSERVING_H
#define OBSERVING_H

#include <deque>
#include <functional>
#include <string_view>

#include "abi/impl/kpti_execution_trace.h"
#include "abi/kpt_text.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"

/* The stacks that kpti_observer_stacks returns in these tests: stack N has the places N, N-1, … 1. */
void gather_stack(uint32_t stack);
int stacks_begun();
/* stack_was_known returns whether the last gather received the token of an open call. With MOVES, each
 * gather finds its thread at another place. */
bool stack_was_known();
void move_frame(bool moves);

/* Values of all kinds. It owns the memory that they point to. */
class Values
{
  public:
    kpt_value none() const;
    kpt_value boolean(bool truth) const;
    kpt_value integer(int64_t number) const;
    kpt_value real(double number) const;
    kpt_value string(const char *text) const;
    kpt_value of(uint32_t kind, const char *text) const;
    kpt_value list(std::vector<kpt_value> items, uint32_t kind = KPT_VALUE_LIST);
    /* A contiguous tensor of floats on the CPU; its storage has the next id. */
    kpt_tensor &tensor(uint64_t id, std::vector<int64_t> sizes);
    kpt_value of(const kpt_tensor &tensor) const;

  private:
    std::deque<std::vector<kpt_value>> lists;
    std::deque<kpt_tensor> tensors;
    std::deque<std::vector<int64_t>> numbers;
};

kpt_op op_of(const char *name);

class Observing : public Scratch
{
  protected:
    Observing();
    ~Observing() override;

    /* Makes the observer, with the current args. */
    void make();
    void begin(const std::string &name = "t.json"); /* makes, opens and starts */
    kpt_status open(const std::string &name);
    kpt_status start();
    kpt_status stop();
    kpt_status close();
    uint64_t begin_op(const kpt_op &op, const std::vector<kpt_value> &in = {});
    void end_op(uint64_t id, const std::vector<kpt_value> &out = {}, const char *error = "");
    /* Begins and ends an operator. Returns its id. */
    uint64_t run(const char *name, const std::vector<kpt_value> &in = {},
                 const std::vector<kpt_value> &out = {});
    kpt_observer_stats stats();
    /* Stops, closes and reads. */
    json finish(const std::string &name = "t.json");
    json read(const std::string &name = "t.json");
    /* Forks. The child notifies the observer, runs WORK, which must return true, and ends. */
    void in_a_child(const std::function<bool()> &work);
    /* Records a file with one operator, "own". Returns whether all calls succeeded. */
    bool record_own(const std::string &name);

    Values values;
    kpti_env env = {};
    kpt_observer_args args;
    std::string error;
    void *self = nullptr;
};

/* Return the node, or the value of its attribute; NOTHING if there is none. */
const json &node_of(const json &trace, std::string_view name);
const json &attr_of(const json &node, std::string_view name);
/* Ours. */
const json &extra_of(const json &node, std::string_view name);
/* Returns the value as JSON without spaces. */
std::string text_of(const json &value);
/* Checks that every id occurs once, the root is the last node, and every parent exists. */
void expect_tree(const json &trace);

#endif
