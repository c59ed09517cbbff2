/* no_entry.c: a library that is not a plugin: it exports a function, but no entry. */
int no_entry(void);

__attribute__((visibility("default"))) int no_entry(void)
{
    return 0;
}
