/* no_entry.c: a library that is no plugin: it exports something, but no entry. */
int no_entry(void);

__attribute__((visibility("default"))) int no_entry(void)
{
    return 0;
}
