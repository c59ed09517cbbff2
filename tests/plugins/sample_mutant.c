/* sample_mutant.c: reads from the environment which rule the sample breaks. The constructor runs inside
 * dlopen, before any thread can call the entry, and before the constructors of the other files: 101 is the
 * first priority that is not reserved for the compiler. */
#include <stdlib.h>

#include "tests/plugins/sample.h"

const char *sample_mutant = "";

__attribute__((constructor(101))) static void read_mutant(void)
{
    const char *rule = getenv("KPT_SAMPLE_MUTANT");
    if (rule) sample_mutant = rule;
}
