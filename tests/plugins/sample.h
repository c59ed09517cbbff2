/* sample.h: the shared declarations of the sample plugin. The sample is a second implementation of the
 * contract, complete and correct, that plays a script instead of tracing Python. Its mutants deviate in one
 * place each, named by the conformance rule that the mutant breaks. KPT_SAMPLE_MUTANT in the environment
 * selects the mutant when the sample is loaded. */
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

/* A struct that crosses the boundary, and the rules that its wrong variants break. */
typedef struct sample_layout {
    uint32_t size;
    uint32_t v1_size;
    const char *below;  /* a size below V1 is handled */
    const char *past;   /* nothing behind struct_size is touched */
    const char *larger; /* a newer peer is accepted */
} sample_layout;

/* Copies the peer's struct into LOCAL. Returns KPT_OK, KPT_E_INVALID for NULL, or KPT_E_SIZE below V1. */
kpt_status sample_read(void *local, const sample_layout *layout, const void *theirs);
/* Checks that the peer's struct can be filled. Returns the same statuses. */
kpt_status sample_check(void *theirs, const sample_layout *layout);
/* Fills the peer's struct, which was checked, and sets its struct_size to the number of bytes filled. */
void sample_write(void *theirs, const sample_layout *layout, const void *local);

/* --- objects (sample_handles.c) ---------------------------------------------------------------- */

enum {
    SAMPLE_BOND = 0,
    SAMPLE_TRACEBACKS = 4,
    SAMPLE_GPU = 5
}; /* an object's kind; the others are KPT_FACTORY_* */

struct sample_binding;

/* The head of every live object. Its fields change under the lock, or while the call is inside. */
typedef struct sample_object {
    kpt_handle handle;
    uint32_t kind;
    uint32_t state; /* by kind */
    struct sample_binding *binding;
    struct sample_object *next;
    void *extra;       /* its second block */
    const char *error; /* a literal */
    uint32_t users;    /* objects and calls that need it */
    int inside;        /* a control call is inside, on the thread inside_of */
    pthread_t inside_of;
    pthread_t maker;
} sample_object;

/* Assigns a handle to the object and adds it to the live objects; WHY is its first last_error. */
void sample_adopt(sample_object *object, uint32_t kind, struct sample_binding *binding,
                  const char *why);
/* Enters the object exclusively. Returns KPT_OK, KPT_E_HANDLE or KPT_E_BUSY. */
kpt_status sample_enter(kpt_handle handle, uint32_t kind, sample_object **out);
/* Leaves the object. Returns STATUS. */
kpt_status sample_leave(sample_object *object, kpt_status status);
/* Leaves the object and ends its handle. Returns KPT_E_STATE while the object has users. */
kpt_status sample_end(sample_object *object);

/* Uses the object beside other callers, until release. Returns NULL if the handle is dead. */
sample_object *sample_use(kpt_handle handle, uint32_t kind);
void sample_release(sample_object *object);
/* For R221 and R803: returns how many live objects of KIND this thread made for BINDING, or for all bindings if
 * BINDING is NULL. */
uint32_t sample_count_mine(const struct sample_binding *binding, uint32_t kind);
/* For R311: returns 1 if there was such an object. */
int sample_is_gone(kpt_handle handle);

/* Sets TEXT as the object's last error and returns STATUS; OBJECT is NULL for the entry. */
kpt_status sample_refuse(sample_object *object, kpt_status status, const char *text);
kpt_status sample_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed);

void sample_lock(void);
void sample_unlock(void);
void sample_watch_fork(void);

/* --- the binding of a host (sample_entry.c) ---------------------------------------------------- */

typedef struct sample_factory {
    uint64_t token; /* grows with each add; 0 if the slot is free */
    kpt_any_fn make;
    void *make_ctx;
    uint32_t kind;
    uint32_t calls; /* calls that are inside */
    int removed;
} sample_factory;

enum { SAMPLE_FACTORIES = 16 };

/* The host's allocator, or malloc. */
typedef struct sample_heap {
    void *ctx;
    void *(*alloc)(void *ctx, uint64_t size);
    void (*dealloc)(void *ctx, void *memory, uint64_t size);
} sample_heap;

typedef struct sample_binding {
    sample_object object;
    kpt_host host; /* a whole copy; its name is the binding's second block */
    sample_heap heap;
    const kpt_host *theirs; /* for R127 only: dead after the entry */
    void *kept;             /* for R314 only */
    sample_factory factories[SAMPLE_FACTORIES];
    uint64_t last_token;
    uint32_t loaded; /* for R778: tracers that were loaded, and live */
} sample_binding;

void *sample_alloc(const sample_heap *heap, uint64_t size);
void sample_free(const sample_heap *heap, void *memory, uint64_t size);
kpt_status sample_entry(const kpt_host *host, kpt_plugin_info *out);

/* --- factories (sample_make.c, sample_registry.c) ---------------------------------------------- */

/* The common head of all made structs. */
typedef struct sample_made {
    uint32_t struct_size;
    uint32_t flags;
    const void *ops;
    kpt_handle self;
} sample_made;

/* A kind of object, for its factory. */
typedef struct sample_class {
    uint32_t kind; /* KPT_FACTORY_*, SAMPLE_* */
    uint32_t flags;
    const char *why; /* its first last_error */
    sample_layout args;
    sample_layout out;
    const void *ops;
    uint32_t ops_v1_size;
    uint64_t object_bytes;
    uint64_t extra_bytes; /* size of its second block; 0 if it has none */
    kpt_status (*check)(sample_binding *binding, const void *args);
    void (*begin)(sample_object *object, const void *args); /* everything is zero before */
} sample_class;

extern const sample_class sample_tracer_product;
extern const sample_class sample_memory_product;
extern const sample_class sample_observer_product;
extern const sample_class sample_tracebacks_product;
extern const sample_class sample_gpu_product;

/* The common part of every make and destroy. */
kpt_status sample_make(const sample_class *product, void *make_ctx, const void *args, void *out);
kpt_status sample_destroy(const sample_class *product, kpt_handle self);
void *sample_make_ctx(const sample_binding *binding);

/* Calls the added factories. Returns the first result, or KPT_DECLINED. ARGS is complete and checked. */
kpt_status sample_registry_ask(sample_binding *binding, const sample_class *product,
                               const void *args, sample_made *made);
/* Returns a new object of our own, to be filled; it uses the binding. Returns NULL if there is no memory. */
sample_object *sample_make_object(sample_binding *binding, const sample_class *product);
extern const kpt_loader sample_loader;                   /* sample_loader.c */
extern const kpt_traceback_maker sample_traceback_maker; /* sample_traceback.c */
extern const kpt_gpu_maker sample_gpu_maker;             /* sample_gpu.c */
kpt_status sample_get_plugin_extension(kpt_handle self, kpt_str name, void *out);
/* The first check of every get_extension: NAME has its bytes, and OUT is not NULL. */
kpt_status sample_check_extension(sample_object *object, kpt_str name, const void *out);

/* --- the tracer (sample_tracer.c, sample_args.c, sample_attach.c, sample_script.c, sample_delivery.c, …) - */

enum {
    SAMPLE_THREADS = 2,
    SAMPLE_NAMES = 9,
    SAMPLE_CALLS = 14,
    SAMPLE_MARKED = 3,
    SAMPLE_POINTS = 8, /* points that are kept; they lie in the innermost marked call */
    SAMPLE_TEXT_BYTES = 1024,
    SAMPLE_ATTACHED = 8, /* threads that are reported to the host */
    SAMPLE_FIRST_TID = 201
};
enum { SAMPLE_STOP_TICKS = 2000, SAMPLE_STILL_OPEN = 0, SAMPLE_POINT_TICKS = 1080 };
enum { SAMPLE_POINT_NAME = SAMPLE_NAMES - 1 };

/* One call of the script. Calls are in pre-order, thread after thread. */
typedef struct sample_call {
    uint32_t thread;
    uint32_t depth;
    uint32_t name;
    uint16_t kind;
    uint16_t flags;
    uint64_t begin_ticks;
    uint64_t end_ticks; /* SAMPLE_STILL_OPEN if it ends at stop */
} sample_call;

extern const sample_call sample_script[SAMPLE_CALLS];

/* The tracer's second block: the names and threads of the script, with their own strings. */
typedef struct sample_recording {
    kpt_name names[SAMPLE_NAMES];
    kpt_thread threads[SAMPLE_THREADS];
    char text[SAMPLE_TEXT_BYTES];
} sample_recording;

void sample_record(sample_recording *recording);

/* The host's marks. */
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
    sample_marks marks;  /* guarded by the lock, since a mark may be made at any time */
    kpt_chunk_sink sink; /* its own sink; the function is NULL if it has none */
    uint32_t taken;      /* bit mask of the threads whose chunks that sink has received */
    int is_loaded;
    uint32_t loaded_calls; /* bit mask of the script's calls */
    int empty;             /* the recording was lost in a fork */
    int ended_by_fork;     /* the host has not called stop yet */
    uint32_t restarts;
    struct {
        pthread_t thread;
        int inside;              /* thread_attach */
    } attached[SAMPLE_ATTACHED]; /* guarded by the lock */
    uint32_t attached_count;
    uint64_t first_ticks;                     /* the host's clock at make, with KPT_TICKS_HOST */
    uint64_t last_ticks;                      /* the host's clock at stop */
    uint32_t deliveries[KPT_ORDER_START + 1]; /* by order, without a convert function of the host */
} sample_tracer;

kpt_status sample_check_tracer_args(sample_binding *binding, const void *args);
void sample_tracer_forked(sample_object *object);
/* Returns 1 if the tracer has this call of the script. */
int sample_recorded(const sample_tracer *tracer, const sample_call *call);
sample_marks sample_marks_now(const sample_tracer *tracer);
kpt_status sample_deliver(sample_tracer *tracer, const kpt_delivery *delivery);

/* Returns the host's clock at a tick of the script, or the tick itself if the host has no clock. */
uint64_t sample_host_ticks(const sample_tracer *tracer, uint64_t ticks);
/* Makes the calling thread a traced thread. */
void sample_attach(sample_tracer *tracer);
/* Waits until thread_attach has returned for each. */
void sample_attach_wait(const sample_tracer *tracer);

/* Deliver the script as chunks: the first function to any sink, which leaves the recording in the tracer;
 * the second to the tracer's own sink, which takes the chunks. */
kpt_status sample_hand_copy(sample_tracer *tracer, const kpt_chunk_sink *sink);
void sample_hand(sample_tracer *tracer);
extern int sample_is_handing; /* for R547 only: a tracer's own sink is running */
/* Loads such a chunk into an empty tracer. */
kpt_status sample_load_chunk(sample_tracer *tracer, const kpt_chunk *chunk);
kpt_status sample_take_sink(sample_object *object, const kpt_chunk_sink *theirs,
                            const sample_layout *layout, const char *any, kpt_chunk_sink *sink);

/* --- paths (sample_memory.c) -------------------------------------------------------------------- */

/* Checks that PATH can be the path of a file. The rules are those that wrong variants break. */
kpt_status sample_take_path(sample_object *object, kpt_str path, const char *any_path,
                            const char *makes_file);

#endif
