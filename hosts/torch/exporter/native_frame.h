/* native_frame.h: what is in Kineto's files beside the events: the head, the descriptions of the process and its
 * threads, and the closing events. Times are those of the profile. No GIL. */
#ifndef KPTI_TORCH_NATIVE_FRAME_H
#define KPTI_TORCH_NATIVE_FRAME_H

#include "hosts/torch/exporter/native_profile.h"
#include "writers/format/format.h"

/* Writes the file up to the bracket of the list of events, and the events that describe the process. */
void kpti_native_put_head(kpti_writer *writer, const kpti_native_profile *profile);

/* Describes a thread, with a comma before each event. */
void kpti_native_put_thread(kpti_writer *writer, const kpti_native_profile *profile,
                            const kpt_thread *thread);

/* Writes the closing events and the rest of the file. */
void kpti_native_put_tail(kpti_writer *writer, const kpti_native_profile *profile);

#endif
