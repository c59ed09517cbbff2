#include "torch_calls.h"

#include <unistd.h>

/* A call that is open at the point of the delivery, for the call stacks of those in it. */
typedef struct frame {
    size_t at; /* of its name in the lane's text */
    size_t size;
} frame;

/* A thread. */
typedef struct lane {
    kpt_thread raw;
    int wanted;
    uint32_t began_before;      /* calls so far that were running already */
    uint64_t python_thread;     /* torch's number in "Python thread" */
    uint64_t collection;        /* the id of the last one, which is no call for torch … */
    uint64_t collection_parent; /* … so what it ran belongs to the call around it */
    frame *open;                /* by depth */
    size_t open_capacity;
    char *text;
    size_t text_capacity;
} lane;

struct kpti_torch_calls {
    const kpti_torch_recording *recording;
    kpti_chrome_events *events;
    uint32_t flags;
    uint32_t torch_has; /* KPTI_TORCH_HANDED_* */
    uint64_t count;
    kpti_fragments names;   /* "file(8): inner", escaped; the note is the line that stands for it */
    kpti_fragments files;   /* "file(" of Python functions; the note is their first line */
    kpti_fragments threads; /* as kpti_chrome_put wants them */
    kpti_fragments modules; /* by answer; the note is the module's number. Empty: no module */
    kpt_name *raw;          /* by index */
    uint32_t raw_capacity;
    lane *lanes; /* by index */
    uint32_t lane_count;
    char *name; /* of one call, where it is not the function's */
    char *more;
};

/* File, line and function. */
enum { NAME_ROOM = 2 * KPTI_CHROME_MOST_NAME * KPTI_JSON_MOST_GROWTH + 256 };
enum { MOST_STACK = KPTI_CHROME_MOST_MORE - 1024 };
/* Numbers come from the other side. */
enum { MOST_RECORDS = 1 << 28 };

/* --- tables ----------------------------------------------------------------------------------- */

/* Makes room for record INDEX of *ARRAY, zeroed. */
static kpt_status grow(void *array, uint32_t *capacity, uint32_t index, size_t record_bytes)
{
    uint32_t wanted = *capacity ? *capacity : 64;
    char *grown;
    if (index < *capacity) return KPT_OK;
    if (index >= MOST_RECORDS) return KPT_E_LIMIT;
    while (wanted <= index)
        wanted *= 2;
    memcpy(&grown, array, sizeof grown);
    grown = realloc(grown, wanted * record_bytes);
    if (!grown) return KPT_E_MEMORY;
    memset(grown + *capacity * record_bytes, 0, (wanted - *capacity) * record_bytes);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return KPT_OK;
}

static int is_text(kpt_str text, const char *other)
{
    return text.size == strlen(other) && memcmp(text.data, other, (size_t)text.size) == 0;
}

/* Without the first prefix that it begins with, as torch trims it. */
static kpt_str trimmed(const kpti_torch_recording *r, kpt_str path)
{
    for (uint64_t i = 0; i < r->prefix_count; i++) {
        kpt_str prefix = r->prefixes[i];
        if (path.size >= prefix.size && memcmp(path.data, prefix.data, (size_t)prefix.size) == 0)
            return (kpt_str){path.data + prefix.size, path.size - prefix.size};
    }
    return path;
}

/* For a text, and a line and some signs. */
static size_t escaped_room(kpt_str text)
{
    size_t size = text.size < KPTI_CHROME_MOST_NAME ? (size_t)text.size : KPTI_CHROME_MOST_NAME;
    return size * KPTI_JSON_MOST_GROWTH + (size_t)2 * KPTI_JSON_MOST_NUMBER;
}

/* A Python function: file, line, name. A fresh module's code has line 0. */
static kpt_status take_function(kpti_torch_calls *c, const kpt_name *name)
{
    uint32_t line = is_text(name->function, "<module>") ? 0 : name->first_line;
    kpt_status status;
    kpt_str file = trimmed(c->recording, name->file);
    char *begin = kpti_fragments_room(&c->files, escaped_room(file));
    char *at = begin;
    size_t file_size;
    if (!begin) return KPT_E_MEMORY;
    at = kpti_chrome_escape(at, file);
    *at++ = '(';
    file_size = (size_t)(at - begin);
    status = kpti_fragments_set(&c->files, name->index, begin, file_size, name->first_line);
    if (status != KPT_OK) return status;
    begin = kpti_fragments_room(&c->names, file_size + escaped_room(name->function));
    if (!begin) return KPT_E_MEMORY;
    memcpy(begin, c->files.items[name->index].text, file_size);
    at = kpti_put_u64(begin + file_size, line);
    at = kpti_chrome_escape(KPTI_PUT(at, "): "), name->function);
    return kpti_fragments_set(&c->names, name->index, begin, (size_t)(at - begin), line);
}

static kpt_status take_name(kpti_torch_calls *c, const kpt_name *name)
{
    kpt_status status = grow(&c->raw, &c->raw_capacity, name->index, sizeof *c->raw);
    if (status != KPT_OK) return status;
    c->raw[name->index] = *name;
    if (name->file.size) return take_function(c, name);
    return kpti_chrome_add_name(&c->names, name->index,
                                name->display.size ? name->display : name->function, 0);
}

static kpt_status take_thread(kpti_torch_calls *c, const kpt_thread *thread)
{
    const kpti_torch_recording *r = c->recording;
    kpt_status status = grow(&c->lanes, &c->lane_count, thread->index, sizeof *c->lanes);
    uint64_t own_tid = 0;
    lane *l;
    if (status != KPT_OK) return status;
    l = &c->lanes[thread->index];
    l->raw = *thread;
    l->wanted = r->thread_of(r->ctx, thread, &l->python_thread, &own_tid);
    return kpti_chrome_add_thread(&c->threads, thread->index, (uint64_t)getpid(),
                                  c->flags & KPTI_CALLS_OF_LIST ? own_tid : thread->os_tid);
}

/* --- names of calls --------------------------------------------------------------------------- */

/* The module that an answer stands for; empty: none. */
static kpti_fragment module_of(kpti_torch_calls *c, uint64_t answer)
{
    const kpti_fragment none = {NULL, 0, 0};
    char text[KPTI_CHROME_MOST_NAME];
    const kpti_torch_recording *r = c->recording;
    uint64_t number = 0;
    uint64_t size;
    if (!answer || answer >= KPTI_MOST_FRAGMENTS) return none;
    if (answer < c->modules.capacity && c->modules.items[answer].text)
        return c->modules.items[answer];
    size = r->name_of(r->ctx, answer, text, sizeof text, &number);
    if (size >= sizeof text) size = sizeof text - 1;
    if (kpti_chrome_add_name(&c->modules, (uint32_t)answer, (kpt_str){text, size},
                             (uint32_t)number) != KPT_OK)
        return none;
    return c->modules.items[answer];
}

/* The function's name with another line. */
static kpti_fragment with_line(kpti_torch_calls *c, kpti_fragment name, kpti_fragment file,
                               uint32_t line)
{
    char digits[KPTI_JSON_MOST_NUMBER];
    size_t skipped = file.size + (size_t)(kpti_put_u64(digits, name.note) - digits);
    char *at = c->name;
    memcpy(at, name.text, file.size);
    at = kpti_put_u64(at + file.size, line);
    memcpy(at, name.text + skipped, name.size - skipped);
    return (kpti_fragment){c->name, (uint32_t)((size_t)(at - c->name) + name.size - skipped), line};
}

typedef struct shown {
    kpti_fragment name;
    kpti_fragment module; /* empty: it is none */
} shown;

static shown show(kpti_torch_calls *c, lane *l, const kpt_activity *a)
{
    kpti_fragment name = kpti_fragments_get(&c->names, a->name, kpti_chrome_no_name);
    kpti_fragment file = kpti_fragments_get(&c->files, a->name, (kpti_fragment){NULL, 0, 0});
    uint64_t answer = a->flags & KPT_ACTIVITY_WATCHED ? a->value0 : 0;
    uint32_t line = a->line;
    int was_open = 0; /* then its line is shown also if it is the first */
    shown result = {name, {NULL, 0, 0}};
    if (a->kind != KPT_KIND_PYTHON || !file.text) return result;
    if (a->flags & KPT_ACTIVITY_BEGAN_BEFORE) {
        const kpti_torch_recording *r = c->recording;
        uint32_t then = r->open_line(r->ctx, &l->raw, &c->raw[a->name], l->began_before++);
        if (then) line = then;
        was_open = then != 0;
    }
    if (was_open || (line && line != file.note)) result.name = with_line(c, name, file, line);
    result.module = module_of(c, answer);
    if (result.module.size) result.name = result.module;
    return result;
}

/* --- arguments -------------------------------------------------------------------------------- */

/* Keeps NAME as the open call at this depth. */
static kpt_status push(lane *l, uint32_t depth, kpti_fragment name)
{
    frame before = depth && depth <= l->open_capacity ? l->open[depth - 1] : (frame){0, 0};
    frame own = {before.at + before.size, name.size};
    if (depth >= l->open_capacity) {
        size_t capacity = (size_t)depth * 2 + 64;
        frame *grown = realloc(l->open, capacity * sizeof *grown);
        if (!grown) return KPT_E_MEMORY;
        memset(grown + l->open_capacity, 0, (capacity - l->open_capacity) * sizeof *grown);
        l->open = grown;
        l->open_capacity = capacity;
    }
    if (own.at + own.size > l->text_capacity) {
        size_t capacity = (own.at + own.size) * 2;
        char *grown = realloc(l->text, capacity);
        if (!grown) return KPT_E_MEMORY;
        l->text = grown;
        l->text_capacity = capacity;
    }
    memcpy(l->text + own.at, name.text, name.size);
    l->open[depth] = own;
    return KPT_OK;
}

/* Innermost first; of a stack that is too long the outermost are left out. */
static char *put_stack(char *at, const lane *l, uint32_t depth)
{
    const char *most = at + MOST_STACK;
    at = KPTI_PUT(at, ",\"Call stack\":\"");
    for (uint32_t i = depth; i-- > 0 && (size_t)(most - at) > l->open[i].size + 2;) {
        memcpy(at, l->text + l->open[i].at, l->open[i].size);
        at += l->open[i].size;
        *at++ = ';';
    }
    *at++ = '"';
    return at;
}

static kpti_fragment arguments(kpti_torch_calls *c, const lane *l, const kpt_activity *a,
                               kpti_fragment module)
{
    char *at = c->more;
    if (c->flags & KPTI_CALLS_VERBOSE) {
        at = kpti_put_u64(KPTI_PUT(at, ",\"Python thread\":"), l->python_thread);
        if (a->depth) at = put_stack(at, l, a->depth);
    }
    if (module.size) at = kpti_put_u64(KPTI_PUT(at, ",\"Python module id\":"), module.note);
    if (a->flags & KPT_ACTIVITY_CLAMPED) at = KPTI_PUT(at, ",\"clamped\":true");
    return (kpti_fragment){c->more, (uint32_t)(at - c->more), 0};
}

/* --- calls ------------------------------------------------------------------------------------ */

/* torch has no ids for collections. */
static void put_collection(kpti_torch_calls *c, const kpt_activity *a)
{
    kpti_chrome_events *e = c->events;
    kpti_fragment thread = kpti_fragments_get(&c->threads, a->thread, kpti_chrome_no_thread);
    char *at = kpti_out_room(e->out, KPTI_CHROME_MOST_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"Python GC");
    at = kpti_fragment_put(at, thread);
    at = kpti_put_us_between(at, e->base_ns, a->start_ns);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"dur\":"), a->start_ns, a->end_ns);
    at = kpti_put_u64(KPTI_PUT(at, ",\"args\":{\"Ev Idx\":"), e->next_index++);
    kpti_out_wrote(e->out, KPTI_PUT(at, "}}"));
    c->count++;
}

static kpt_status take_collection(kpti_torch_calls *c, lane *l, const kpt_activity *a)
{
    l->collection = a->id;
    l->collection_parent = a->parent_id;
    if (c->torch_has == KPTI_TORCH_HANDED_NONE) put_collection(c, a);
    if (!(c->flags & KPTI_CALLS_VERBOSE)) return KPT_OK;
    return push(l, a->depth, (kpti_fragment){"Python GC", sizeof "Python GC" - 1, 0});
}

static kpt_status take_call(kpti_torch_calls *c, const kpt_activity *a)
{
    kpt_activity adopted;
    kpt_status status = KPT_OK;
    lane *l;
    shown call;
    if (a->thread >= c->lane_count || a->name >= c->raw_capacity) return KPT_E_INVALID;
    l = &c->lanes[a->thread];
    if (!l->wanted) return KPT_OK;
    if (a->kind == KPT_KIND_GC) return take_collection(c, l, a);
    call = show(c, l, a);
    if (c->flags & KPTI_CALLS_VERBOSE) status = push(l, a->depth, call.name);
    if (status != KPT_OK) return status;
    if (c->torch_has == KPTI_TORCH_HANDED_MARKED &&
        a->flags & (KPT_ACTIVITY_MARKED | KPT_ACTIVITY_WATCHED))
        return KPT_OK;
    if (l->collection && a->parent_id == l->collection) {
        adopted = *a;
        adopted.parent_id = l->collection_parent;
        a = &adopted;
    }
    kpti_chrome_put(c->events, a, call.name,
                    kpti_fragments_get(&c->threads, a->thread, kpti_chrome_no_thread),
                    arguments(c, l, a, call.module));
    c->count++;
    return KPT_OK;
}

static kpt_status take(void *ctx, const kpt_batch *batch)
{
    kpti_torch_calls *c = ctx;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(c, kpti_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(c, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++)
        status = take_call(c, kpti_record(batch->activities, batch->activity_stride, i));
    return status == KPT_OK && kpti_out_error(c->events->out) ? KPT_E_IO : status;
}

static void free_tables(kpti_torch_calls *c)
{
    for (uint32_t i = 0; i < c->lane_count; i++) {
        free(c->lanes[i].open);
        free(c->lanes[i].text);
    }
    free(c->lanes);
    free(c->raw);
    free(c->name);
    free(c->more);
    kpti_fragments_free(&c->names);
    kpti_fragments_free(&c->files);
    kpti_fragments_free(&c->threads);
    kpti_fragments_free(&c->modules);
}

kpt_status kpti_torch_calls_write(const kpti_torch_recording *recording, uint32_t flags,
                                  kpti_chrome_events *events, uint64_t *count)
{
    kpti_torch_calls calls;
    kpt_delivery delivery;
    kpt_status status = KPT_E_MEMORY;
    memset(&calls, 0, sizeof calls);
    calls.recording = recording;
    calls.events = events;
    calls.flags = flags;
    calls.torch_has = kpti_torch_has(recording, flags);
    calls.name = malloc(NAME_ROOM);
    calls.more = malloc(KPTI_CHROME_MOST_MORE);
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_START;
    delivery.end_ns = recording->end_ns;
    delivery.convert = recording->convert;
    delivery.convert_ctx = recording->convert_ctx;
    delivery.sink = take;
    delivery.sink_ctx = &calls;
    if (calls.name && calls.more)
        status = recording->tracer.ops->get_events(recording->tracer.self, &delivery);
    *count = calls.count;
    free_tables(&calls);
    return status;
}
