/* kpt_base.h: what every other header of the contract stands on: status codes, strings, handles,
 * and the rule by which two sides of different age agree on a struct's size.
 *
 * The size rule, once for all structs that carry a struct_size:
 *  - it is the first field; the side that owns the memory writes its own sizeof there;
 *  - the other side copies min(theirs, its own) bytes into a zeroed local before it reads anything
 *    else, or writes back no more than that many; it refuses only a size below the V1 one;
 *  - a field that the copy did not reach reads zero, and zero means the default;
 *  - structs only ever grow at the end. An array of structs travels with its stride instead.
 * kpt_str and the handles have no size: they are frozen for ever. */
#ifndef KPT_BASE_H
#define KPT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major version is part of the entry's symbol; the minor counts appended fields. */
#define KPT_ABI_MAJOR 1
#define KPT_ABI_MINOR 0

/* Zero is success, positive is a normal answer, negative an error whose text last_error has. */
typedef int32_t kpt_status;
enum {
    KPT_OK = 0,
    KPT_DECLINED = 1,       /* not for me: ask the next one, or use a no-op */
    KPT_E_INVALID = -1,     /* an argument is NULL, out of range or contradicts another */
    KPT_E_SIZE = -2,        /* a struct_size or stride is below the V1 size */
    KPT_E_STATE = -3,       /* not now: the object's state does not allow this call */
    KPT_E_HANDLE = -4,      /* no such object: destroyed, or never made */
    KPT_E_BUSY = -5,        /* another call is inside this object, or a needed resource is taken */
    KPT_E_MEMORY = -6,      /* the allocator said no; nothing was changed or kept */
    KPT_E_UNSUPPORTED = -7, /* an unknown flag, order, kind or extension */
    KPT_E_LIMIT = -8,       /* a fixed table of the plugin is full */
    KPT_E_IO = -9,          /* a file could not be written */
    KPT_E_INTERNAL = -10    /* a bug: please report it with the text */
};

/* Bytes and their count; not NUL-terminated, UTF-8 unless said otherwise. {NULL, 0} is empty. */
typedef struct kpt_str {
    const char *data;
    uint64_t size;
} kpt_str;

/* An object of the other side. Zero is never one, and none is used twice in a process, so a call
 * on a destroyed object is answered with KPT_E_HANDLE instead of touching freed memory. */
typedef uint64_t kpt_handle;

/* Flags of a made object. */
enum { KPT_OBJECT_NOOP = 1 << 0 }; /* it records nothing; its last_error says why */

/* The one type that any function pointer may be stored as; cast back before the call. */
typedef void (*kpt_any_fn)(void);

/* How many bytes of TYPE are needed to reach the end of FIELD. */
#define KPT_FIELD_END(type, field) ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))

/* Whether the table at PTR, owned by the other side, is long enough to hold FIELD. */
#define KPT_HAS(ptr, type, field) ((ptr)->struct_size >= KPT_FIELD_END(type, field))

/* Zeroes the struct at PTR and writes its size, as its owner must before it passes it on. */
#define KPT_INIT(ptr) \
    (memset((ptr), 0, sizeof *(ptr)), (void)((ptr)->struct_size = (uint32_t)sizeof *(ptr)))

/* Copies the text of the last error of SELF, with a NUL, into BUF; cut at SIZE where it is longer.
 * NEEDED, if given, receives the whole text's length without the NUL.
 * thread: any, at any time, also while another call is inside SELF
 * GIL: not needed, not taken
 * ownership: BUF stays the caller's; nothing is kept
 * errors: KPT_E_INVALID for a NULL buffer with a size; a dead handle gives a text that says so
 * since: 1.0 */
typedef kpt_status (*kpt_last_error_fn)(kpt_handle self, char *buf, uint64_t size,
                                        uint64_t *needed);

/* Fills OUT, a struct of the extension that NAME stands for, beginning with its struct_size.
 * thread: any; the host serialises control calls on one object
 * GIL: not needed
 * ownership: what OUT then refers to is said in the extension's header
 * errors: KPT_E_UNSUPPORTED for an unknown name, KPT_E_SIZE, KPT_E_INVALID, KPT_E_MEMORY
 * since: 1.0 */
typedef kpt_status (*kpt_get_extension_fn)(kpt_handle self, kpt_str name, void *out);

#ifdef __cplusplus
}
#endif
#endif
