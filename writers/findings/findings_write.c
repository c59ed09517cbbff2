/* findings_write.c: the object that `kpytrace explain --json` prints and the report page shows: the facts here, the
 * findings in find_*.c. */
#include "abi/kpt_text.h"
#include "core/base/batch_records.h"
#include "writers/findings/findings_state.h"

enum { OWN_ROWS = 3, MODULE_ROWS = 8, WAIT_ROWS = 5 };

const kpti_found_function *kpti_found_function_of(const kpti_findings *f, uint32_t name)
{
    return name < f->function_capacity && f->functions[name].is_known ? &f->functions[name] : NULL;
}

/* --- functions and places ---------------------------------------------------------------------- */

static uint64_t position(kpt_str text, const char *part)
{
    const size_t size = strlen(part);
    for (uint64_t at = 0; at + size <= text.size; at++)
        if (memcmp(text.data + at, part, size) == 0) return at + size;
    return 0;
}

/* Writes "_thread.lock.acquire" for "<built-in method acquire of _thread.lock object>". */
static void put_c_function(kpti_text_builder *out, const kpt_name *name)
{
    const kpt_str shown = kpti_shown_name(name);
    uint64_t at = position(shown, " of ");
    uint64_t end;
    if (!name->function.size) {
        kpti_text_put_escaped(out, shown);
        return;
    }
    if (!at || !position(shown, " object")) {
        kpti_text_put_escaped(out, name->function);
        kpti_text_put(out, " (built-in)");
        return;
    }
    if (shown.data[at] == '\'') at++;
    for (end = at; end < shown.size && shown.data[end] != ' ' && shown.data[end] != '\'';)
        end++;
    kpti_text_put_escaped(out, (kpt_str){shown.data + at, end - at});
    kpti_text_put(out, ".");
    kpti_text_put_escaped(out, name->function);
}

/* Writes the last two parts of a path. */
static void put_short_file(kpti_text_builder *out, kpt_str file)
{
    int parts = 0;
    uint64_t at;
    for (at = file.size; at; at--)
        if (file.data[at - 1] == '/' && ++parts == 2) break;
    kpti_text_put_escaped(out, (kpt_str){file.data + at, file.size - at});
}

void kpti_found_put_function(kpti_text_builder *out, const kpti_findings *f, uint32_t name)
{
    const kpti_found_function *const function = kpti_found_function_of(f, name);
    const kpt_name *of;
    if (!function) {
        kpti_text_put(out, "an unknown function");
        return;
    }
    of = &function->name;
    if (!of->file.size) {
        put_c_function(out, of);
        return;
    }
    kpti_text_put_escaped(out, of->qualname.size   ? of->qualname
                               : of->function.size ? of->function
                                                   : of->display);
    kpti_text_put(out, " (");
    put_short_file(out, of->file);
    kpti_text_put(out, ":");
    kpti_text_put_u64(out, of->first_line);
    kpti_text_put(out, ")");
}

void kpti_found_put_member(kpti_text_builder *out, const char *member, uint64_t value)
{
    kpti_text_put(out, "\"");
    kpti_text_put(out, member);
    kpti_text_put(out, "\":");
    kpti_text_put_u64(out, value);
}

/* Writes the members that describe a function: its name in full, short, its file and line. */
static void put_function_members(kpti_text_builder *out, const kpti_findings *f, uint32_t name)
{
    const kpti_found_function *const function = kpti_found_function_of(f, name);
    kpti_text_put(out, "\"name\":\"");
    if (function) kpti_text_put_escaped(out, kpti_shown_name(&function->name));
    kpti_text_put(out, "\",\"short\":\"");
    kpti_found_put_function(out, f, name);
    kpti_text_put(out, "\",\"file\":\"");
    if (function) kpti_text_put_escaped(out, function->name.file);
    kpti_text_put(out, "\",");
    kpti_found_put_member(out, "line", function ? function->name.first_line : 0);
}

void kpti_found_put_function_member(kpti_text_builder *out, const char *member,
                                    const kpti_findings *f, uint32_t name)
{
    kpti_text_put(out, "\"");
    kpti_text_put(out, member);
    kpti_text_put(out, "\":{");
    put_function_members(out, f, name);
    kpti_text_put(out, "}");
}

static void put_place(kpti_text_builder *out, const kpti_findings *f, const kpti_place *place)
{
    kpti_text_put(out, "{\"at_ns\":");
    kpti_text_put_i64(out, (int64_t)((uint64_t)place->at_ns - (uint64_t)f->first_ns));
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "ns", place->ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "tid", place->os_tid);
    kpti_text_put(out, ",\"thread\":\"");
    kpti_text_put_escaped(out, place->thread);
    kpti_text_put(out, "\"}");
}

/* --- findings ---------------------------------------------------------------------------------- */

void kpti_finding_begin(kpti_finding_list *list, const char *kind, const char *title)
{
    kpti_text_put(list->out, list->count++ ? ",\n{\"kind\":\"" : "{\"kind\":\"");
    kpti_text_put(list->out, kind);
    kpti_text_put(list->out, "\",\"title\":\"");
    kpti_text_put(list->out, title);
    kpti_text_put(list->out, "\",\"text\":\"");
}

void kpti_finding_evidence(kpti_finding_list *list)
{
    kpti_text_put(list->out, "\",\"evidence\":{");
}

void kpti_finding_end(kpti_finding_list *list, const kpti_place *places, uint32_t count)
{
    kpti_text_put(list->out, "},\"places\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) kpti_text_put(list->out, ",");
        put_place(list->out, list->of, &places[i]);
    }
    kpti_text_put(list->out, "]}");
}

static kpt_status put_findings(kpti_findings *f, const kpti_findings_rest *rest,
                               kpti_text_builder *out)
{
    kpti_finding_list list = {out, f, 0};
    kpt_status status;
    kpti_text_put(out, ",\n\"findings\":[");
    status = kpti_find_missing(&list, rest);
    if (status == KPT_OK) status = kpti_find_blockers(&list);
    if (status == KPT_OK) status = kpti_find_locks(&list);
    if (status == KPT_OK) status = kpti_find_slower(&list);
    if (status == KPT_OK) status = kpti_find_collections(&list);
    if (status == KPT_OK) status = kpti_find_gpu_gaps(&list, rest);
    if (status == KPT_OK) status = kpti_find_idle_threads(&list);
    kpti_text_put(out, "]");
    return status;
}

/* --- where the time went ----------------------------------------------------------------------- */

static uint64_t all_own_ns(const kpti_findings *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->function_capacity; i++)
        sum += f->functions[i].own_ns;
    return sum;
}

static void put_share(kpti_text_builder *out, uint64_t part, uint64_t all)
{
    const uint64_t permille = kpti_permille(part, all);
    kpti_text_put(out, permille >= 1000 ? "\"share\":1" : "\"share\":0");
    if (permille % 1000) {
        kpti_text_put(out, permille < 10 ? ".00" : permille < 100 ? ".0" : ".");
        kpti_text_put_u64(out, permille);
    }
}

/* Writes the functions with the largest own times. */
static void put_own(const kpti_findings *f, kpti_text_builder *out, uint64_t all_ns)
{
    uint32_t before[OWN_ROWS];
    kpti_text_put(out, ",\n\"own\":[");
    for (uint32_t row = 0; row < OWN_ROWS; row++) {
        const kpti_found_function *most = NULL;
        for (uint32_t i = 0; i < f->function_capacity; i++) {
            int is_new = f->functions[i].calls != 0;
            for (uint32_t j = 0; j < row; j++)
                is_new &= before[j] != i;
            if (is_new && (!most || f->functions[i].own_ns > most->own_ns)) most = &f->functions[i];
        }
        if (!most) break;
        before[row] = (uint32_t)(most - f->functions);
        kpti_text_put(out, row ? ",\n{" : "{");
        put_function_members(out, f, before[row]);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "calls", most->calls);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "own_ns", most->own_ns);
        kpti_text_put(out, ",");
        put_share(out, most->own_ns, all_ns);
        kpti_text_put(out, kpti_class_waits(most->kind) ? ",\"waits\":true" : ",\"waits\":false");
        kpti_text_put(out, ",\"longest\":");
        put_place(out, f, &most->longest);
        kpti_text_put(out, "}");
    }
    kpti_text_put(out, "]");
}

typedef struct module_sum {
    kpt_str name;
    uint64_t ns;
} module_sum;

static int more_time(const void *left, const void *right)
{
    const module_sum *a = left;
    const module_sum *b = right;
    return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

typedef struct module_sums {
    kpti_heap heap;
    kpti_u64_map row_of; /* by name: index + 1 */
    module_sum *rows;
    uint32_t capacity;
    uint32_t count;
} module_sums;

static kpt_status add_module(module_sums *sums, kpt_str name, uint64_t ns)
{
    uint32_t *number;
    kpt_status status;
    if (!ns) return KPT_OK;
    number = kpti_u64_map_at(&sums->row_of, kpti_text_key(name));
    if (!number) return KPT_E_MEMORY;
    if (!*number) {
        status = kpti_array_reach(&sums->heap, &sums->rows, &sums->capacity, sums->count,
                                  sizeof *sums->rows);
        if (status != KPT_OK) return status;
        sums->rows[sums->count] = (module_sum){name, 0};
        *number = ++sums->count;
    }
    sums->rows[*number - 1].ns += ns;
    return KPT_OK;
}

/* Returns what a function that is no C function is a part of. */
static kpt_str module_of(const kpti_found_function *function)
{
    if (function->activity_kind == KPT_KIND_GC) return kpt_str_of("garbage collection");
    if (function->activity_kind == KPT_KIND_OPERATOR) return kpt_str_of("operators of torch");
    return kpti_module_of(function->name.file);
}

static kpt_status sum_modules(const kpti_findings *f, module_sums *sums)
{
    uint64_t waits_ns = 0;
    kpt_status status = add_module(sums, kpt_str_of("C functions without a caller"), f->loose_c_ns);
    for (uint32_t i = 0; i < f->function_capacity && status == KPT_OK; i++) {
        const kpti_found_function *const function = &f->functions[i];
        if (kpti_class_waits(function->kind)) waits_ns += function->own_ns;
        if (function->activity_kind == KPT_KIND_C || !function->calls) continue;
        status = add_module(sums, module_of(function), function->with_c_ns);
    }
    return status == KPT_OK ? add_module(sums, kpt_str_of("waits"), waits_ns) : status;
}

/* Writes own time by module, with the C functions that its functions called. */
static kpt_status put_modules(const kpti_findings *f, kpti_text_builder *out, uint64_t all_ns)
{
    module_sums sums = {.heap = f->heap, .row_of = {.heap = f->heap}};
    kpt_status status = sum_modules(f, &sums);
    if (status == KPT_OK && sums.count) qsort(sums.rows, sums.count, sizeof *sums.rows, more_time);
    kpti_text_put(out, ",\n\"modules\":[");
    for (uint32_t i = 0; status == KPT_OK && i < sums.count && i < MODULE_ROWS; i++) {
        kpti_text_put(out, i ? ",\n{\"module\":\"" : "{\"module\":\"");
        kpti_text_put_escaped(out, sums.rows[i].name);
        kpti_text_put(out, "\",");
        kpti_found_put_member(out, "own_ns", sums.rows[i].ns);
        kpti_text_put(out, ",");
        put_share(out, sums.rows[i].ns, all_ns);
        kpti_text_put(out, "}");
    }
    kpti_text_put(out, "],");
    kpti_found_put_member(out, "more_modules",
                          sums.count > MODULE_ROWS ? sums.count - MODULE_ROWS : 0);
    kpti_heap_give(&f->heap, sums.rows, sums.capacity * sizeof *sums.rows);
    kpti_u64_map_free(&sums.row_of);
    return status;
}

/* --- waits and limits -------------------------------------------------------------------------- */

static int longer(const void *left, const void *right)
{
    const kpti_wait_row *a = left;
    const kpti_wait_row *b = right;
    return a->total_ns < b->total_ns ? 1 : a->total_ns > b->total_ns ? -1 : 0;
}

/* Sorts the waits, so that numbers of rows are no longer valid, and writes the longest. */
static void put_waits(kpti_findings *f, kpti_text_builder *out)
{
    static const char *const kinds[] = {[KPTI_CLASS_LOCK] = "lock",
                                        [KPTI_CLASS_WORK] = "other thread",
                                        [KPTI_CLASS_SLEEP] = "sleep",
                                        [KPTI_CLASS_POLL] = "input or output",
                                        [KPTI_CLASS_PROCESS] = "process"};
    kpti_wait_table *const t = &f->waits;
    if (t->row_count) qsort(t->rows, t->row_count, sizeof *t->rows, longer);
    kpti_text_put(out, ",\n\"waits\":[");
    for (uint32_t i = 0; i < t->row_count && i < WAIT_ROWS; i++) {
        const kpti_wait_row *const row = &t->rows[i];
        kpti_text_put(out, i ? ",\n{\"for\":\"" : "{\"for\":\"");
        kpti_text_put(out, kinds[row->kind]);
        kpti_text_put(out, "\",");
        kpti_found_put_function_member(out, "in", f, row->in);
        kpti_text_put(out, ",");
        kpti_found_put_function_member(out, "by", f, row->by);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "count", row->count);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "threads", row->threads);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "total_ns", row->total_ns);
        kpti_text_put(out, ",\"longest\":");
        put_place(out, f, &row->longest);
        kpti_text_put(out, "}");
    }
    kpti_text_put(out, "]");
}

/* Writes what the recording does not have because the user did not ask for it, or because nothing records it. */
static void put_limits(const kpti_findings *f, const kpti_findings_rest *rest,
                       kpti_text_builder *out)
{
    const char *comma = "\"";
    kpti_text_put(out, ",\n\"limits\":[");
    if (!f->collections.count) {
        kpti_text_put(out, comma);
        kpti_text_put(out, "There are no garbage collections: `kpytrace run --gc` records them.\"");
        comma = ",\n\"";
    }
    if (!f->c_calls) {
        kpti_text_put(out, comma);
        kpti_text_put(out, "There are no C functions: their time is that of the functions that "
                           "called them, and waits are not known.\"");
        comma = ",\n\"";
    }
    if (f->thread_count > 1) {
        kpti_text_put(out, comma);
        kpti_text_put(out, "Waits of `with lock:` are no calls: that time is own time of the "
                           "function around it.\"");
        comma = ",\n\"";
    }
    if (rest->stats && rest->stats->events_filtered) {
        kpti_text_put(out, comma);
        kpti_text_put_count(out, rest->stats->events_filtered);
        kpti_text_put(out, " events were left out by the filters of the recording.\"");
    }
    kpti_text_put(out, "]");
}

kpt_status kpti_found_put(kpti_findings *f, const kpti_findings_rest *rest, kpti_text_builder *out)
{
    const uint64_t all_ns = all_own_ns(f);
    kpt_status status;
    if (!f->calls) f->first_ns = f->last_ns = 0;
    kpti_text_put(out, "{\"format\":1,\"first_ns\":\"");
    kpti_text_put_i64(out, f->first_ns);
    kpti_text_put(out, "\",");
    kpti_found_put_member(out, "duration_ns", kpti_found_run_ns(f));
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "calls", f->calls);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "threads", f->thread_count);
    put_own(f, out, all_ns);
    status = put_modules(f, out, all_ns);
    if (status != KPT_OK) return status;
    put_waits(f, out);
    status = put_findings(f, rest, out);
    put_limits(f, rest, out);
    kpti_text_put(out, "}\n");
    return status == KPT_OK && out->failed ? KPT_E_MEMORY : status;
}
