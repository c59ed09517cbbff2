/* journal_fuzz.c: bytes as chunks of a journal, of which a trace is made: what reads journals that somebody
 * left behind sees every bit pattern, and writes a file all the same.
 *
 * An input is chunks: a byte that says of which of four streams, two that say how many words are used, two how
 * many follow, and the words: records from the chunk's beginning on. Texts stand there as well. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/impl/kpti_execution_trace.h"
#include "execution_trace/journal/journal_format.h"
#include "execution_trace/output/trace_file.h"
#include "tests/native/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_CHUNKS = 4, STREAMS = 4, CHUNK_WORDS = KPTI_ET_ALIGN / KPTI_ET_WORD };

/* The observer is linked with it; nobody gathers. */
const kpti_stack_source kpti_observer_stacks;

static void take_chunk(input *in, uint64_t *words)
{
    kpti_et_chunk *chunk = (kpti_et_chunk *)words;
    uint64_t count;
    chunk->magic = KPTI_ET_CHUNK_MAGIC;
    chunk->stream = (uint32_t)take(in, 1) % STREAMS;
    chunk->words = CHUNK_WORDS;
    chunk->used = take(in, 2);
    count = take(in, 2);
    if (count > CHUNK_WORDS - KPTI_ET_CHUNK_WORDS) count = CHUNK_WORDS - KPTI_ET_CHUNK_WORDS;
    for (uint64_t i = 0; i < count && in->at < in->end; i++)
        words[KPTI_ET_CHUNK_WORDS + i] = take(in, sizeof *words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, data + size};
    uint64_t *journal = calloc(1 + MAX_CHUNKS, KPTI_ET_ALIGN);
    char path[32];
    const kpti_trace_file file = {.path = path};
    static int nowhere = -1;
    kpti_error error;
    uint64_t chunks = 0;
    if (nowhere < 0) nowhere = open("/dev/null", O_WRONLY);
    if (!journal || nowhere < 0) abort();
    /* No folder for tensors can be made there. */
    (void)snprintf(path, sizeof path, "/dev/fd/%d", nowhere);
    ((kpti_et_head *)journal)->magic = KPTI_ET_MAGIC;
    while (chunks < MAX_CHUNKS && in.at < in.end)
        take_chunk(&in, journal + ++chunks * CHUNK_WORDS);
    (void)kpti_trace_file_from(&file, journal, (1 + chunks) * KPTI_ET_ALIGN, &error);
    free(journal);
    return 0;
}
