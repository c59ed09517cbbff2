/* sample_stacks.c: the tree of stacks and its code locations (places), one for the process. A stack is a
 * place and the stack that it was called from, so two stacks with the same outer frames share them.
 *
 *   refs = tracebacks that end here + stacks that were called from here
 *   a stack that is taken is dead  <=>  its refs are 0
 *
 * A place is never freed. All of it is guarded by the lock of the objects. */
#include <stdlib.h>

#include "tests/plugins/sample_traceback.h"

typedef struct stack {
    uint32_t place; /* 0 if the slot is free */
    uint32_t parent;
    uint32_t refs;
} stack;

static kpt_symbol places[SAMPLE_PLACES];
static uint32_t place_count;
static stack stacks[SAMPLE_STACKS + 1]; /* by number; 0 is the empty one */
static uint32_t highest;                /* highest index that was ever used */

static int same_text(kpt_str a, kpt_str b)
{
    return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

static int copy_text(kpt_str *text)
{
    char *copy = malloc(text->size + 1);
    if (copy && text->size) memcpy(copy, text->data, text->size);
    text->data = copy;
    return copy != NULL;
}

uint32_t sample_place_locked(const kpt_symbol *symbol)
{
    kpt_symbol copy = *symbol;
    for (uint32_t i = 0; i < place_count; i++) {
        const kpt_symbol *p = &places[i];
        if (p->kind == symbol->kind && p->line == symbol->line &&
            same_text(p->name, symbol->name) && same_text(p->file, symbol->file))
            return i + 1;
    }
    if (place_count == SAMPLE_PLACES || !copy_text(&copy.name)) return 0;
    if (!copy_text(&copy.file)) {
        free((void *)(uintptr_t)copy.name.data);
        return 0;
    }
    copy.qualname = copy.name;
    places[place_count] = copy;
    return ++place_count;
}

const kpt_symbol *sample_symbol_locked(uint32_t place)
{
    return place && place <= place_count ? &places[place - 1] : NULL;
}

static uint32_t call_locked(uint32_t parent, uint32_t place)
{
    uint32_t unused = 0;
    for (uint32_t i = 1; i <= highest; i++) {
        if (stacks[i].place == place && stacks[i].parent == parent) return i;
        if (!stacks[i].place) unused = i;
    }
    if (!unused && highest < SAMPLE_STACKS) unused = ++highest;
    if (!unused) return 0;
    stacks[unused] = (stack){place, parent, 0};
    stacks[parent].refs++;
    return unused;
}

uint32_t sample_stack_locked(const uint32_t *given, uint32_t count)
{
    uint32_t at = 0;
    for (uint32_t i = count; i > 0; i--) {
        at = call_locked(at, given[i - 1]);
        if (!at) return 0; /* the stacks added so far are dead */
    }
    sample_retain_stack_locked(at);
    return at;
}

void sample_retain_stack_locked(uint32_t at)
{
    if (at) stacks[at].refs++;
}

void sample_release_stack_locked(uint32_t at)
{
    if (at && stacks[at].refs) stacks[at].refs--;
}

uint32_t sample_unwind_locked(uint32_t at, uint32_t given[SAMPLE_DEPTH])
{
    uint32_t count = 0;
    for (; at && count < SAMPLE_DEPTH; at = stacks[at].parent)
        given[count++] = stacks[at].place;
    return count;
}

static uint64_t count_dead(void)
{
    uint64_t dead = 0;
    for (uint32_t i = 1; i <= highest; i++)
        dead += stacks[i].place && !stacks[i].refs;
    return dead;
}

uint64_t sample_free_stacks_locked(uint64_t most)
{
    uint64_t freed = 0;
    uint64_t before;
    do {
        before = freed;
        for (uint32_t i = 1; i <= highest && (!most || freed < most); i++) {
            if (!stacks[i].place || stacks[i].refs) continue;
            stacks[stacks[i].parent].refs--;
            stacks[i].place = 0;
            freed++;
        }
    } while (freed > before); /* their callers may be dead now */
    return count_dead();
}

void sample_count_stacks_locked(kpt_traceback_stats *out)
{
    for (uint32_t i = 1; i <= highest; i++)
        out->stacks += stacks[i].place != 0;
    out->dead = count_dead();
    out->places = place_count;
    out->bytes_held = sizeof places + sizeof stacks;
}
