/* run.cc: processes, their output and their environment. */
#include "tests/abi/loading/run.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace
{

constexpr int PATIENCE_MS = 120000;

std::vector<std::string> changed_environment(const environment &changes)
{
    std::vector<std::string> variables;
    for (char **each = environ; *each; each++) {
        std::string name = std::string(*each).substr(0, std::string(*each).find('='));
        if (name != "KPYTRACE_VERBOSE" && !changes.count(name)) variables.emplace_back(*each);
    }
    for (const auto &[name, value] : changes)
        if (!value.empty()) variables.push_back(name + "=" + value);
    return variables;
}

std::vector<char *> pointers(std::vector<std::string> &strings)
{
    std::vector<char *> out;
    for (auto &each : strings)
        out.push_back(each.data());
    out.push_back(nullptr);
    return out;
}

/* Reads both pipes to their ends, or until patience ends. */
bool read_both(int out, int err, result *r)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(PATIENCE_MS);
    pollfd fds[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string *texts[] = {&r->out, &r->err};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        if (left.count() <= 0 || poll(fds, 2, static_cast<int>(left.count())) <= 0) return false;
        for (int i = 0; i < 2; i++) {
            char buf[4096];
            if (!fds[i].revents) continue;
            ssize_t count = read(fds[i].fd, buf, sizeof buf);
            if (count > 0)
                texts[i]->append(buf, static_cast<size_t>(count));
            else
                fds[i].fd = -1;
        }
    }
    return true;
}

std::string text_of_file(const std::string &path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

std::ostream &operator<<(std::ostream &out, const result &r)
{
    return out << r.command << "\nended with " << r.exit_code << ", signal " << r.signal
               << "\nstdout:\n"
               << r.out << "stderr:\n"
               << r.err;
}

std::string asan_options(bool find_leaks)
{
    const char *now = getenv("ASAN_OPTIONS");
    return std::string(now ? now : "") + (find_leaks ? ":detect_leaks=1" : ":detect_leaks=0");
}

result run(const std::vector<std::string> &command, const environment &changes)
{
    result r;
    int out[2], err[2];
    pid_t child = 0;
    std::vector<std::string> arguments = command, variables = changed_environment(changes);
    posix_spawn_file_actions_t actions;
    for (const auto &each : command)
        r.command += each + " ";
    if (pipe(out) != 0 || pipe(err) != 0) abort();
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    for (int fd : {out[0], out[1], err[0], err[1]})
        posix_spawn_file_actions_addclose(&actions, fd);
    int failure = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr,
                               pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    if (failure) {
        r.err = "can't be started: " + std::string(strerror(failure));
    } else {
        int status = 0;
        if (!read_both(out[0], err[0], &r)) {
            r.err += "\n(it took too long)\n";
            kill(child, SIGKILL);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) r.exit_code = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) r.signal = WTERMSIG(status);
    }
    close(out[0]);
    close(err[0]);
    return r;
}

result run_helper(const std::vector<std::string> &arguments, const environment &changes,
                  bool find_leaks)
{
    environment all = changes;
    all["ASAN_OPTIONS"] = asan_options(find_leaks);
    std::vector<std::string> command;
    std::istringstream emulator(KPT_EMULATOR); /* words, with blanks between */
    for (std::string word; emulator >> word;)
        command.push_back(word);
    command.emplace_back(KPT_HELPER);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command, all);
}

std::string unfit(const std::string &scenario, bool with_backend)
{
    const std::string sanitizer = KPT_SANITIZER;
    if (scenario != "fork_threads") return "";
    if (sanitizer == "AddressSanitizer")
        return "AddressSanitizer's allocator hangs by itself after a fork among threads";
    if (sanitizer == "ThreadSanitizer" && with_backend)
        return "ThreadSanitizer's dlopen hangs by itself after a fork among threads";
    return "";
}

temporary_folder::temporary_folder() : path(testing::TempDir() + "kpt_load_XXXXXX")
{
    if (!mkdtemp(path.data())) abort();
}

temporary_folder::~temporary_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

lone_plugin::lone_plugin()
{
    std::filesystem::copy_file(KPT_PLUGIN_PATH, path);
}

std::vector<python> all_pythons(std::string *why)
{
    std::vector<python> found;
    std::istringstream lines(text_of_file(KPT_PYTHONS_FILE));
    if (*KPT_EMULATOR) {
        *why = "the Pythons of this machine are for another processor";
        return found;
    }
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        python p;
        std::string place;
        std::getline(words, p.tag, '\t');
        std::getline(words, p.program, '\t');
        std::getline(words, p.library, '\t');
        std::getline(words, p.home, '\t');
        std::getline(words, place);
        if (p.library == "-") p.library.clear();
        p.in_executable = place == "in-executable";
        found.push_back(p);
    }
    if (found.empty())
        *why = "no Python was found; ctest looks for them, or tests/abi/loading/pythons.py by hand";
    return found;
}

bool can_host(const python &p, environment *changes, std::string *why)
{
    const std::string sanitizer = KPT_SANITIZER, runtime = KPT_SANITIZER_RUNTIME;
    if (sanitizer.empty()) return true;
    if (runtime.empty()) {
        *why = "this compiler's " + sanitizer + " runtime can't be put into another program";
        return false;
    }
    (*changes)["LD_PRELOAD"] = runtime;
    (*changes)["ASAN_OPTIONS"] = asan_options(false);
    result r = run({p.program, "-I", "-c",
                    "import ctypes, sys\n"
                    "sys.exit(0 if '" +
                        runtime.substr(runtime.rfind('/') + 1) +
                        "' in open('/proc/self/maps').read() else 'it is not in the process')"},
                   *changes);
    if (r.exit_code == 0) return true;
    std::ostringstream text;
    text << p.program << " does not start with the " << sanitizer << " runtime: " << r;
    *why = text.str();
    return false;
}
