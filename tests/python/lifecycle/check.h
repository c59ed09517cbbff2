/* check.h: checks a delivery in KPT_ORDER_START against the invariants of kpt_activity.h, and
 * counts the calls that the tests ask for. */
#ifndef KPT_LIFECYCLE_CHECK_H
#define KPT_LIFECYCLE_CHECK_H

#include "tests/python/lifecycle/host.h"

typedef struct lc_check lc_check;

/* Empties OUT, which the check fills; NULL: no memory. */
lc_check *lc_check_new(lc_result *out);
/* A sink; the check is its ctx. */
kpt_status lc_check_batch(void *check, const kpt_batch *batch);
void lc_check_free(lc_check *check);

#endif
