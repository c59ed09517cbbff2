/* cupti_conflicts.h: which other tool may use CUPTI in this process. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUPTI_CONFLICTS_H
#define KPTI_GPU_TRACER_CUPTI_CUPTI_CONFLICTS_H

/* Returns the name of the tool, for messages. */
const char *kpti_rival(void);

#endif
