/* observer.c: the operations of an observer, which the plugin calls. An observer is a recorder and the
 * trace file that is made from the recorder's journal. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "abi/impl/kpti_execution_trace.h"
#include "core/base/assert.h"
#include "execution_trace/output/live_writer.h"
#include "execution_trace/output/trace_file.h"
#include "execution_trace/record/op_recorder.h"
#include "execution_trace/record/op_tape.h"

typedef struct observer {
    kpti_recorder recorder;
    kpti_et_live_writer *live_writer; /* the live writer of the current or the last file, or NULL */
    int is_open;
    char path[PATH_MAX];
} observer;

static kpti_trace_file file_of(const observer *o)
{
    const kpti_env *env = o->recorder.env;
    return (kpti_trace_file){.heap = {env->host.ctx, env->host.alloc, env->host.dealloc},
                             .path = o->path};
}

static kpt_status make(const kpti_env *env, const kpt_observer_args *args, void **self,
                       kpti_error *error)
{
    observer *o = kpti_alloc(env, sizeof *o);
    if (!o || !kpti_recorder_make(&o->recorder, env, args, &kpti_et_tape_ops)) {
        kpti_free(env, o, sizeof *o);
        return kpti_fail(error, KPT_E_MEMORY, "no memory for an observer");
    }
    if (args->flags & KPT_OBSERVER_STACKS) kpti_observer_stacks.begin();
    *self = o;
    return KPT_OK;
}

/* Writes the trace file from the journal. IS_WHOLE: no more records follow. */
static kpt_status write_file(observer *o, int is_whole, kpti_error *error)
{
    kpti_et_journal *journal = &o->recorder.journal;
    kpti_trace_file file = file_of(o);
    const int fd = kpti_et_journal_descriptor(journal);
    uint64_t missing;
    kpt_status status;
    if (!is_whole) file.journal_path = journal->path;
    if (fd >= 0) return kpti_trace_file_write(&file, fd, error);
    status = kpti_trace_file_from_mapped(&file, journal, &missing, error);
    journal->is_lost |= missing != 0;
    return status;
}

/* Reports that the trace lacks the operators that were recorded after the program closed the journal's
 * descriptor. */
static kpt_status report_lost(const observer *o, kpti_error *error)
{
    return kpti_fail(error, KPT_E_IO,
                     "%s is incomplete: the program closed the descriptor of its journal, which "
                     "can't be reopened without a path; at least %" PRIu64 " operators are missing",
                     o->path, atomic_load_explicit(&o->recorder.dropped, memory_order_relaxed));
}

/* Waits for the live writer of the last file. */
static void await_live_writer(observer *o)
{
    kpti_et_live_writer *live_writer = o->live_writer;
    o->live_writer = NULL; /* First, so that a fork in between does not find it */
    if (live_writer) kpti_et_live_writer_join(live_writer);
}

/* Until the trace is complete, the file states that it is not, and names the journal that has the records. */
static kpt_status open_file(void *self, const char *path, kpti_error *error)
{
    observer *o = self;
    char journal[PATH_MAX];
    const int has_journal = kpti_trace_file_is_regular(path);
    kpt_status status;
    int number = ENAMETOOLONG;
    kpti_assert(!o->is_open);
    await_live_writer(o);
    if (snprintf(o->path, sizeof o->path, "%s", path) < (int)sizeof o->path &&
        snprintf(journal, sizeof journal, "%s.journal", path) < (int)sizeof journal)
        number = kpti_recorder_open(&o->recorder, has_journal ? journal : NULL);
    if (number)
        return kpti_fail(error, KPT_E_IO, "%s.journal can't be written: %s", path,
                         strerror(number));
    status = has_journal ? write_file(o, 0, error) : KPT_OK;
    o->is_open = status == KPT_OK;
    if (!o->is_open)
        kpti_et_mappings_unmap(kpti_et_journal_close(&o->recorder.journal, 0));
    else if (has_journal && !o->recorder.journal.low_address_space)
        o->live_writer = kpti_et_live_writer_start(&o->recorder, file_of(o));
    return status;
}

static kpt_status start(void *self, kpti_error *error)
{
    observer *o = self;
    const int number = kpti_recorder_start(&o->recorder);
    if (!number) return KPT_OK;
    return kpti_fail(error, KPT_E_IO, "the journal of %s can't be written: %s", o->path,
                     strerror(number));
}

static kpt_status stop(void *self, kpti_error *error)
{
    (void)error;
    kpti_recorder_stop(&((observer *)self)->recorder);
    return KPT_OK;
}

/* If the file can't be written, the journal stays, so that the user can recover the trace after freeing
 * disk space. */
static kpt_status close_file(void *self, kpti_error *error)
{
    observer *o = self;
    kpti_et_mapping *mappings;
    kpt_status status;
    int is_lost;
    kpti_assert(o->is_open && o->recorder.journal.head);
    kpti_recorder_detach(&o->recorder);
    o->recorder.journal.head->finish_ns = kpti_et_clock_ns(CLOCK_MONOTONIC);
    status = o->live_writer && kpti_et_live_writer_finish(o->live_writer) ? KPT_OK
                                                                          : write_file(o, 1, error);
    is_lost = o->recorder.journal.is_lost;
    mappings = kpti_et_journal_close(&o->recorder.journal, status != KPT_OK);
    if (o->live_writer)
        kpti_et_live_writer_clear(o->live_writer, mappings);
    else
        kpti_et_mappings_unmap(mappings);
    o->is_open = 0;
    return status == KPT_OK && is_lost ? report_lost(o, error) : status;
}

static kpt_status begin_op(void *self, const kpt_op *op, uint64_t *op_id)
{
    return kpti_recorder_begin(&((observer *)self)->recorder, op, op_id);
}

static kpt_status end_op(void *self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    return kpti_recorder_end(&((observer *)self)->recorder, op_id, op, error);
}

static void get_stats(void *self, kpt_observer_stats *out)
{
    kpti_recorder_stats(&((observer *)self)->recorder, out);
}

static kpt_status recover(void *self, const char *journal, const char *path, kpti_error *error)
{
    kpti_trace_file file = file_of(self);
    file.path = path;
    return kpti_trace_file_recover(&file, journal, error);
}

static kpt_tape *tape(void *self)
{
    return kpti_recorder_tape(&((observer *)self)->recorder);
}

static void forked(void *self)
{
    observer *o = self;
    o->is_open = 0;
    if (o->live_writer) kpti_et_live_writer_forked(o->live_writer);
    o->live_writer = NULL;
    kpti_recorder_forked(&o->recorder);
}

static void destroy(void *self)
{
    observer *o = self;
    const kpti_env *env = o->recorder.env;
    kpti_error unread;
    if (o->is_open) {
        kpti_recorder_stop(&o->recorder);
        (void)close_file(o, &unread);
    }
    await_live_writer(o);
    if (o->recorder.flags & KPT_OBSERVER_STACKS) kpti_observer_stacks.end();
    kpti_recorder_free(&o->recorder);
    kpti_free(env, o, sizeof *o);
}

const kpti_observer_impl kpti_execution_trace = {
    .make = make,
    .open = open_file,
    .start = start,
    .stop = stop,
    .close = close_file,
    .begin_op = begin_op,
    .end_op = end_op,
    .get_stats = get_stats,
    .recover = recover,
    .tape = tape,
    .forked = forked,
    .destroy = destroy,
};
