/* private.h: the plugin's hidden headers, as C++ can include them. They are C, so their functions
 * have C linkage; the system's headers come first, outside of it. */
#ifndef KPT_UNIT_PRIVATE_H
#define KPT_UNIT_PRIVATE_H

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "bond.h"
#include "elf_symbol.h"
#include "find_python.h"
#include "handle.h"
#include "noop.h"
#include "product.h"
#include "registry.h"
#include "size.h"
#include "traceback.h"
}

#endif
