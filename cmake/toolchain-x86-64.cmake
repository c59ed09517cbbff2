# Builds for x86-64 Linux with Debian's cross compiler, and runs what it built in qemu-user.
#
# The emulator is a cache variable of CMake's own: ctest starts every test through it, so a test
# needs no word about the architecture it runs on.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

set(triplet x86_64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-x86_64;-L;/usr/${triplet}")

# Programs (Python, git) run here; libraries, headers and packages are the target's. Without ONLY,
# the GoogleTest of this machine is found, and fails to link.
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
