/* elf_peer.c: a library with known symbols, built once per kind of hash table, for the tests of elf_symbol.
 * With PEER_EMPTY it exports no symbol. */
#include <unistd.h>

#ifdef PEER_EMPTY
#define PEER_API __attribute__((visibility("hidden")))
#else
#define PEER_API __attribute__((visibility("default")))
#endif

PEER_API int peer_number = 42;
PEER_API int peer_function(void);
PEER_API int peer_other_function(void);
int peer_hidden(void);

__attribute__((visibility("hidden"))) int peer_hidden(void)
{
    return (int)getpid(); /* an undefined symbol, which a System V hash table lists as well */
}

int peer_function(void)
{
    return peer_number + (peer_hidden() == 0);
}

int peer_other_function(void)
{
    return peer_hidden() > 0;
}
