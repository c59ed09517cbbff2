#include "execution_trace/output/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_descriptor.h"
#include "execution_trace/output/trace_writer.h"

int kpti_trace_file_is_regular(const char *path)
{
    kpti_out_path out_path;
    return kpti_out_path_find(path, &out_path) != 0 || out_path.kind == KPTI_OUT_REPLACE;
}

kpt_status kpti_trace_file_from(const kpti_trace_file *file, const void *journal, uint64_t size,
                                kpti_error *error)
{
    kpti_et_writer *writer;
    const kpt_status status = kpti_et_writer_open(&writer, file, journal, size, error);
    if (status != KPT_OK) return status;
    (void)kpti_et_writer_take(writer, INT64_MAX, NULL);
    return kpti_et_writer_close(writer, 1, error);
}

kpt_status kpti_trace_file_from_mapped(const kpti_trace_file *file, const kpti_et_journal *journal,
                                       uint64_t *missing, kpti_error *error)
{
    kpti_et_writer *writer;
    uint64_t size;
    const char *bytes = kpti_et_journal_at(journal, 0, &size);
    kpt_status status = kpti_et_writer_open(&writer, file, bytes, size, error);
    *missing = 0;
    if (status != KPT_OK) return status;
    for (uint64_t at = size; status == KPT_OK && at < journal->bytes; at += size) {
        bytes = kpti_et_journal_at(journal, at, &size);
        if (bytes)
            status = kpti_et_reader_add(&writer->reader, bytes, size);
        else
            *missing += size;
    }
    if (status != KPT_OK) {
        (void)kpti_et_writer_close(writer, 0, error);
        return kpti_fail(error, status, "no memory to write %s", file->path);
    }
    (void)kpti_et_writer_take(writer, INT64_MAX, NULL);
    return kpti_et_writer_close(writer, 1, error);
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
    (void)madvise(mapped, (size_t)info.st_size, MADV_DONTFORK); /* as for the journal's mappings */
    status = kpti_trace_file_from(file, mapped, (uint64_t)info.st_size, error);
    (void)munmap(mapped, (size_t)info.st_size);
    return status;
}

kpt_status kpti_trace_file_recover(const kpti_trace_file *file, const char *journal,
                                   kpti_error *error)
{
    const int fd = kpti_descriptor_open(journal, O_RDONLY);
    kpt_status status;
    if (fd < 0) return kpti_fail(error, KPT_E_IO, "%s can't be read: %s", journal, strerror(errno));
    status = kpti_trace_file_write(file, fd, error);
    (void)close(fd);
    return status;
}
