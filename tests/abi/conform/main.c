/* main.c: kpt_conform: checks any plugin against the rules of the ABI, one by one. */
#include <dlfcn.h>
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/conform/conform.h"

enum { SECONDS_PER_RULE = 60, MAX_RULES = 1024 };

static const conform_rule *const tables[] = {
    conform_entry_rules,  conform_make_rules,      conform_state_rules,    conform_delivery_rules,
    conform_order_rules,  conform_mark_rules,      conform_range_rules,    conform_chunk_rules,
    conform_memory_rules, conform_observer_rules,  conform_operator_rules, conform_registry_rules,
    conform_loader_rules, conform_traceback_rules, conform_symbol_rules,   conform_stack_rules,
    conform_gpu_rules,    conform_process_rules,   conform_host_rules};
enum { TABLES = sizeof tables / sizeof *tables };

typedef struct options {
    const char *path;
    const char *libpython;
    const char *only;        /* check this rule alone */
    const char *expect_fail; /* succeed if this rule, and no other, is broken */
    const char *mutants;     /* rules to try each mutant of the sample with; NULL for no mutants */
    int require_all;         /* a rule that could not be reached counts as broken */
    int quiet;
} options;

typedef struct tally {
    int hold;
    int broken;
    int unreached;
    int as_expected; /* broken rules that expect_fail names */
} tally;

static void usage(FILE *to, const char *program)
{
    (void)fprintf(
        to,
        "usage: %s [options] PLUGIN.so\n\n"
        "Checks a plugin against every rule of the kpytrace ABI, each in a process of its own.\n"
        "Exits with 0 if none is broken.\n\n"
        "  --list               print the rules and exit\n"
        "  --rule RULE          check this rule alone\n"
        "  --require-all        a rule that gave nothing to check counts as broken\n"
        "  --python LIBPYTHON   initialise this libpython first and trace a program in it\n"
        "  --expect-fail RULE   exit with 0 only if this rule, and no other, is broken\n"
        "  --mutants WHICH      load the sample plugin as each of its mutants, which must break "
        "its\n"
        "                       own rule. WHICH other rules are tried, and must not be broken: "
        "own\n"
        "                       (none), next (the rule after it in --list) or all\n"
        "  --quiet              print broken rules and the count only\n"
        "  --help               print this\n",
        program);
}

static void list_rules(void)
{
    for (int i = 0; i < TABLES; i++)
        for (const conform_rule *r = tables[i]; r->id; r++)
            printf("%s %s\n", r->id, r->text);
}

static void start_python(conform *c)
{
    void (*initialize)(int) = NULL;
    void *(*save_thread)(void) = NULL;
    void *python = dlopen(c->libpython, RTLD_NOW | RTLD_GLOBAL);
    if (python) *(void **)&initialize = dlsym(python, "Py_InitializeEx");
    if (!initialize) conform_unreached(c, "no Python could be started: %s", dlerror());
    initialize(0);
    *(void **)&save_thread = dlsym(python, "PyEval_SaveThread");
    (void)save_thread(); /* control calls run without the GIL, as in a non-Python host */
    conform_workload(c); /* once, so that every later time imports nothing and does the same */
}

__attribute__((noreturn)) static void child(const options *o, const conform_rule *rule, int report)
{
    static conform c; /* the mock host inside it is large */
    c.path = o->path;
    c.libpython = o->libpython;
    c.report = fdopen(report, "w");
    (void)alarm(SECONDS_PER_RULE);
    if (c.libpython) start_python(&c);
    rule->check(&c);
    (void)fflush(c.report);
    _exit(RULE_HOLDS);
}

/* Reads the rule's report, on one line. */
static void read_report(int report, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(report, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    text[strcspn(text, "\n")] = 0;
}

static int run_rule(const options *o, const conform_rule *rule, char *text, size_t size)
{
    int ends[2];
    int status;
    pid_t pid;
    if (pipe(ends) != 0) abort();
    (void)fflush(stdout);
    pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        (void)close(ends[0]);
        child(o, rule, ends[1]);
    }
    (void)close(ends[1]);
    read_report(ends[0], text, size);
    (void)close(ends[0]);
    if (waitpid(pid, &status, 0) != pid) abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) <= RULE_NOT_REACHED) return WEXITSTATUS(status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        (void)snprintf(text, size, "it hung: it did not end within %d s", SECONDS_PER_RULE);
    else if (WIFSIGNALED(status))
        (void)snprintf(text, size, "it crashed: %s", strsignal(WTERMSIG(status)));
    else
        (void)snprintf(text, size, "the process ended with %d", WEXITSTATUS(status));
    return RULE_BROKEN;
}

static void check_rule(const options *o, const conform_rule *rule, tally *t)
{
    char text[512];
    int result = run_rule(o, rule, text, sizeof text);
    if (result == RULE_NOT_REACHED && o->require_all) result = RULE_BROKEN;
    if (result == RULE_HOLDS) t->hold++;
    if (result == RULE_BROKEN) t->broken++;
    if (result == RULE_NOT_REACHED) t->unreached++;
    if (result == RULE_BROKEN && o->expect_fail && strcmp(o->expect_fail, rule->id) == 0)
        t->as_expected++;
    if (result == RULE_BROKEN)
        printf("FAIL %s %s\n     %s\n", rule->id, rule->text, text);
    else if (!o->quiet && result == RULE_HOLDS)
        printf("ok   %s %s\n", rule->id, rule->text);
    else if (!o->quiet)
        printf("--   %s %s\n     not reached: %s\n", rule->id, rule->text, text);
}

static int check_all(const options *o)
{
    tally t = {0};
    for (int i = 0; i < TABLES; i++)
        for (const conform_rule *r = tables[i]; r->id; r++)
            if (!o->only || strcmp(o->only, r->id) == 0) check_rule(o, r, &t);
    printf("%d rules hold, %d broken, %d not reached: %s\n", t.hold, t.broken, t.unreached,
           o->path);
    if (t.hold + t.broken + t.unreached == 0) return EXIT_FAILURE; /* no such rule */
    if (o->expect_fail) return t.as_expected == 1 && t.broken == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
    return t.broken ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The mutant's library: mutant_RULE.so beside the sample if there is one, else the sample itself. */
static void find_mutant(const options *o, const char *rule, char *path, size_t size)
{
    const char *slash = strrchr(o->path, '/');
    int folder = slash ? (int)(slash - o->path) + 1 : 0;
    (void)snprintf(path, size, "%.*smutant_%s.so", folder, o->path, rule);
    if (access(path, F_OK) != 0) (void)snprintf(path, size, "%s", o->path);
}

/* Returns 1 if the mutant breaks RULE exactly if RULE is its own. */
static int mutant_is_right(const options *o, const conform_rule *mutant, const conform_rule *rule)
{
    char text[512];
    int result = run_rule(o, rule, text, sizeof text);
    if ((result == RULE_BROKEN) == (rule == mutant)) return 1;
    if (rule == mutant)
        printf("FAIL mutant %s does not break its rule: %s\n     %s\n", mutant->id, rule->text,
               text);
    else
        printf("FAIL mutant %s also breaks %s %s\n     %s\n", mutant->id, rule->id, rule->text,
               text);
    return 0;
}

/* Tries mutant AT of RULES with the rules that --mutants names. Returns how many were tried. */
static int check_mutant(const options *o, const conform_rule *const *rules, int count, int at,
                        int *wrong)
{
    char path[4096];
    options own = *o;
    int others = strcmp(o->mutants, "all") == 0 ? count - 1 : strcmp(o->mutants, "next") == 0;
    find_mutant(o, rules[at]->id, path, sizeof path);
    own.path = path;
    if (setenv("KPT_SAMPLE_MUTANT", rules[at]->id, 1) != 0) abort();
    for (int i = 0; i <= others; i++)
        *wrong += !mutant_is_right(&own, rules[at], rules[(at + i) % count]);
    return others + 1;
}

static int check_mutants(const options *o)
{
    const conform_rule *rules[MAX_RULES];
    int count = 0;
    int mutants = 0;
    int tried = 0;
    int wrong = 0;
    for (int i = 0; i < TABLES; i++)
        for (const conform_rule *r = tables[i]; r->id; r++) {
            if (count == MAX_RULES) abort();
            rules[count++] = r;
        }
    for (int i = 0; i < count; i++) {
        if (o->only && strcmp(o->only, rules[i]->id) != 0) continue;
        tried += check_mutant(o, rules, count, i, &wrong);
        mutants++;
    }
    printf("%d mutants, %d rules tried, %d wrong: %s\n", mutants, tried, wrong, o->path);
    return mutants && !wrong ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int is_mutants_word(const char *word)
{
    return strcmp(word, "own") == 0 || strcmp(word, "next") == 0 || strcmp(word, "all") == 0;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"list", no_argument, NULL, 'l'},
                                          {"rule", required_argument, NULL, 'r'},
                                          {"require-all", no_argument, NULL, 'a'},
                                          {"python", required_argument, NULL, 'p'},
                                          {"expect-fail", required_argument, NULL, 'e'},
                                          {"mutants", required_argument, NULL, 'm'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    options o = {0};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'l':
            list_rules();
            return EXIT_SUCCESS;
        case 'r':
            o.only = optarg;
            break;
        case 'a':
            o.require_all = 1;
            break;
        case 'p':
            o.libpython = optarg;
            break;
        case 'e':
            o.expect_fail = optarg;
            break;
        case 'm':
            o.mutants = optarg;
            break;
        case 'q':
            o.quiet = 1;
            break;
        case 'h':
            usage(stdout, argv[0]);
            return EXIT_SUCCESS;
        default:
            usage(stderr, argv[0]);
            return EXIT_FAILURE;
        }
    }
    if (optind + 1 != argc || (o.mutants && !is_mutants_word(o.mutants))) {
        usage(stderr, argv[0]);
        return EXIT_FAILURE;
    }
    o.path = argv[optind];
    (void)unsetenv("KPYTRACE_VERBOSE");
    return o.mutants ? check_mutants(&o) : check_all(&o);
}
