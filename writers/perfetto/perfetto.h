/* perfetto.h: the format Perfetto, a binary trace of packets. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const kpti_format kpti_format_perfetto;

#ifdef __cplusplus
}
#endif
#endif
