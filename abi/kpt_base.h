/* kpt_base.h: the definitions that every other header of the contract uses: status codes, strings,
 * handles, and the rule by which a host and a plugin of different versions agree on the size of a
 * struct.
 *
 * The size rule applies to every struct that has a struct_size:
 *  - struct_size is the first field. The side that owns the memory writes its own sizeof there.
 *  - The other side copies min(their size, its own size) bytes into a zeroed local struct before it
 *    reads any other field. When it writes back, it writes at most that many bytes. It refuses only
 *    a size below the V1 size.
 *  - A field beyond the copied bytes reads zero. Zero means the default.
 *  - A struct grows only at its end. An array of structs is passed with its stride instead.
 * kpt_str and the handles have no size. They never change. */
#ifndef KPT_BASE_H
#define KPT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major version is part of the entry's symbol. The minor version counts appended fields. */
#define KPT_ABI_MAJOR 1
#define KPT_ABI_MINOR 2

/* Zero is success. A positive status is a normal result. A negative status is an error, and
 * last_error returns its text. */
typedef int32_t kpt_status;
enum {
    KPT_OK = 0,
    KPT_DECLINED = 1,       /* no object was made: try the next factory, or use a no-op */
    KPT_E_INVALID = -1,     /* an argument is NULL, out of range or contradicts another */
    KPT_E_SIZE = -2,        /* a struct_size or stride is below the V1 size */
    KPT_E_STATE = -3,       /* the object's state does not allow this call now */
    KPT_E_HANDLE = -4,      /* no such object: it was destroyed, or never existed */
    KPT_E_BUSY = -5,        /* another call is inside this object, or a needed resource is in use */
    KPT_E_MEMORY = -6,      /* the allocator returned NULL; nothing was changed or kept */
    KPT_E_UNSUPPORTED = -7, /* an unknown flag, order, kind or extension */
    KPT_E_LIMIT = -8,       /* a table of fixed size in the plugin is full */
    KPT_E_IO = -9,          /* a file could not be written */
    KPT_E_INTERNAL = -10    /* a bug in the plugin: please report it with the text */
};

/* Bytes and their count. The bytes are not NUL-terminated, and are UTF-8 unless a comment states
 * another encoding. {NULL, 0} is the empty string. */
typedef struct kpt_str {
    const char *data;
    uint64_t size;
} kpt_str;

/* Identifies an object of the other side. Zero is never a valid handle. A value is never reused
 * within a process, so a call on a destroyed object returns KPT_E_HANDLE and does not touch freed
 * memory. */
typedef uint64_t kpt_handle;

/* Flags of an object that a factory made. */
enum {
    KPT_OBJECT_NOOP = 1 << 0
}; /* the object records nothing; its last_error returns the reason */

/* A type in which any function pointer can be stored. Cast it back before the call. */
typedef void (*kpt_any_fn)(void);

/* The number of bytes from the start of TYPE to the end of FIELD. */
#define KPT_FIELD_END(type, field) ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))

/* Whether the table at PTR, which the other side owns, is large enough to contain FIELD. */
#define KPT_HAS(ptr, type, field) ((ptr)->struct_size >= KPT_FIELD_END(type, field))

/* Zeroes the struct at PTR and writes its size. The owner of a struct must do so before it passes
 * the struct to the other side. */
#define KPT_INIT(ptr) \
    (memset((ptr), 0, sizeof *(ptr)), (void)((ptr)->struct_size = (uint32_t)sizeof *(ptr)))

/* Copies the text of SELF's last error into BUF and terminates it with a NUL. A text that does not
 * fit in SIZE bytes is truncated. *NEEDED, if NEEDED is not NULL, receives the length of the whole
 * text without the NUL.
 * thread: any, at any time, also while another call is inside SELF
 * GIL: not needed, not acquired
 * ownership: BUF belongs to the caller; the plugin keeps no pointer to it
 * errors: KPT_E_INVALID if BUF is NULL and SIZE is not 0; for a destroyed handle the text states
 *     that
 * since: 1.0 */
typedef kpt_status (*kpt_last_error_fn)(kpt_handle self, char *buf, uint64_t size,
                                        uint64_t *needed);

/* Fills OUT, which points to the struct of the extension NAME. The struct begins with its
 * struct_size.
 * thread: any; the host serialises control calls on one object
 * GIL: not needed
 * ownership: the extension's header defines the ownership of the objects that OUT refers to
 * errors: KPT_E_UNSUPPORTED for an unknown name, KPT_E_SIZE, KPT_E_INVALID, KPT_E_MEMORY
 * since: 1.0 */
typedef kpt_status (*kpt_get_extension_fn)(kpt_handle self, kpt_str name, void *out);

#ifdef __cplusplus
}
#endif
#endif
