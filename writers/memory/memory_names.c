#include "writers/memory/memory_names.h"

#include <stdio.h>

#include "core/base/growable_array.h"

static const char *const domains[] = {"python raw", "python mem", "python object", "numpy"};
enum { DOMAINS = sizeof domains / sizeof *domains };

static const char *const types[] = {"cpu", "cuda"}; /* other types are named by their number */
enum { TYPES = sizeof types / sizeof *types };

/* The bytes that are left; at is NULL once something was missing. */
typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static uint64_t number(cursor *c)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; c->at && c->at < c->end && shift < 64; shift += 7) {
        const unsigned char byte = (unsigned char)*c->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return value;
    }
    c->at = NULL;
    return 0;
}

static int32_t signed_number(cursor *c)
{
    const uint64_t value = number(c);
    return (int32_t)((uint32_t)(value >> 1) ^ -(uint32_t)(value & 1));
}

static kpt_str text(cursor *c)
{
    const uint64_t size = number(c);
    kpt_str found = {c->at, size};
    if (!c->at || size > (uint64_t)(c->end - c->at)) {
        c->at = NULL;
        return (kpt_str){NULL, 0};
    }
    c->at += size;
    return found;
}

/* Returns space for one more item, or NULL if there is no memory. */
static void *one_more(void *array, uint64_t *count, uint64_t *capacity, size_t size)
{
    char *items;
    if (*count >= KPTI_MAX_ITEMS ||
        !kpti_array_reserve(&kpti_malloc_heap, array, capacity, *count + 1, size))
        return NULL;
    memcpy(&items, array, sizeof items);
    return items + (size_t)(*count)++ * size;
}

static kpt_status take_text(kpti_memory_names *n, cursor *c)
{
    kpt_str *added = one_more(&n->texts, &n->text_count, &n->text_capacity, sizeof *added);
    if (!added) return KPT_E_MEMORY;
    *added = text(c);
    return KPT_OK;
}

static kpt_str text_at(const kpti_memory_names *n, cursor *c)
{
    const uint64_t index = number(c);
    if (index && index <= n->text_count) return n->texts[index - 1];
    c->at = NULL;
    return (kpt_str){NULL, 0};
}

static kpt_status take_symbol(kpti_memory_names *n, cursor *c)
{
    kpti_memory_symbol *added =
        one_more(&n->symbols, &n->symbol_count, &n->symbol_capacity, sizeof *added);
    if (!added) return KPT_E_MEMORY;
    added->name = text_at(n, c);
    added->file = text_at(n, c);
    added->line = (uint32_t)number(c);
    return KPT_OK;
}

static kpt_status take_node(kpti_memory_names *n, cursor *c)
{
    const uint64_t known = n->node_count;
    kpti_memory_node *added = one_more(&n->nodes, &n->node_count, &n->node_capacity, sizeof *added);
    uint64_t parent;
    uint64_t symbol;
    if (!added) return KPT_E_MEMORY;
    parent = number(c);
    symbol = number(c);
    if (parent > known || !symbol || symbol > n->symbol_count) return KPT_E_INVALID;
    *added = (kpti_memory_node){(uint32_t)parent, (uint32_t)symbol - 1};
    return KPT_OK;
}

kpt_status kpti_memory_names_begin(kpti_memory_names *n)
{
    n->pools = calloc(KPTI_MEMORY_POOL_COUNT, sizeof *n->pools);
    if (!n->pools) return KPT_E_MEMORY;
    for (; n->slot_count < DOMAINS; n->slot_count++)
        n->pools[n->slot_count].slot = n->slot_count;
    return KPT_OK;
}

/* Sets the slot of a pool: that of another pool of its device, or a new one. */
static void find_slot(kpti_memory_names *n, kpti_pool_tags *pool)
{
    pool->slot = n->slot_count;
    for (uint32_t i = DOMAINS; i < KPTI_MEMORY_POOL_COUNT && pool->slot == n->slot_count; i++) {
        const kpti_pool_tags *other = &n->pools[i];
        if (other->is_used && other->type == pool->type && other->index == pool->index)
            pool->slot = other->slot;
    }
    n->slot_count += pool->slot == n->slot_count;
    pool->space = pool->type ? pool->slot : 0;
}

static kpt_status take_pool(kpti_memory_names *n, cursor *c)
{
    const uint64_t index = number(c);
    kpti_pool_tags pool = {.is_used = 1};
    pool.type = signed_number(c);
    pool.index = signed_number(c);
    pool.stream = number(c);
    pool.category = text(c);
    pool.owner = text(c);
    if (index < KPTI_MEMORY_POOL_OTHER || index >= KPTI_MEMORY_POOL_COUNT ||
        n->pools[index].is_used)
        return KPT_E_INVALID;
    find_slot(n, &pool);
    pool.is_told = index >= KPTI_MEMORY_OWN_POOLS;
    n->has_reported |= pool.is_told;
    n->pools[index] = pool;
    return KPT_OK;
}

kpt_status kpti_memory_names_take(kpti_memory_names *n, const char *bytes, uint64_t size,
                                  uint32_t count)
{
    cursor c = {bytes, bytes + size};
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < count && status == KPT_OK && c.at; i++) {
        if (c.at == c.end) return KPT_E_INVALID;
        switch (*c.at++) {
        case KPTI_MEMORY_TEXT:
            status = take_text(n, &c);
            break;
        case KPTI_MEMORY_SYMBOL:
            status = take_symbol(n, &c);
            break;
        case KPTI_MEMORY_NODE:
            status = take_node(n, &c);
            break;
        case KPTI_MEMORY_POOL:
            status = take_pool(n, &c);
            break;
        default:
            return KPT_E_INVALID;
        }
    }
    return status == KPT_OK && !c.at ? KPT_E_INVALID : status;
}

static void name(kpti_memory_device *device)
{
    char type[16];
    if (device->type >= 0 && device->type < TYPES)
        (void)snprintf(type, sizeof type, "%s", types[device->type]);
    else
        (void)snprintf(type, sizeof type, "device %d", device->type);
    if (device->index < 0)
        (void)snprintf(device->name, sizeof device->name, "%s", type);
    else
        (void)snprintf(device->name, sizeof device->name, "%s:%d", type, device->index);
}

static int by_number(const void *a, const void *b)
{
    const kpti_memory_device *x = a;
    const kpti_memory_device *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Lists each reported device once, behind Python's domains and numpy. */
static void list_reported(kpti_memory_names *n)
{
    uint32_t kept = DOMAINS;
    for (uint32_t i = KPTI_MEMORY_OWN_POOLS; i < KPTI_MEMORY_POOL_COUNT; i++)
        if (n->pools[i].is_used)
            n->devices[n->device_count++] = (kpti_memory_device){
                "", n->pools[i].type, n->pools[i].index, n->pools[i].slot, n->pools[i].space};
    if (n->device_count > kept)
        qsort(n->devices + kept, n->device_count - kept, sizeof *n->devices, by_number);
    for (uint32_t i = DOMAINS; i < n->device_count; i++)
        if (kept == DOMAINS || by_number(&n->devices[kept - 1], &n->devices[i]) != 0)
            n->devices[kept++] = n->devices[i];
    n->device_count = kept;
    for (uint32_t i = DOMAINS; i < n->device_count; i++)
        name(&n->devices[i]);
}

static void find_device(kpti_memory_names *n, kpti_pool_tags *pool)
{
    const kpti_memory_device wanted = {"", pool->type, pool->index, 0, 0};
    const kpti_memory_device *found =
        bsearch(&wanted, n->devices + DOMAINS, n->device_count - DOMAINS, sizeof wanted, by_number);
    pool->device = (uint32_t)(found - n->devices);
}

kpt_status kpti_memory_names_finish(kpti_memory_names *n)
{
    if (!n->devices) n->devices = calloc(KPTI_MEMORY_POOL_COUNT, sizeof *n->devices);
    if (!n->devices) return KPT_E_MEMORY;
    n->device_count = 0;
    for (; n->device_count < DOMAINS; n->device_count++) {
        kpti_memory_device *device = &n->devices[n->device_count];
        *device = (kpti_memory_device){"", 0, -1, n->device_count, 0};
        (void)snprintf(device->name, sizeof device->name, "%s", domains[n->device_count]);
        n->pools[n->device_count].device = n->device_count;
    }
    list_reported(n);
    for (uint32_t i = KPTI_MEMORY_OWN_POOLS; i < KPTI_MEMORY_POOL_COUNT; i++)
        if (n->pools[i].is_used) find_device(n, &n->pools[i]);
    if (n->pools[KPTI_MEMORY_POOL_OTHER].is_used) { /* blocks whose device is unknown */
        kpti_pool_tags *pool = &n->pools[KPTI_MEMORY_POOL_OTHER];
        pool->device = n->device_count;
        n->devices[n->device_count++] =
            (kpti_memory_device){"other", -1, -1, pool->slot, pool->space};
    }
    return KPT_OK;
}

void kpti_memory_names_free(kpti_memory_names *n)
{
    free(n->texts);
    free(n->symbols);
    free(n->nodes);
    free(n->pools);
    free(n->devices);
    memset(n, 0, sizeof *n);
}
