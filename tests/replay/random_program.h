// random_program.h: recordings of programs that nobody wrote: threads that call, recurse, yield and
// resume, raise, collect garbage; chunks that end anywhere, runs, gaps; exits and enters that are lost;
// counters that stand still, lag behind and wrap.
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <random>

#include "tests/replay/tape.h"

struct ProgramOptions {
    uint32_t threads = 3;
    uint32_t events = 400; // a thread, about
    uint32_t runs = 2;
    bool faults = true;  // what interpreters, rings and counters do
    bool damage = false; // words that make no sense at all
    bool points = false; // of the host's, numbered
};

void write_random_program(Recording *recording, uint32_t seed, ProgramOptions options);

#endif
