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
#include "noop/noop.h"
#include "plugin/bond.h"
#include "plugin/elf_symbol.h"
#include "plugin/find_python.h"
#include "plugin/handle.h"
#include "plugin/product.h"
#include "plugin/registry.h"
#include "plugin/size.h"
#include "plugin/traceback.h"
}

#endif
