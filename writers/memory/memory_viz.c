#include "writers/memory/memory_viz.h"

#include <stdlib.h>

#include "abi/kpt_text.h"
#include "core/base/utf8.h"
#include "writers/encode/pickle.h"
#include "writers/memory/memory_survey.h"

/* Frequent words. They have the first numbers of the memo. */
enum word {
    ACTION,
    ADDR,
    SIZE,
    STREAM,
    TIME_US,
    FRAMES,
    ALLOC,
    FREE_COMPLETED,
    NAME,
    FILENAME,
    LINE,
    ADDRESS,
    REQUESTED_SIZE,
    STATE,
    ACTIVE_ALLOCATED,
    INACTIVE,
    CATEGORY,
    UNKNOWN,
    USER_METADATA,
    WORDS
};
static const char *const words[WORDS] = {
    "action",   "addr",     "size",           "stream",        "time_us",
    "frames",   "alloc",    "free_completed", "name",          "filename",
    "line",     "address",  "requested_size", "state",         "active_allocated",
    "inactive", "category", "unknown",        "user_metadata",
};

#define NONE UINT32_MAX

enum { MAX_TEXT = 256 }; /* most bytes of a text of a pool */

typedef struct writing {
    kpti_pickle pickle;
    kpti_memory_history *history;
    const kpti_memory_names *names;
    kpti_memory_survey survey;
    uint32_t *symbol_memos; /* memos of frames, by symbol */
    uint32_t *stack_memos;  /* memos of lists of frames, by node */
    uint32_t *pool_memos;   /* for each pool: memo of its category, then of its owner */
    uint32_t no_frames;     /* memo of the empty list */
} writing;

static void put_word(writing *w, enum word word)
{
    kpti_pickle_get(&w->pickle, word);
}

static void put_key(writing *w, const char *key)
{
    kpti_pickle_text(&w->pickle, kpt_str_of(key));
}

static void put_text(writing *w, const char *key, const char *text)
{
    put_key(w, key);
    kpti_pickle_text(&w->pickle, kpt_str_of(text));
}

static void put_int(writing *w, const char *key, uint64_t value)
{
    put_key(w, key);
    kpti_pickle_int(&w->pickle, value);
}

static void put_frame(writing *w, uint32_t symbol)
{
    const kpti_memory_symbol *s = &w->names->symbols[symbol];
    if (w->symbol_memos[symbol] != NONE) {
        kpti_pickle_get(&w->pickle, w->symbol_memos[symbol]);
        return;
    }
    kpti_pickle_mark(&w->pickle);
    put_word(w, NAME);
    kpti_pickle_text(&w->pickle, s->name);
    put_word(w, FILENAME);
    kpti_pickle_text(&w->pickle, s->file);
    put_word(w, LINE);
    kpti_pickle_int(&w->pickle, s->line);
    kpti_pickle_dict(&w->pickle);
    w->symbol_memos[symbol] = kpti_pickle_memoize(&w->pickle);
}

static void put_frames(writing *w, uint32_t stack)
{
    uint32_t *memo = stack ? &w->stack_memos[stack - 1] : NULL;
    uint64_t k = 0;
    if (!stack) {
        kpti_pickle_get(&w->pickle, w->no_frames);
        return;
    }
    if (*memo != NONE) {
        kpti_pickle_get(&w->pickle, *memo);
        return;
    }
    kpti_pickle_empty_list(&w->pickle);
    for (uint32_t node = stack; node; k++) {
        const kpti_memory_node *frame = kpti_memory_node_at(w->names, node);
        if (k % KPTI_PICKLE_MAX_APPENDS == 0) kpti_pickle_mark(&w->pickle);
        put_frame(w, frame->symbol);
        node = frame->parent;
        if (k % KPTI_PICKLE_MAX_APPENDS == KPTI_PICKLE_MAX_APPENDS - 1 || !node)
            kpti_pickle_appends(&w->pickle);
    }
    *memo = kpti_pickle_memoize(&w->pickle);
}

/* Call it before each item of a list. Items are appended in batches. */
static void next_item(writing *w, uint64_t *count)
{
    if (*count && *count % KPTI_PICKLE_MAX_APPENDS == 0) kpti_pickle_appends(&w->pickle);
    if (*count % KPTI_PICKLE_MAX_APPENDS == 0) kpti_pickle_mark(&w->pickle);
    ++*count;
}

static void end_items(writing *w, uint64_t count)
{
    if (count) kpti_pickle_appends(&w->pickle);
}

/* Writes a text of a pool; *MEMO is its memo. The text is from a host, and may contain any bytes. */
static void put_pool_text(writing *w, kpt_str text, uint32_t *memo)
{
    char valid[MAX_TEXT * KPTI_UTF8_MAX_GROWTH];
    const char *end;
    if (*memo != NONE) {
        kpti_pickle_get(&w->pickle, *memo);
        return;
    }
    end = kpti_utf8_copy(valid, text.data, text.size < MAX_TEXT ? text.size : MAX_TEXT);
    kpti_pickle_text(&w->pickle, (kpt_str){valid, (uint64_t)(end - valid)});
    *memo = kpti_pickle_memoize(&w->pickle);
}

/* Writes the host's report about a block. If any entry has a category, the viewer needs an entry with
 * "unknown", so all blocks of Python have that category. */
static void put_told(writing *w, const kpti_memory_entry *e)
{
    const kpti_pool_tags *pool = &w->names->pools[e->pool];
    uint32_t *memos = &w->pool_memos[(size_t)e->pool * 2];
    put_word(w, CATEGORY);
    if (pool->category.size)
        put_pool_text(w, pool->category, &memos[0]);
    else
        put_word(w, UNKNOWN);
    if (!pool->owner.size) return;
    put_word(w, USER_METADATA);
    put_pool_text(w, pool->owner, &memos[1]);
}

static void put_entry(writing *w, const kpti_memory_entry *e)
{
    const int is_alloc = (e->kind & KPTI_MEMORY_ALLOC) != 0;
    kpti_pickle_mark(&w->pickle);
    put_word(w, ACTION);
    put_word(w, is_alloc ? ALLOC : FREE_COMPLETED);
    put_word(w, ADDR);
    kpti_pickle_int(&w->pickle, e->address);
    put_word(w, SIZE);
    kpti_pickle_int(&w->pickle, e->size);
    put_word(w, STREAM);
    if (w->names->pools[e->pool].is_told)
        kpti_pickle_int(&w->pickle, w->names->pools[e->pool].stream);
    else
        kpti_pickle_none(&w->pickle);
    put_word(w, TIME_US);
    kpti_pickle_int(&w->pickle, e->time_ns > 0 ? (uint64_t)e->time_ns / 1000 : 0);
    if (is_alloc) {
        put_word(w, FRAMES);
        put_frames(w, e->stack);
        if (w->names->has_reported) put_told(w, e);
    }
    kpti_pickle_dict(&w->pickle);
}

/* Reads the history once for each device that has entries, rather than keep them all. */
static int put_trace(writing *w, uint32_t device)
{
    kpti_memory_history *h = w->history;
    kpti_memory_entry e;
    uint64_t count = 0;
    kpti_pickle_empty_list(&w->pickle);
    if (!w->survey.entries_of[device]) return 1;
    kpti_memory_history_first(h);
    while (count < w->survey.entries_of[device] && kpti_memory_history_next(h, &e)) {
        if (e.device != device) continue;
        next_item(w, &count);
        put_entry(w, &e);
    }
    end_items(w, count);
    return !h->failed;
}

static int put_traces(writing *w)
{
    uint64_t devices = 0;
    put_key(w, "device_traces");
    kpti_pickle_empty_list(&w->pickle);
    for (uint32_t device = 0; device < w->names->device_count; device++) {
        next_item(w, &devices);
        if (!put_trace(w, device)) return 0;
    }
    end_items(w, devices);
    return 1;
}

static void put_block(writing *w, uint64_t address, uint64_t size, const kpti_memory_block *block)
{
    kpti_pickle_mark(&w->pickle);
    put_word(w, ADDRESS);
    kpti_pickle_int(&w->pickle, address);
    put_word(w, SIZE);
    kpti_pickle_int(&w->pickle, size);
    put_word(w, REQUESTED_SIZE);
    kpti_pickle_int(&w->pickle, block ? size : 0);
    put_word(w, STATE);
    put_word(w, block ? ACTIVE_ALLOCATED : INACTIVE);
    put_word(w, FRAMES);
    put_frames(w, block ? block->stack : 0);
    kpti_pickle_dict(&w->pickle);
}

/* Blocks fill their segment completely: the space between live blocks is written as free blocks. */
static void put_blocks(writing *w, const kpti_memory_region *region)
{
    const kpti_memory_block *block;
    uint64_t at = region->begin;
    uint64_t count = 0;
    uint32_t index = kpti_memory_region_first(&w->survey, region);
    kpti_pickle_empty_list(&w->pickle);
    while ((block = kpti_memory_region_next(&w->survey, region, &index))) {
        const uint64_t size = kpti_memory_block_size(block);
        if (!size) continue;
        if (block->address > at) {
            next_item(w, &count);
            put_block(w, at, block->address - at, NULL);
        }
        next_item(w, &count);
        put_block(w, block->address, size, block);
        at = block->address + size;
    }
    if (at < region->end) {
        next_item(w, &count);
        put_block(w, at, region->end - at, NULL);
    }
    end_items(w, count);
}

static void put_segment(writing *w, const kpti_memory_region *region)
{
    const kpti_memory_block *block;
    uint64_t allocated = 0;
    uint32_t index = kpti_memory_region_first(&w->survey, region);
    while ((block = kpti_memory_region_next(&w->survey, region, &index)))
        allocated += kpti_memory_block_size(block);
    kpti_pickle_mark(&w->pickle);
    put_int(w, "device", region->device);
    put_word(w, ADDRESS);
    kpti_pickle_int(&w->pickle, region->begin);
    put_int(w, "total_size", region->end - region->begin);
    put_int(w, "allocated_size", allocated);
    put_int(w, "active_size", allocated);
    put_word(w, REQUESTED_SIZE);
    kpti_pickle_int(&w->pickle, allocated);
    put_word(w, STREAM);
    kpti_pickle_int(&w->pickle, 0);
    put_text(w, "segment_type", "large");
    put_key(w, "segment_pool_id");
    kpti_pickle_int(&w->pickle, 0);
    kpti_pickle_int(&w->pickle, 0);
    kpti_pickle_tuple2(&w->pickle);
    put_key(w, "is_expandable");
    kpti_pickle_bool(&w->pickle, 0);
    put_word(w, FRAMES);
    kpti_pickle_get(&w->pickle, w->no_frames);
    put_key(w, "blocks");
    put_blocks(w, region);
    kpti_pickle_dict(&w->pickle);
}

static void put_segments(writing *w)
{
    uint64_t count = 0;
    put_key(w, "segments");
    kpti_pickle_empty_list(&w->pickle);
    for (uint64_t i = 0; i < w->survey.region_count; i++) {
        next_item(w, &count);
        put_segment(w, &w->survey.regions[i]);
    }
    end_items(w, count);
}

/* Writes the data that torch's own snapshots do not have, and the frequent words, which gives them their
 * numbers. */
static void put_own(writing *w)
{
    const kpti_memory_history *h = w->history;
    uint64_t count = 0;
    put_key(w, "kpytrace");
    kpti_pickle_mark(&w->pickle);
    put_key(w, "words");
    kpti_pickle_empty_list(&w->pickle);
    kpti_pickle_mark(&w->pickle);
    for (int i = 0; i < WORDS; i++) {
        kpti_pickle_text(&w->pickle, kpt_str_of(words[i]));
        (void)kpti_pickle_memoize(&w->pickle);
    }
    kpti_pickle_appends(&w->pickle);
    put_key(w, "no_frames");
    kpti_pickle_empty_list(&w->pickle);
    w->no_frames = kpti_pickle_memoize(&w->pickle);
    put_key(w, "devices");
    kpti_pickle_empty_list(&w->pickle);
    for (uint32_t i = 0; i < w->names->device_count; i++) {
        next_item(w, &count);
        kpti_pickle_text(&w->pickle, kpt_str_of(w->names->devices[i].name));
    }
    end_items(w, count);
    put_int(w, "sample_bytes", h->sample_bytes);
    put_int(w, "entries_dropped", h->dropped);
    put_int(w, "entries_merged", h->merged);
    put_int(w, "frees_of_earlier_blocks", w->survey.unseen_frees);
    put_int(w, "peak_bytes", w->survey.peak.bytes);
    kpti_pickle_dict(&w->pickle);
}

static void put_settings(writing *w)
{
    put_key(w, "allocator_settings");
    kpti_pickle_mark(&w->pickle);
    put_text(w, "PYTORCH_CUDA_ALLOC_CONF", "");
    put_key(w, "expandable_segments");
    kpti_pickle_bool(&w->pickle, 0);
    kpti_pickle_dict(&w->pickle);
}

static int put_snapshot(writing *w)
{
    int whole;
    kpti_pickle_begin(&w->pickle);
    kpti_pickle_mark(&w->pickle);
    put_own(w);
    put_segments(w);
    whole = put_traces(w);
    put_settings(w);
    kpti_pickle_dict(&w->pickle);
    kpti_pickle_end(&w->pickle);
    return whole;
}

static uint32_t *make_memos(uint64_t count)
{
    uint32_t *memos = malloc((count + 1) * sizeof *memos);
    if (memos) memset(memos, 0xFF, count * sizeof *memos);
    return memos;
}

int kpti_memory_viz_write(kpti_memory_history *history, kpti_out_file *out)
{
    writing w = {.pickle = {out, 0}, .history = history, .names = &history->names};
    int whole = kpti_memory_survey_make(&w.survey, history);
    w.symbol_memos = make_memos(w.names->symbol_count);
    w.stack_memos = make_memos(w.names->node_count);
    w.pool_memos = make_memos(UINT64_C(2) * KPTI_MEMORY_POOL_COUNT);
    whole = whole && w.symbol_memos && w.stack_memos && w.pool_memos && put_snapshot(&w);
    free(w.symbol_memos);
    free(w.stack_memos);
    free(w.pool_memos);
    kpti_memory_survey_free(&w.survey);
    return whole;
}
