#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kpt_text.h"
#include "tree.h"

/* Consumers compare it, letter by letter. */
#define SCHEMA "1.1.1-chakra.0.0.4"

int kpti_trace_file_is_regular(const char *path)
{
    kpti_out_path place;
    return kpti_out_path_find(path, &place) != 0 || place.kind == KPTI_OUT_REPLACE;
}

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

/* Ours stand in one object that others pass over. */
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

/* Everything; 0: there was no memory. */
static int put_all(const kpti_trace_file *file, kpti_et_reader *reader, kpti_et_tree *tree,
                   kpti_out_file *out)
{
    kpti_et_item item;
    tree->last_ns = reader->head->monotonic_ns;
    tree->unix_offset_ns =
        (int64_t)((uint64_t)reader->head->unix_ns - (uint64_t)reader->head->monotonic_ns);
    put_head(&tree->text, reader->head);
    while (!kpti_out_error(out) && kpti_et_reader_next(reader, &item))
        kpti_et_tree_take(tree, &item);
    kpti_et_tree_end(tree);
    put_tail(&tree->text, file, reader, tree);
    kpti_out_put(out, tree->text.data, tree->text.used);
    return !tree->failed && !tree->text.failed;
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

static kpt_status write_from(const kpti_trace_file *file, kpti_et_reader *reader, kpti_error *error)
{
    kpti_out_file out = {.heap = file->heap, .fd = -1, .wants_gzip = ends_in_gz(file->path)};
    kpti_et_resources resources;
    kpti_et_tree *tree;
    int whole = 0;
    int number = kpti_out_open(&out, file->path);
    if (number) return cant_write(file, number, error);
    kpti_et_resources_of(&resources, file->path);
    tree = kpti_heap_take(&file->heap, sizeof *tree);
    if (tree) {
        memset(tree, 0, sizeof *tree);
        kpti_et_tree_init(tree, &file->heap, &out, &resources);
        whole = put_all(file, reader, tree, &out);
        kpti_et_tree_free(tree);
        kpti_heap_give(&file->heap, tree, sizeof *tree);
    }
    number = kpti_out_close(&out, whole && !resources.error);
    if (!whole) return no_memory(file, error);
    if (!number && resources.error)
        return kpti_fail(error, KPT_E_IO, "%s can't be written: %s", resources.folder,
                         strerror(resources.error));
    return number ? cant_write(file, number, error) : KPT_OK;
}

kpt_status kpti_trace_file_from(const kpti_trace_file *file, const void *journal, uint64_t size,
                                kpti_error *error)
{
    kpti_et_reader reader = {.heap = file->heap};
    kpt_status status = kpti_et_reader_open(&reader, journal, size);
    if (status == KPT_OK)
        status = write_from(file, &reader, error);
    else if (status == KPT_E_INVALID)
        (void)kpti_fail(error, status, "this is no journal of an execution trace");
    else
        status = no_memory(file, error);
    kpti_et_reader_close(&reader);
    return status;
}

kpt_status kpti_trace_file_write(const kpti_trace_file *file, int fd, kpti_error *error)
{
    struct stat info;
    void *mapped = MAP_FAILED;
    kpt_status status;
    if (fstat(fd, &info) == 0) {
        if (!info.st_size) return kpti_trace_file_from(file, NULL, 0, error);
        mapped = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (mapped == MAP_FAILED)
        return kpti_fail(error, KPT_E_IO, "the journal of %s can't be read: %s", file->path,
                         strerror(errno));
    status = kpti_trace_file_from(file, mapped, (uint64_t)info.st_size, error);
    (void)munmap(mapped, (size_t)info.st_size);
    return status;
}

kpt_status kpti_trace_file_recover(const kpti_trace_file *file, const char *journal,
                                   kpti_error *error)
{
    const int fd = open(journal, O_RDONLY | O_CLOEXEC);
    kpt_status status;
    if (fd < 0) return kpti_fail(error, KPT_E_IO, "%s can't be read: %s", journal, strerror(errno));
    status = kpti_trace_file_write(file, fd, error);
    (void)close(fd);
    return status;
}
