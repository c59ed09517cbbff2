#include "tests/native/recording/random_program.h"

namespace
{

constexpr uint64_t run_ticks = 100000;
constexpr uint64_t pause_ticks = 5000;

class ProgramWriter
{
  public:
    ProgramWriter(Tape *tape, uint32_t seed, const ProgramOptions &options)
        : tape_(*tape), random_(seed), options_(options)
    {
        tape_.chunk(now_);
        write_open_stack(below(4));
    }

    void write()
    {
        for (uint32_t i = 0; i < options_.events; i++) {
            if (below(1000) < 3 && run_ + 1 < options_.runs) next_run();
            if (below(100) < 3) next_chunk();
            if (options_.damage && below(20) == 0) write_damage();
            move_clock();
            if (options_.points && below(10) == 0) tape_.mark(now(), 1 + below(1000));
            one_event();
        }
        while (!stack_.empty() && below(4)) { // some are open at the end
            move_clock();
            leave();
        }
    }

  private:
    // In an expression the generator is called once: the order of two calls is the compiler's choice.
    uint64_t any_word()
    {
        const uint64_t low = random_();
        return low | static_cast<uint64_t>(random_()) << 32;
    }

    uint32_t below(uint32_t bound)
    {
        return static_cast<uint32_t>(random_()) % bound;
    }
    bool fault(uint32_t per_mille)
    {
        return options_.faults && below(1000) < per_mille;
    }

    // Returns known names, and a few unknown ones; often the same, so that functions recurse.
    uint32_t some_function()
    {
        return fault(5) ? FUNCTIONS + below(3) : below(2) ? below(6) : below(FUNCTIONS);
    }

    void move_clock()
    {
        now_ += below(4) ? below(30) : 0;
        if (fault(2)) now_ += UINT64_C(1) << (31 + below(3));
    }

    uint64_t now()
    {
        return fault(20) ? now_ - below(50) : now_;
    }

    void one_event()
    {
        const uint32_t what = below(100);
        if (what < 45)
            call();
        else if (what < 90)
            leave();
        else if (what < 93 && fault(500))
            stack_.pop_back_if_any(); // an enter without exit
        else if (what < 96 && fault(500))
            tape_.exit(some_function(), now_); // most likely an exit without enter
        else
            collect();
    }

    void call()
    {
        const uint32_t function = some_function();
        tape_.enter(function, now());
        stack_.push(function);
        if (below(5) == 0) tape_.line(1 + below(500));
        if (below(3) == 0) tape_.caller(1 + below(500));
        if (below(20) == 0) tape_.watch(any_word(), function);
    }

    void leave()
    {
        if (stack_.empty()) return;
        tape_.exit(stack_.top(), now());
        stack_.pop_back_if_any();
    }

    void collect()
    {
        if (in_gc_ && !fault(100))
            tape_.gc_end(below(100), 7, now_);
        else
            tape_.gc_begin(below(3), now());
        in_gc_ = !in_gc_;
    }

    void write_open_stack(uint32_t count)
    {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t function = i < stack_.size() ? stack_.at(i) : some_function();
            tape_.open(function);
            if (i >= stack_.size()) stack_.push(function);
            if (below(2)) tape_.line(1 + below(500));
        }
    }

    void next_chunk()
    {
        if (fault(200))
            tape_.gap(now_, below(2));
        else
            tape_.chunk(now_);
        if (below(2)) write_open_stack(static_cast<uint32_t>(stack_.size()));
    }

    void next_run()
    {
        run_++;
        if (now_ < run_ * run_ticks) now_ = run_ * run_ticks + below(1000);
        tape_.run(run_, now_);
        if (fault(300)) tape_.head().sequence = 5;
        if (below(2)) stack_.clear();
        write_open_stack(static_cast<uint32_t>(stack_.size()) + below(3));
        in_gc_ = false;
    }

    void write_damage()
    {
        switch (below(8)) {
        case 0:
            tape_.word(any_word());
            break;
        case 1:
            tape_.head().base_ticks = random_();
            break;
        case 2:
            tape_.head().run = below(4);
            break;
        case 3:
            tape_.raw(KPTI_EVENT_EPOCH, 0, 0);
            if (below(2)) tape_.word(random_());
            break;
        default: {
            const uint32_t kind = below(16);
            tape_.raw(kind, below(8), now_);
        }
        }
    }

    struct Stack : std::vector<uint32_t> {
        void push(uint32_t function)
        {
            push_back(function);
        }
        uint32_t top() const
        {
            return back();
        }
        void pop_back_if_any()
        {
            if (!empty()) pop_back();
        }
    };

    Tape &tape_;
    std::mt19937 random_;
    ProgramOptions options_;
    Stack stack_;
    uint64_t now_ = 10;
    uint32_t run_ = 0;
    bool in_gc_ = false;
};

} // namespace

void write_random_program(Recording *recording, uint32_t seed, ProgramOptions options)
{
    recording->stop(run_ticks - pause_ticks);
    for (uint32_t run = 1; run < options.runs; run++)
        recording->add_run(run * run_ticks, (run + 1) * run_ticks - pause_ticks);
    for (uint32_t t = 0; t < options.threads; t++)
        ProgramWriter(&recording->tape(t), seed * 101 + t, options).write();
}
