/* findings_state.h: what the analysis keeps. findings.c fills it from batches, findings_write.c and find_*.c make text of
 * it. Only they use this. */
#ifndef KPTI_WRITERS_FINDINGS_FINDINGS_STATE_H
#define KPTI_WRITERS_FINDINGS_FINDINGS_STATE_H

#include "writers/annotations/task_resumes.h"
#include "writers/findings/findings_rest.h"
#include "writers/findings/slowdown.h"
#include "writers/findings/wait_table.h"

typedef struct kpti_found_function {
    kpt_name name;
    uint32_t is_known;      /* the name was delivered */
    uint32_t kind;          /* KPTI_CLASS_* */
    uint32_t activity_kind; /* KPT_KIND_* of its calls */
    uint64_t calls;
    uint64_t own_ns;
    uint64_t
        with_c_ns; /* own time, with that of the C functions that it called, but for their waits */
    kpti_place longest; /* the call with the most own time */
    kpti_slowdown sample;
} kpti_found_function;

/* Calls at one depth that have ended, and whose caller has not. */
typedef struct kpti_found_level {
    uint64_t spent_ns;
    uint64_t c_ns;        /* the part of it that is own time of C functions, without waits */
    uint64_t heaviest_ns; /* of the longest of them */
    uint32_t
        heaviest; /* name of what it spent most time in, found by following its longest calls */
    uint32_t calls;
} kpti_found_level;

typedef struct kpti_found_thread {
    kpt_str name;
    uint64_t os_tid;
    uint32_t is_known;
} kpti_found_thread;

/* The resumes of one coroutine's tasks that took too long. */
typedef struct kpti_blocker {
    const kpti_note *task; /* of the longest */
    uint32_t count;
    uint32_t heaviest;
    uint64_t total_ns;
    kpti_place longest;
} kpti_blocker;

typedef struct kpti_collections {
    uint64_t count;
    uint64_t total_ns;
    uint64_t generation; /* of the longest */
    kpti_place longest;
} kpti_collections;

struct kpti_findings {
    kpti_heap heap;
    kpt_status status; /* the first failure */
    const kpti_notes *notes;
    kpti_found_function *functions;
    uint32_t function_capacity;
    kpti_found_thread *threads; /* by index, from first_thread on */
    uint32_t thread_capacity;
    uint32_t first_thread;
    kpti_found_level *levels;
    uint32_t level_capacity;
    kpti_resumes resumes;
    kpti_wait_table waits;
    kpti_blocker *blockers;
    uint32_t blocker_capacity;
    uint32_t blocker_count;
    kpti_u64_map blocker_of; /* by coroutine: index + 1 */
    kpti_collections collections;
    uint64_t loose_c_ns; /* of C functions that no Python function called */
    uint64_t calls;
    uint64_t c_calls;
    int64_t first_ns; /* INT64_MAX: no call yet */
    int64_t last_ns;
    /* of the current thread */
    uint32_t thread; /* its index */
    uint32_t thread_count;
    int64_t thread_first_ns;
    int64_t thread_last_ns;
    uint64_t entries; /* calls of functions of the program */
    uint64_t direct;  /* calls that these made */
};

/* Limits, which docs/report.md states. */
enum {
    KPTI_MIN_SHARE_PERMILLE = 50,  /* of the run: what takes less is not worth a finding */
    KPTI_MIN_SLOWER_PERMILLE = 20, /* of the run, by which calls became slower */
    KPTI_MIN_GC_PERMILLE = 100,    /* of the run: programs that make many objects take half of it */
    KPTI_MIN_PAUSE_PERMILLE = 20,  /* of the run, for one pause */
    KPTI_MAX_RESUME_NS = 100 * 1000 * 1000,
    KPTI_MIN_IDLE_LIFE_NS = 50 * 1000 * 1000,
    KPTI_MAX_COLLECTION_NS = 100 * 1000 * 1000,
    KPTI_MIN_COLLECTIONS_NS = 50 * 1000 * 1000,
    KPTI_MIN_LOCK_NS = 20 * 1000 * 1000,
    KPTI_MIN_SLOWER_NS = 20 * 1000 * 1000,
    KPTI_MIN_GPU_GAP_NS = 10 * 1000 * 1000
};

/* Returns how many thousandths of ALL are PART. */
static inline uint64_t kpti_permille(uint64_t part, uint64_t all)
{
    return all ? (uint64_t)((double)part * 1000.0 / (double)all) : 0;
}

static inline uint64_t kpti_found_run_ns(const kpti_findings *f)
{
    return f->calls ? (uint64_t)f->last_ns - (uint64_t)f->first_ns : 0;
}

/* For find_*.c: writes the head of a finding, up to its text, and its end with the number of places that follow. */
typedef struct kpti_finding_list {
    kpti_text_builder *out;
    const kpti_findings *of;
    uint32_t count;
} kpti_finding_list;

/* Begins a finding; the caller writes its text, as the inside of a JSON string. */
void kpti_finding_begin(kpti_finding_list *list, const char *kind, const char *title);
/* Ends the text and begins the evidence, whose members the caller writes, with commas between them. */
void kpti_finding_evidence(kpti_finding_list *list);
/* Ends the evidence and the finding, with COUNT places. */
void kpti_finding_end(kpti_finding_list *list, const kpti_place *places, uint32_t count);

/* Write a function's name for people, as the inside of a JSON string, and one number of the evidence. */
void kpti_found_put_function(kpti_text_builder *out, const kpti_findings *f, uint32_t name);
void kpti_found_put_member(kpti_text_builder *out, const char *member, uint64_t value);
/* Writes a function as a member of the evidence. */
void kpti_found_put_function_member(kpti_text_builder *out, const char *member,
                                    const kpti_findings *f, uint32_t name);

/* Return the function, or NULL if its name was not delivered. */
const kpti_found_function *kpti_found_function_of(const kpti_findings *f, uint32_t name);

/* Writes the whole object. */
kpt_status kpti_found_put(kpti_findings *f, const kpti_findings_rest *rest, kpti_text_builder *out);

/* The kinds of findings, each in the order of their weight. */
kpt_status kpti_find_missing(kpti_finding_list *list, const kpti_findings_rest *rest);
kpt_status kpti_find_blockers(kpti_finding_list *list);
kpt_status kpti_find_locks(kpti_finding_list *list);
kpt_status kpti_find_idle_threads(kpti_finding_list *list);
kpt_status kpti_find_collections(kpti_finding_list *list);
kpt_status kpti_find_slower(kpti_finding_list *list);
kpt_status kpti_find_gpu_gaps(kpti_finding_list *list, const kpti_findings_rest *rest);

#endif
