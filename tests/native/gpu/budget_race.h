/* budget_race.h: for C++, which can't read the budget's header. */
#ifndef BUDGET_RACE_H
#define BUDGET_RACE_H

#ifdef __cplusplus
extern "C" {
#endif
/* How often what there was was refused. */
unsigned budget_race(unsigned rounds);
#ifdef __cplusplus
}
#endif
#endif
