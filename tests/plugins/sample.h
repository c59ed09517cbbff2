/* sample.h: what the files of the sample plugin share. The sample is a second implementation of the
 * contract, complete and correct, that plays a script instead of tracing Python. Its mutants deviate
 * in one place each, named by the conformance rule that the mutant breaks. KPT_SAMPLE_MUTANT in the
 * environment selects the mutant when the sample is loaded. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <pthread.h>

#include "abi/kpt.h"

/* The rule that this mutant breaks, or "" for the correct sample. Set once, when the sample is loaded
 * (sample_mutant.c). */
extern const char *sample_mutant;

static inline int wrong(const char *rule)
{
    return rule && strcmp(sample_mutant, rule) == 0;
}

/* --- the size rule (sample_layout.c) ----------------------------------------------------------- */

/* A struct that crosses the boundary, and which rules its wrong variants break. */
typedef struct sample_layout {
    uint32_t size;
    uint32_t v1_size;
    const char *below;  /* a size below V1 does no harm */
    const char *past;   /* nothing behind struct_size is touched */
    const char *larger; /* a newer peer is welcome */
} sample_layout;

/* Copies their struct into LOCAL: KPT_OK, KPT_E_INVALID for NULL, KPT_E_SIZE below V1. */
kpt_status sample_read(void *local, const sample_layout *layout, const void *theirs);
/* Whether their struct can be filled: the same answers. */
kpt_status sample_check(void *theirs, const sample_layout *layout);
/* Fills their struct, which was checked, and tells there how much was filled. */
void sample_write(void *theirs, const sample_layout *layout, const void *local);

/* --- objects (sample_handles.c) ---------------------------------------------------------------- */

enum {
    SAMPLE_BOND = 0,
    SAMPLE_TRACEBACKS = 4,
    SAMPLE_GPU = 5
}; /* an object's kind; the others are KPT_FACTORY_* */

struct sample_bond;

/* The head of every live object. Its fields change under the lock, or while the call is inside. */
typedef struct sample_object {
    kpt_handle handle;
    uint32_t kind;
    uint32_t state; /* by kind */
    struct sample_bond *bond;
    struct sample_object *next;
    void *extra;       /* its second block */
    const char *error; /* a literal */
    uint32_t users;    /* objects and calls that need it */
    int inside;        /* a control call is, on the thread inside_of */
    pthread_t inside_of;
    pthread_t maker;
} sample_object;

/* Gives the object a handle and puts it among the live ones; WHY is its first last_error. */
void sample_adopt(sample_object *object, uint32_t kind, struct sample_bond *bond, const char *why);
/* Enters the object alone: KPT_OK, KPT_E_HANDLE or KPT_E_BUSY. */
kpt_status sample_enter(kpt_handle handle, uint32_t kind, sample_object **out);
/* Leaves it, and returns STATUS. */
kpt_status sample_leave(sample_object *object, kpt_status status);
/* Leaves it for good: its handle is dead. KPT_E_STATE while it has users. */
kpt_status sample_end(sample_object *object);

/* Uses the object beside other callers; NULL if there is none. release ends that. */
sample_object *sample_use(kpt_handle handle, uint32_t kind);
void sample_release(sample_object *object);
/* For R221 and R803: how many live objects of KIND this thread made for BOND; NULL: for anybody. */
uint32_t sample_count_mine(const struct sample_bond *bond, uint32_t kind);
/* For R311: whether there was such an object. */
int sample_is_gone(kpt_handle handle);

/* Leaves TEXT as the object's last error and returns STATUS; NULL is the entry. */
kpt_status sample_refuse(sample_object *object, kpt_status status, const char *text);
kpt_status sample_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed);

void sample_lock(void);
void sample_unlock(void);
void sample_watch_fork(void);

/* --- the bond with a host (sample_entry.c) ----------------------------------------------------- */

typedef struct sample_factory {
    uint64_t token; /* grows with each add; 0: a free place */
    kpt_any_fn make;
    void *make_ctx;
    uint32_t kind;
    uint32_t calls; /* that are inside */
    int removed;
} sample_factory;

enum { SAMPLE_FACTORIES = 16 };

/* The host's allocator, or malloc. */
typedef struct sample_heap {
    void *ctx;
    void *(*alloc)(void *ctx, uint64_t size);
    void (*dealloc)(void *ctx, void *memory, uint64_t size);
} sample_heap;

typedef struct sample_bond {
    sample_object object;
    kpt_host host; /* a whole copy; its name is the bond's second block */
    sample_heap heap;
    const kpt_host *theirs; /* for R127 only: dead after the entry */
    void *kept;             /* for R314 only */
    sample_factory factories[SAMPLE_FACTORIES];
    uint64_t last_token;
    uint32_t loaded; /* for R778: tracers that were loaded, and live */
} sample_bond;

void *sample_alloc(const sample_heap *heap, uint64_t size);
void sample_free(const sample_heap *heap, void *memory, uint64_t size);
kpt_status sample_entry(const kpt_host *host, kpt_plugin_info *out);

/* --- factories (sample_make.c, sample_registry.c) ---------------------------------------------- */

/* What all made structs look like. */
typedef struct sample_made {
    uint32_t struct_size;
    uint32_t flags;
    const void *ops;
    kpt_handle self;
} sample_made;

/* A kind of object, as its factory sees it. */
typedef struct sample_product {
    uint32_t kind; /* KPT_FACTORY_*, SAMPLE_* */
    uint32_t flags;
    const char *why; /* its first last_error */
    sample_layout args;
    sample_layout out;
    const void *ops;
    uint32_t ops_v1_size;
    uint64_t object_bytes;
    uint64_t extra_bytes; /* of its second block; 0: it has none */
    kpt_status (*check)(sample_bond *bond, const void *args);
    void (*begin)(sample_object *object, const void *args); /* everything is zero before */
} sample_product;

extern const sample_product sample_tracer_product;
extern const sample_product sample_memory_product;
extern const sample_product sample_observer_product;
extern const sample_product sample_tracebacks_product;
extern const sample_product sample_gpu_product;

/* The body of every make and destroy. */
kpt_status sample_make(const sample_product *product, void *make_ctx, const void *args, void *out);
kpt_status sample_destroy(const sample_product *product, kpt_handle self);
void *sample_make_ctx(const sample_bond *bond);

/* Asks the added factories: their answer, or KPT_DECLINED. ARGS is whole and checked. */
kpt_status sample_registry_ask(sample_bond *bond, const sample_product *product, const void *args,
                               sample_made *made);
/* A made object of our own, to be filled; it uses the bond. NULL: no memory. */
sample_object *sample_make_object(sample_bond *bond, const sample_product *product);
extern const kpt_loader sample_loader;                   /* sample_loader.c */
extern const kpt_traceback_maker sample_traceback_maker; /* sample_traceback.c */
extern const kpt_gpu_maker sample_gpu_maker;             /* sample_gpu.c */
kpt_status sample_get_plugin_extension(kpt_handle self, kpt_str name, void *out);
/* What every get_extension asks first: has NAME its bytes, and is there an OUT? */
kpt_status sample_check_extension(sample_object *object, kpt_str name, const void *out);

/* --- the tracer (sample_tracer.c, sample_args.c, sample_attach.c, sample_script.c, sample_delivery.c, …) - */

enum {
    SAMPLE_THREADS = 2,
    SAMPLE_NAMES = 9,
    SAMPLE_CALLS = 14,
    SAMPLE_MARKED = 3,
    SAMPLE_POINTS = 8, /* that are kept; they lie in the innermost marked call */
    SAMPLE_TEXT_BYTES = 1024,
    SAMPLE_ATTACHED = 8, /* threads that the host hears of */
    SAMPLE_FIRST_TID = 201
};
enum { SAMPLE_STOP_TICKS = 2000, SAMPLE_STILL_OPEN = 0, SAMPLE_POINT_TICKS = 1080 };
enum { SAMPLE_POINT_NAME = SAMPLE_NAMES - 1 };

/* One call of the script. Calls stand in pre-order, thread after thread. */
typedef struct sample_call {
    uint32_t thread;
    uint32_t depth;
    uint32_t name;
    uint16_t kind;
    uint16_t flags;
    uint64_t begin_ticks;
    uint64_t end_ticks; /* SAMPLE_STILL_OPEN: at stop */
} sample_call;

extern const sample_call sample_script[SAMPLE_CALLS];

/* The tracer's second block: the names and threads of the script, with strings of its own. */
typedef struct sample_recording {
    kpt_name names[SAMPLE_NAMES];
    kpt_thread threads[SAMPLE_THREADS];
    char text[SAMPLE_TEXT_BYTES];
} sample_recording;

void sample_record(sample_recording *recording);

/* What the host has marked. */
typedef struct sample_marks {
    int marked;
    uint32_t point_count;
    uint64_t points[SAMPLE_POINTS]; /* their numbers */
} sample_marks;

typedef struct sample_tracer {
    sample_object object; /* its extra is the sample_recording */
    uint32_t flags;       /* KPT_TRACE_* */
    int gc_asked;
    int gc_recorded;
    sample_marks marks;  /* under the lock: marks come at any time */
    kpt_chunk_sink sink; /* its own; no function: it has none */
    uint32_t taken;      /* threads, a bit each, whose chunks that sink has */
    int is_loaded;
    uint32_t loaded_calls; /* of the script, a bit each */
    int empty;             /* the recording was lost in a fork */
    int ended_by_fork;     /* the first stop is still to come */
    uint32_t restarts;
    struct {
        pthread_t thread;
        int inside;              /* thread_attach */
    } attached[SAMPLE_ATTACHED]; /* under the lock */
    uint32_t attached_count;
    uint64_t first_ticks; /* of the host's clock, with KPT_TICKS_HOST: when it was made … */
    uint64_t last_ticks;  /* … and stopped */
    uint32_t deliveries[KPT_ORDER_START + 1]; /* by order, without a convert of the host's */
} sample_tracer;

kpt_status sample_check_tracer_args(sample_bond *bond, const void *args);
void sample_tracer_forked(sample_object *object);
/* Whether the tracer has this call of the script. */
int sample_recorded(const sample_tracer *tracer, const sample_call *call);
sample_marks sample_marks_now(const sample_tracer *tracer);
kpt_status sample_deliver(sample_tracer *tracer, const kpt_delivery *delivery);

/* What the host's clock showed at a tick of the script; the tick itself, if it has none. */
uint64_t sample_host_ticks(const sample_tracer *tracer, uint64_t ticks);
/* The calling thread is one of those that are traced. */
void sample_attach(sample_tracer *tracer);
/* Waits until the host has heard of each. */
void sample_attach_wait(const sample_tracer *tracer);

/* The script as chunks. To another sink, which leaves all here; to its own, which takes what it takes. */
kpt_status sample_hand_copy(sample_tracer *tracer, const kpt_chunk_sink *sink);
void sample_hand(sample_tracer *tracer);
extern int sample_is_handing; /* for R547 only: a tracer's own sink is at work */
/* Takes a chunk of those into a tracer that has nothing yet. */
kpt_status sample_load_chunk(sample_tracer *tracer, const kpt_chunk *chunk);
kpt_status sample_take_sink(sample_object *object, const kpt_chunk_sink *theirs,
                            const sample_layout *layout, const char *any, kpt_chunk_sink *sink);

/* --- paths (sample_memory.c) -------------------------------------------------------------------- */

/* Whether PATH can be a file's; the rules are those that wrong variants break. */
kpt_status sample_take_path(sample_object *object, kpt_str path, const char *any_path,
                            const char *makes_file);

#endif
