// random_program.h: recordings of random programs: threads that call, recurse, yield and resume, raise,
// collect garbage; chunks that end anywhere, runs, gaps; exits and enters that are lost; counters that
// stop, lag behind and wrap.
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <random>

#include "tests/native/recording/recording_builder.h"

struct ProgramOptions {
    uint32_t threads = 3;
    uint32_t events = 400; // a thread, about
    uint32_t runs = 2;
    bool faults = true;  // faults of interpreters, rings and counters
    bool damage = false; // invalid words
    bool points = false; // numbered points of the host
};

void write_random_program(Recording *recording, uint32_t seed, ProgramOptions options);

#endif
