#include "writers/encode/text_builder.h"

#include "writers/encode/json_text.h"

enum { MAX_NAME = 16 * 1024 }; /* bytes of a text before it is escaped */

/* Returns where SIZE bytes can be written, or NULL. */
static char *reserve(kpti_text_builder *out, uint64_t size)
{
    if (!out->failed && !kpti_array_reserve(&out->heap, &out->text, &out->capacity,
                                            out->size + size, sizeof *out->text))
        out->failed = 1;
    return out->failed ? NULL : out->text + out->size;
}

static void put(kpti_text_builder *out, const char *text, size_t size)
{
    char *at = reserve(out, size);
    if (!at) return;
    memcpy(at, text, size);
    out->size += size;
}

void kpti_text_put(kpti_text_builder *out, const char *literal)
{
    put(out, literal, strlen(literal));
}

void kpti_text_put_u64(kpti_text_builder *out, uint64_t value)
{
    char *at = reserve(out, KPTI_JSON_MAX_NUMBER);
    if (at) out->size = (uint64_t)(kpti_put_u64(at, value) - out->text);
}

void kpti_text_put_i64(kpti_text_builder *out, int64_t value)
{
    char *at = reserve(out, KPTI_JSON_MAX_NUMBER);
    if (at) out->size = (uint64_t)(kpti_put_i64(at, value) - out->text);
}

void kpti_text_put_count(kpti_text_builder *out, uint64_t value)
{
    char digits[KPTI_JSON_MAX_NUMBER];
    const size_t count = (size_t)(kpti_put_u64(digits, value) - digits);
    for (size_t i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0) put(out, ",", 1);
        put(out, digits + i, 1);
    }
}

void kpti_text_put_ns(kpti_text_builder *out, uint64_t ns)
{
    static const struct unit {
        const char *text;
        uint64_t ns;
    } units[] = {{" s", 1000000000}, {" ms", 1000000}, {" \xc2\xb5s", 1000}};
    char decimals[KPTI_JSON_MAX_NUMBER] = ".";
    for (int i = 0; i < 3; i++) {
        const uint64_t thousandths = ns / (units[i].ns / 1000);
        if (ns < units[i].ns) continue;
        kpti_text_put_count(out, thousandths / 1000);
        put(out, decimals,
            (size_t)(kpti_put_three(decimals + 1, (uint32_t)(thousandths % 1000)) - decimals));
        kpti_text_put(out, units[i].text);
        return;
    }
    kpti_text_put_u64(out, ns);
    kpti_text_put(out, " ns");
}

void kpti_text_put_percent(kpti_text_builder *out, uint64_t permille)
{
    kpti_text_put_count(out, permille / 10);
    kpti_text_put(out, ".");
    kpti_text_put_u64(out, permille % 10);
    kpti_text_put(out, " %");
}

void kpti_text_put_escaped(kpti_text_builder *out, kpt_str text)
{
    const size_t size = text.size < MAX_NAME ? (size_t)text.size : MAX_NAME;
    char *at = reserve(out, size * KPTI_JSON_MAX_GROWTH + KPTI_JSON_MAX_NUMBER);
    if (at && size) out->size = (uint64_t)(kpti_json_escape(at, text.data, size) - out->text);
}

void kpti_text_builder_free(kpti_text_builder *out)
{
    kpti_heap_give(&out->heap, out->text, (size_t)out->capacity);
    *out = (kpti_text_builder){.heap = out->heap};
}
