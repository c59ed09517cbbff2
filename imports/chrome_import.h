/* chrome_import.h: makes a .kpt file of a trace in Chrome's JSON format, of kpytrace, torch.profiler, viztracer or any
 * other tool. The text comes in pieces of any size:
 *
 *   open ──> feed, feed, … ──> finish ──> free
 *
 * Calls (X, B and E events) become calls, those of torch's operators and annotations operators, instant events marks,
 * counter events counters, and names of threads and processes tracks. Other events are counted. Memory grows with the
 * number of calls, 24 bytes each, and is bounded for any text of a given size. Text that is no JSON, or is cut off, is
 * read up to there.
 *
 * One thread at a time; no Python, no GIL. */
#ifndef KPTI_IMPORTS_CHROME_IMPORT_H
#define KPTI_IMPORTS_CHROME_IMPORT_H

#include <stdint.h>

#include "abi/kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_chrome_import kpti_chrome_import;

typedef struct kpti_chrome_import_result {
    uint64_t events; /* of all phases */
    uint64_t calls;
    uint64_t notes; /* marks and values of counters */
    uint64_t
        skipped; /* events of other phases, and those without the fields that their phase needs */
    uint64_t bytes; /* that were read */
    int is_whole;   /* 0: the text ended early, or was no JSON from `bytes` on */
    int is_trace;   /* 0: there is no list of events */
} kpti_chrome_import_result;

/* Returns NULL if there is no memory. The caller frees it. */
kpti_chrome_import *kpti_chrome_import_open(void);

/* Reads the next SIZE bytes. Returns KPT_OK; KPT_DECLINED if further text is of no use; KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_chrome_import_feed(kpti_chrome_import *in, const char *bytes, uint64_t size);

/* After the last feed, once: fills OUT. */
void kpti_chrome_import_end(kpti_chrome_import *in, kpti_chrome_import_result *out);

/* After end: writes the .kpt file PATH, with the lines INFO about the process. Returns KPT_OK, KPT_E_MEMORY, KPT_E_LIMIT,
 * or KPT_E_IO and sets *OS_ERROR; then there is no file. */
kpt_status kpti_chrome_import_write(kpti_chrome_import *in, const char *path, kpt_str info,
                                    int *os_error);

void kpti_chrome_import_free(kpti_chrome_import *in);

#ifdef __cplusplus
}
#endif
#endif
