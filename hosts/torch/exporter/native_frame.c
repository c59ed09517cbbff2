#include "hosts/torch/exporter/native_frame.h"

#include "writers/chrome/chrome_events.h"
#include "writers/chrome/chrome_gpu.h"

#define PUT KPTI_PUT

/* Kineto's order of the rows that are not of a process. */
enum { SPANS_SORT_INDEX = 0x20000000 };

static void put_text(kpti_writer *w, const char *text)
{
    kpti_out_put(&w->out, text, strlen(text));
}

/* Begins an event that describes the thread TID of the process; 0: the process. */
static char *begin_metadata(kpti_writer *w, const kpti_native_profile *profile, const char *what,
                            uint64_t tid)
{
    char *at = kpti_out_reserve(&w->out, KPTI_OUT_BUFFER_BYTES / 2);
    at = stpcpy(PUT(at, "{\"ph\":\"M\",\"name\":\""), what);
    at = kpti_put_us_between(PUT(at, "\",\"ts\":"), profile->base_ns, profile->begin_ns);
    at = kpti_put_u64(PUT(at, ",\"pid\":"), w->pid);
    at = kpti_put_u64(PUT(at, ",\"tid\":"), tid);
    return PUT(at, ",\"args\":{\"");
}

static void put_sort_index(kpti_writer *w, const kpti_native_profile *profile, const char *what,
                           uint64_t tid, uint64_t index)
{
    char *at = PUT(begin_metadata(w, profile, what, tid), "sort_index\":");
    kpti_out_wrote(&w->out, PUT(kpti_put_u64(at, index), "}}"));
}

static void put_devices(kpti_writer *w)
{
    put_text(w, "\"deviceProperties\":[");
    for (uint32_t i = 0; i < w->gpu->device_count; i++) {
        if (i) put_text(w, ",");
        kpti_chrome_gpu_put_device(w, &w->gpu->devices[i], w->gpu->devices[i].name);
    }
    put_text(w, "],\n");
}

void kpti_native_put_head(kpti_writer *w, const kpti_native_profile *profile)
{
    char *at;
    put_text(w, "{\n\"schemaVersion\":1,\n");
    put_devices(w);
    kpti_out_put(&w->out, profile->members.data, (size_t)profile->members.size);
    put_text(w, "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":");
    at = kpti_put_i64(kpti_out_reserve(&w->out, KPTI_CHROME_MAX_REST), profile->base_ns);
    kpti_out_wrote(&w->out, PUT(at, ",\n\"traceEvents\":[\n"));
    at = begin_metadata(w, profile, "process_name", 0);
    kpti_out_wrote(&w->out, PUT(at, "name\":\"python\"}},\n"));
    at = begin_metadata(w, profile, "process_labels", 0);
    kpti_out_wrote(&w->out, PUT(at, "labels\":\"CPU\"}},\n"));
    put_sort_index(w, profile, "process_sort_index", 0, w->pid);
}

void kpti_native_put_thread(kpti_writer *w, const kpti_native_profile *profile,
                            const kpt_thread *thread)
{
    char *at;
    put_text(w, ",\n");
    at = PUT(begin_metadata(w, profile, "thread_name", thread->os_tid), "name\":\"thread ");
    at = PUT(kpti_put_u64(at, thread->os_tid), " (");
    kpti_out_wrote(&w->out, PUT(kpti_chrome_escape(at, thread->name), ")\"}}"));
    put_text(w, ",\n");
    put_sort_index(w, profile, "thread_sort_index", thread->os_tid, thread->os_tid);
}

/* Writes the time NS as the last field of an event, or its next one. */
static void put_time(kpti_writer *w, const kpti_native_profile *profile, int64_t ns,
                     const char *rest)
{
    char *at = kpti_out_reserve(&w->out, KPTI_CHROME_MAX_REST);
    at = kpti_put_us_between(PUT(at, ",\"ts\":"), profile->base_ns, ns);
    kpti_out_wrote(&w->out, stpcpy(at, rest));
}

/* Readers add start and duration of the trace as doubles, whose sum must not lie behind the end of the window. */
enum { WINDOW_MARGIN_NS = 1000 };

static void put_closing(kpti_writer *w, const kpti_native_profile *profile)
{
    const int64_t end_ns = profile->recording->end_ns;
    char *at;
    put_text(w, ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\","
                "\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\"");
    put_time(w, profile, profile->begin_ns, ",\"dur\":");
    at = kpti_out_reserve(&w->out, KPTI_CHROME_MAX_REST);
    at = kpti_put_us_between(at, profile->begin_ns, end_ns);
    kpti_out_wrote(&w->out, PUT(at, ",\"args\":{\"Op count\":0}},\n"));
    put_text(w, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":\"Spans\",\"tid\":0");
    at = kpti_out_reserve(&w->out, KPTI_CHROME_MAX_REST);
    at = kpti_put_u64(PUT(at, ",\"args\":{\"sort_index\":"), SPANS_SORT_INDEX);
    kpti_out_wrote(&w->out, PUT(at, "}"));
    put_time(w, profile, profile->begin_ns, "},\n");
    put_text(w, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\","
                "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\"");
    put_time(w, profile, profile->begin_ns, "},\n");
    put_text(w,
             "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\"");
    put_time(w, profile, end_ns + WINDOW_MARGIN_NS, "}\n");
}

void kpti_native_put_tail(kpti_writer *w, const kpti_native_profile *profile)
{
    char *at;
    put_closing(w, profile);
    at = PUT(kpti_out_reserve(&w->out, KPTI_OUT_BUFFER_BYTES / 2), "],\n\"traceName\":\"");
    at = kpti_chrome_escape(at, (kpt_str){w->trace_name, w->trace_name_bytes});
    kpti_out_wrote(&w->out, PUT(at, "\"\n}\n"));
}
