#include "writers/kineto/kineto_splice.h"

int kpti_splice_open(kpti_splice *s, const char *source, kpti_splice_error *error)
{
    memset(s, 0, sizeof *s);
    *error = (kpti_splice_error){0, 0, ""};
    error->os_error = kpti_kineto_open(&s->file, source, &error->text);
    return error->os_error;
}

void kpti_splice_leave(kpti_splice *s)
{
    kpti_kineto_close(&s->file);
}

int kpti_splice_begin(kpti_splice *s, const char *target, int gzip,
                      const kpti_splice_stacks *stacks, kpti_splice_error *error)
{
    *error = (kpti_splice_error){0, 1, ""};
    s->out.wants_gzip = gzip;
    error->os_error = kpti_out_open(&s->out, target);
    if (error->os_error) {
        kpti_kineto_close(&s->file);
        return error->os_error;
    }
    s->events = (kpti_chrome_events){
        .out = &s->out, .base_ns = s->file.base_ns, .next_index = s->file.next_index};
    error->os_error =
        stacks ? kpti_kineto_gpu_copy(stacks->gpu, &s->file, &s->out, stacks->texts)
               : kpti_kineto_copy(&s->file, &s->out, kpti_kineto_put_head(&s->file, &s->out),
                                  s->file.events_end);
    if (!error->os_error) return 0;
    error->of_target = 0;
    (void)kpti_out_close(&s->out, 0);
    kpti_kineto_close(&s->file);
    return error->os_error;
}

int kpti_splice_close(kpti_splice *s, int keep, kpti_splice_error *error)
{
    int read_error =
        keep ? kpti_kineto_copy(&s->file, &s->out, s->file.events_end, s->file.size) : 0;
    int write_error = kpti_out_close(&s->out, keep && !read_error);
    kpti_kineto_close(&s->file);
    *error = (kpti_splice_error){write_error ? write_error : read_error, write_error != 0, ""};
    return error->os_error;
}
