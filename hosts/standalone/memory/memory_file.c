#include "hosts/standalone/memory/memory_file.h"

#include <errno.h>

#include "writers/memory/memory_page.h"

kpti_memory_write_fn kpti_memory_file_writer(const char *path)
{
    static const char page[] = ".html";
    const size_t length = strlen(path);
    if (length >= sizeof page && strcmp(path + length - sizeof page + 1, page) == 0)
        return kpti_memory_page_write;
    return kpti_memory_writer_of(path);
}

static void rewind_file(void *reader)
{
    kpti_kpt_rewind(reader);
}

static int next_in_file(void *reader, const char **bytes, uint64_t *size)
{
    kpti_kpt_record head;
    while ((*bytes = kpti_kpt_next_record(reader, &head))) {
        *size = head.size;
        if (head.kind == KPTI_KPT_END) {
            ((kpti_kpt_reader *)reader)->state = head.size ? KPTI_KPT_LACKING : KPTI_KPT_WHOLE;
            return 0;
        }
        if (head.kind == KPTI_KPT_MEMORY) return 1;
    }
    return 0;
}

static kpt_status write_history(const kpti_kpt_reader *reader, kpti_memory_history *history,
                                const char *source, const char *path, kpti_session_error *error)
{
    int number;
    if (!history->states)
        return kpti_session_fail(error, KPT_E_INVALID, "%.180s has no recording of memory", source);
    history->pid = reader->pid;
    number = kpti_memory_write_file(history, kpti_memory_file_writer(path), path);
    if (!number) return KPT_OK;
    if (number != ENOMEM) return kpti_session_fail_io(error, number, path);
    return kpti_session_fail(error, KPT_E_MEMORY, "there is no memory to read %.180s", source);
}

static kpt_status refuse_damage(const kpti_kpt_reader *reader, const char *source,
                                kpti_session_error *error)
{
    return kpti_session_fail(
        error, KPT_E_INVALID,
        "%.180s: it is damaged at byte %llu of %llu; use --recover to read what "
        "is before",
        source, (unsigned long long)reader->at, (unsigned long long)reader->size);
}

kpt_status kpti_memory_file_convert(const char *source, int recover,
                                    const kpti_memory_wanted *wanted, const char *path,
                                    kpti_kpt_state *state, kpti_session_error *error)
{
    kpti_kpt_reader reader;
    kpti_memory_history history;
    const kpti_memory_records records = {&reader, rewind_file, next_in_file};
    const char *why;
    kpt_status status;
    int number;
    if (!kpti_memory_file_writer(path))
        return kpti_session_fail(error, KPT_E_UNSUPPORTED, KPTI_MEMORY_SUFFIXES " or .html: %.180s",
                                 path);
    number = kpti_kpt_open(&reader, source, &why);
    if (number && !why) return kpti_session_fail_io(error, number, source);
    if (number) return kpti_session_fail(error, KPT_E_INVALID, "%.180s: %s", source, why);
    status = kpti_memory_history_open(&history, &records, 0);
    history.wanted = *wanted;
    *state = reader.state;
    if (status == KPT_OK && *state == KPTI_KPT_DAMAGED && !recover)
        status = refuse_damage(&reader, source, error);
    else if (status == KPT_OK)
        status = write_history(&reader, &history, source, path, error);
    else
        (void)kpti_session_fail(error, status, "%.180s: its names of functions %s", source,
                                status == KPT_E_MEMORY ? "need more memory" : "are damaged");
    if (history.is_damaged) *state = KPTI_KPT_DAMAGED;
    kpti_memory_history_close(&history);
    kpti_kpt_unmap(&reader);
    return status;
}
