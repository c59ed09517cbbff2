/* loaded_tracer.h: a recording loaded from chunks that a sink has stored: a tracer that has stopped. It does
 * not use Python. Chunks may have any content, as files get damaged: the loader rejects chunks that do not make
 * a recording, and replay trusts no event. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_LOADED_TRACER_H
#define KPTI_CORE_RECORDING_SERIALIZED_LOADED_TRACER_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracer_impl kpti_loaded_tracer; /* all functions except make */

/* Loads a recording. *SELF is then the object for the functions above. */
kpt_status kpti_loaded_make(const kpti_env *env, const kpt_load_args *args, void **self,
                            kpti_error *error);

#endif
