#include "imports/import_names.h"

#include <stdio.h>

#include "abi/kpt_text.h"
#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "writers/encode/json_scan.h"

/* --- texts ------------------------------------------------------------------------------------ */

enum { BLOCK_BYTES = 64 * 1024, MAX_NAME_BYTES = 16 * 1024 };

typedef struct kpti_import_block {
    struct kpti_import_block *older;
    size_t capacity;
    size_t size;
    char bytes[];
} kpti_import_block;

static char *reserve(kpti_import_texts *texts, size_t size)
{
    kpti_import_block *block = texts->newest;
    if (block && block->capacity - block->size >= size) return block->bytes + block->size;
    block = malloc(sizeof *block + (size > BLOCK_BYTES ? size : BLOCK_BYTES));
    if (!block) return NULL;
    block->older = texts->newest;
    block->capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    block->size = 0;
    texts->newest = block;
    return block->bytes;
}

void kpti_import_texts_free(kpti_import_texts *texts)
{
    while (texts->newest) {
        kpti_import_block *const older = texts->newest->older;
        free(texts->newest);
        texts->newest = older;
    }
}

static uint32_t hex_of(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static char *put_character(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Reads \uXXXX, and the second half of a pair. *AT is after the "\u" of valid JSON. */
static uint32_t take_unicode(const char **at, const char *end)
{
    uint32_t c;
    if (end - *at < 4) {
        *at = end;
        return 0xfffd;
    }
    c = hex_of(*at);
    *at += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        const uint32_t low = hex_of(*at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return c >= 0xd800 && c < 0xe000 ? 0xfffd : c;
}

/* Resolves the escapes of valid JSON. OUT has as many bytes as the text. Returns their number. */
static size_t unescape(char *const out, kpt_str text)
{
    static const char letters[] = "bfnrt";
    static const char values[] = "\b\f\n\r\t";
    const char *at = text.data;
    const char *const end = at + text.size;
    char *to = out;
    while (at < end) {
        const char *known;
        if (*at != '\\' || end - at < 2) {
            *to++ = *at++;
            continue;
        }
        at += 2;
        known = strchr(letters, at[-1]);
        if (at[-1] == 'u')
            to = put_character(to, take_unicode(&at, end));
        else if (known)
            *to++ = values[known - letters];
        else
            *to++ = at[-1];
    }
    return (size_t)(to - out);
}

kpt_str kpti_import_text(kpti_import_texts *texts, kpt_str text)
{
    char plain[MAX_NAME_BYTES];
    char *to;
    size_t size;
    if (text.size > sizeof plain) text.size = sizeof plain;
    size = unescape(plain, text);
    to = reserve(texts, size * KPTI_UTF8_MAX_GROWTH + 1);
    if (!to) return (kpt_str){NULL, 0};
    size = (size_t)(kpti_utf8_copy(to, plain, size) - to);
    texts->newest->size += size;
    return (kpt_str){to, size};
}

/* --- names ------------------------------------------------------------------------------------ */

static int read_line(const char *at, const char *end, uint32_t *line)
{
    uint32_t value = 0;
    if (at == end || end - at > 9) return 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return 0;
        value = value * 10 + (uint32_t)(*at - '0');
    }
    *line = value;
    return 1;
}

static const char *find_last(const char *begin, const char *end, char c)
{
    while (end > begin)
        if (*--end == c) return end;
    return NULL;
}

static kpt_str view(const char *at, const char *end)
{
    return (kpt_str){at, (uint64_t)(end - at)};
}

/* FILE(LINE): FUNCTION */
static int split_place_first(kpti_function_view *out)
{
    const char *const begin = out->display.data;
    const char *const end = begin + out->display.size;
    for (const char *at = begin; at + 3 <= end; at++) {
        const char *open;
        if (at[0] != ')' || at[1] != ':' || at[2] != ' ') continue;
        open = find_last(begin, at, '(');
        if (!open || open == begin || !read_line(open + 1, at, &out->first_line)) continue;
        out->file = view(begin, open);
        out->function = out->qualname = view(at + 3, end);
        return 1;
    }
    return 0;
}

/* FUNCTION (FILE:LINE) */
static int split_place_last(kpti_function_view *out)
{
    const char *const begin = out->display.data;
    const char *const end = begin + out->display.size;
    const char *colon;
    const char *open = begin;
    if (end - begin < 6 || end[-1] != ')') return 0;
    colon = find_last(begin, end, ':');
    if (!colon || !read_line(colon + 1, end - 1, &out->first_line)) return 0;
    while (open + 2 < colon && !(open[0] == ' ' && open[1] == '('))
        open++;
    if (open == begin || open + 2 >= colon) return 0;
    out->function = out->qualname = view(begin, open);
    out->file = view(open + 2, colon);
    return 1;
}

/* Makes the display that kpytrace gives a Python function. Returns 0 if there is no memory. */
static int display_as_ours(kpti_import_texts *texts, kpti_function_view *name)
{
    const size_t size = (size_t)(name->file.size + name->function.size) + 16;
    char *to = reserve(texts, size);
    if (!to) return 0;
    name->display.data = to;
    name->display.size =
        (uint64_t)snprintf(to, size, "%.*s(%u): %.*s", (int)name->file.size, name->file.data,
                           name->first_line, (int)name->function.size, name->function.data);
    texts->newest->size += (size_t)name->display.size;
    return 1;
}

/* Returns whether events of CATEGORY are operators of a host, and their scope. */
static int is_operator(kpt_str category, uint32_t *scope)
{
    *scope = kpt_str_is(category, "user_annotation") ? (uint32_t)KPT_SCOPE_USER
                                                     : (uint32_t)KPT_SCOPE_FUNCTION;
    return *scope || kpt_str_is(category, "cpu_op");
}

static int make_name(kpti_import_names *names, kpt_str text, kpt_str category,
                     kpti_function_view *out)
{
    memset(out, 0, sizeof *out);
    out->display = kpti_import_text(&names->texts, text);
    if (!out->display.data) return 0;
    out->function = out->qualname = out->display;
    out->kind = is_operator(category, &out->scope) ? KPT_KIND_OPERATOR : KPT_KIND_C;
    if (out->kind == KPT_KIND_OPERATOR) return 1;
    if (split_place_first(out)) {
        out->kind = KPT_KIND_PYTHON;
    } else if (split_place_last(out)) {
        out->kind = KPT_KIND_PYTHON;
        return display_as_ours(&names->texts, out);
    }
    return 1;
}

/* Returns the value of "qualified name" in the arguments that kpytrace writes, without quotes; empty if there is none. */
static kpt_str qualname_in(kpt_str args)
{
    static const char key[] = "\"qualified name\":\"";
    const char *at = args.size ? memmem(args.data, (size_t)args.size, key, sizeof key - 1) : NULL;
    const char *end;
    if (!at) return (kpt_str){NULL, 0};
    at += sizeof key - 1;
    end = kpti_json_skip_string(at - 1, args.data + args.size);
    return end ? view(at, end - 1) : (kpt_str){NULL, 0};
}

uint32_t kpti_import_names_at(kpti_import_names *names, kpt_str name, kpt_str category,
                              kpt_str args)
{
    const kpt_str qualname = qualname_in(args);
    uint32_t scope;
    const uint64_t kind = is_operator(category, &scope) ? 1 + scope : 0;
    const uint64_t key =
        kpti_hash_mix(kpti_text_key(name) ^ (qualname.size ? kpti_text_key(qualname) << 1 : 0),
                      kind) >>
        1;
    uint32_t *number = kpti_u64_map_at(&names->numbers, key);
    if (!number) return 0;
    if (*number) return *number;
    if (!names->count) names->count = 1;
    if (names->count >= KPTI_MAX_NUMBER ||
        !kpti_array_reserve(&kpti_malloc_heap, &names->items, &names->capacity,
                            (uint64_t)names->count + 1, sizeof *names->items) ||
        !make_name(names, name, category, &names->items[names->count]))
        return 0;
    if (qualname.size) {
        kpti_function_view *made = &names->items[names->count];
        made->qualname = kpti_import_text(&names->texts, qualname);
        if (!made->qualname.data) return 0;
    }
    *number = names->count;
    return names->count++;
}

int kpti_import_names_describe(void *names, uint32_t number, kpti_function_view *out)
{
    const kpti_import_names *all = names;
    if (!number || number >= all->count) return 0;
    *out = all->items[number];
    return 1;
}

void kpti_import_names_free(kpti_import_names *names)
{
    kpti_u64_map_free(&names->numbers);
    kpti_import_texts_free(&names->texts);
    kpti_heap_give(&kpti_malloc_heap, names->items, (size_t)names->capacity * sizeof *names->items);
    memset(names, 0, sizeof *names);
}
