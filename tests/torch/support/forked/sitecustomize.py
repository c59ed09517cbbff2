"""Run by Python as it starts, in the process that support.Forker makes: imports torch, and forks a process for each
program that it is sent.

The forked process goes on where Python imports this module, and so runs the program as if it had been given it: with no
frame below, and to a usual end. The program is an open file, whose name is on the command line."""

import gc
import json
import os
import runpy
import socket
import sys


def next_program(connection):
    """Returns in a forked process, which is to run the program, or exits."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not message:
            os._exit(0)
        child = os.fork()
        if child == 0:
            return json.loads(message), files
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def main():
    connection = socket.socket(fileno=int(os.environ.pop("KPT_FORKER")))
    program = int(os.path.basename(sys.argv[0]))
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.remove(here)
    runpy.run_path(os.path.join(os.path.dirname(here), "light", "sitecustomize.py"))
    import torch  # noqa: F401
    import torch._inductor.config  # noqa: F401  -- light's in most cases
    if os.environ.get("KPYTRACE_TEST_LONG"):
        import torch._dynamo  # noqa: F401

    gc.freeze()
    request, files = next_program(connection)
    connection.close()
    for file, number in zip(files, (program, 1, 2), strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[:] = ["-c"]
    del sys.modules[__name__]


main()
