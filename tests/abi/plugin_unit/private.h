/* private.h: the plugin's private headers for C++. They are C, so their functions have C linkage; the
 * system's headers are included first, outside of it. */
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
#include "plugin/api/registry.h"
#include "plugin/api/traceback_api.h"
#include "plugin/objects/factory_list.h"
#include "plugin/objects/handle.h"
#include "plugin/objects/host_binding.h"
#include "plugin/objects/object_factory.h"
#include "plugin/objects/struct_size.h"
#include "plugin/python/elf_symbol.h"
#include "plugin/python/find_python.h"
}

#endif
