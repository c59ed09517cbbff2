/* native_memory.h: the memory that torch reported to a profile, as instants of its file. */
#ifndef KPTI_TORCH_NATIVE_MEMORY_H
#define KPTI_TORCH_NATIVE_MEMORY_H

#include "hosts/torch/session/exporter_view.h"
#include "writers/chrome/chrome_events.h"

/* Writes the reports of RECORDING from *NEXT on that were made before BEFORE_NS, as events of the process PID. Moves *NEXT
 * behind them. */
void kpti_native_put_memory(const kpti_torch_recording *recording, uint32_t pid, int64_t before_ns,
                            uint64_t *next, kpti_chrome_events *events);

#endif
