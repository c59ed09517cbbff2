#include "execution_trace/output/trace_writer.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>

#include "abi/kpt_text.h"

/* Readers compare the whole string. */
#define SCHEMA "1.1.1-chakra.0.0.4"

static void put_head(kpti_et_text *out, const kpti_et_head *head)
{
    const kpt_str time = {head->time, strnlen(head->time, sizeof head->time)};
    KPTI_ET_PUT(out, "{\"schema\":\"" SCHEMA "\",\"pid\":");
    kpti_et_text_u64(out, head->pid);
    KPTI_ET_PUT(out, ",\"time\":\"");
    kpti_et_text_escaped(out, time);
    KPTI_ET_PUT(out, "\",\"start_ts\":");
    kpti_et_text_i64(out, head->monotonic_ns / 1000000);
    KPTI_ET_PUT(out, ",\"nodes\":[");
}

/* Our fields are in one object that other readers ignore. */
static void put_tail(kpti_et_text *out, const kpti_trace_file *file, kpti_et_reader *reader,
                     kpti_et_tree *tree)
{
    const kpti_et_head *head = reader->head;
    const int64_t finish_ns = head->finish_ns ? head->finish_ns : tree->last_ns;
    KPTI_ET_PUT(out, "],\"finish_ts\":");
    kpti_et_text_i64(out, finish_ns / 1000000);
    KPTI_ET_PUT(out, ",\"kpytrace\":{\"complete\":");
    kpti_et_text_put(out, head->finish_ns ? "true" : "false", head->finish_ns ? 4 : 5);
    if (file->journal_path) {
        KPTI_ET_PUT(out, ",\"journal\":\"");
        kpti_et_text_escaped(out, kpt_str_of(file->journal_path));
        kpti_et_text_char(out, '"');
    }
    KPTI_ET_PUT(out, ",\"dropped_ops\":");
    kpti_et_text_u64(out, head->dropped);
    KPTI_ET_PUT(out, ",\"damaged\":");
    kpti_et_text_u64(out, reader->damaged + tree->damaged);
    kpti_et_text_char(out, ',');
    kpti_et_stack_table_put(&tree->stacks, out);
    KPTI_ET_PUT(out, "}}\n");
}

static kpt_status no_memory(const kpti_trace_file *file, kpti_error *error)
{
    return kpti_fail(error, KPT_E_MEMORY, "no memory to write %s", file->path);
}

static kpt_status cant_write(const kpti_trace_file *file, int number, kpti_error *error)
{
    if (number == ENOMEM) return no_memory(file, error);
    return kpti_fail(error, KPT_E_IO, "%s can't be written: %s", file->path, strerror(number));
}

static int ends_in_gz(const char *path)
{
    const size_t size = strlen(path);
    return size > 3 && strcmp(path + size - 3, ".gz") == 0;
}

/* Returns 0 if there was no memory. */
static int is_whole(const kpti_et_writer *w)
{
    return !w->tree.failed && !w->tree.text.failed;
}

static void begin(kpti_et_writer *w)
{
    const kpti_et_head *head = w->reader.head;
    kpti_et_resources_of(&w->resources, w->file->path);
    kpti_et_tree_init(&w->tree, &w->file->heap, &w->out, &w->resources);
    w->tree.last_ns = head->monotonic_ns;
    w->tree.unix_offset_ns = (int64_t)((uint64_t)head->unix_ns - (uint64_t)head->monotonic_ns);
    put_head(&w->tree.text, head);
}

static void free_writer(kpti_et_writer *w)
{
    const kpti_heap heap = w->file->heap;
    kpti_et_reader_close(&w->reader);
    kpti_heap_give(&heap, w, sizeof *w);
}

kpt_status kpti_et_writer_open(kpti_et_writer **writer, const kpti_trace_file *file,
                               const void *bytes, uint64_t size, kpti_error *error)
{
    kpti_et_writer *w = kpti_heap_take(&file->heap, sizeof *w);
    kpt_status status;
    int number;
    if (!w) return no_memory(file, error);
    memset(w, 0, sizeof *w);
    w->file = file;
    w->reader.heap = w->out.heap = file->heap;
    w->reader.is_mapped = file->is_growing;
    w->out.wants_gzip = ends_in_gz(file->path);
    w->out.wants_no_name = file->is_growing;
    status = kpti_et_reader_open(&w->reader, bytes, size);
    number = status == KPT_OK ? kpti_out_open(&w->out, file->path) : 0;
    if (status == KPT_E_INVALID)
        (void)kpti_fail(error, status, "the file is not a journal of an execution trace");
    else if (status != KPT_OK)
        status = no_memory(file, error);
    else if (number)
        status = cant_write(file, number, error);
    if (status == KPT_OK)
        begin(w);
    else
        free_writer(w);
    *writer = status == KPT_OK ? w : NULL;
    return status;
}

/* Returns 1 if the disk has enough space left for the journal, which is beside the file. Records that find
 * no space are lost, while the file can be written later. */
static int leaves_space(const kpti_et_writer *w)
{
    enum { MIN_FREE = 16 << 20 };
    struct statvfs info;
    if (fstatvfs(w->out.fd, &info) != 0 || !info.f_blocks) return 1; /* unknown */
    return (uint64_t)info.f_bavail * info.f_frsize >= MIN_FREE;
}

int kpti_et_writer_take(kpti_et_writer *w, int64_t last_ns, const _Atomic int *is_enough)
{
    enum { AT_ONCE = 1024 }; /* records: about half a megabyte */
    kpti_et_item item;
    for (; !kpti_out_error(&w->out); w->taken++) {
        if (is_enough && atomic_load_explicit(is_enough, memory_order_relaxed)) break;
        if (!kpti_et_reader_next(&w->reader, &item, last_ns)) break;
        if (is_enough && w->taken % AT_ONCE == 0 && !leaves_space(w)) return 0;
        kpti_et_tree_take(&w->tree, &item);
    }
    return is_whole(w) && !w->resources.error && !kpti_out_error(&w->out);
}

/* Reports the first failure. */
static kpt_status tell(const kpti_et_writer *w, int number, kpti_error *error)
{
    if (!is_whole(w)) return no_memory(w->file, error);
    if (number) return cant_write(w->file, number, error);
    if (!w->resources.error) return KPT_OK;
    return kpti_fail(error, KPT_E_IO, "%s can't be written: %s", w->resources.folder,
                     strerror(w->resources.error));
}

kpt_status kpti_et_writer_close(kpti_et_writer *w, int keep, kpti_error *error)
{
    kpt_status status;
    int number;
    if (keep) {
        kpti_et_tree_end(&w->tree);
        put_tail(&w->tree.text, w->file, &w->reader, &w->tree);
        kpti_out_put(&w->out, w->tree.text.data, w->tree.text.used);
    }
    number = kpti_out_close(&w->out, keep && is_whole(w) && !w->resources.error);
    status = tell(w, number, error);
    kpti_et_tree_free(&w->tree);
    free_writer(w);
    return status;
}
