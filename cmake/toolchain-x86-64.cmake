# Builds for x86-64 Linux with Debian's cross compiler, and runs the programs in qemu-user.
#
# CMake has a cache variable for the emulator: ctest starts every test through it, so a test does
# not depend on the architecture.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

set(triplet x86_64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-x86_64;-L;/usr/${triplet}")

# Programs (Python, git) are those of this machine; libraries, headers and packages are those of the
# target. Without ONLY, CMake finds this machine's GoogleTest, which then fails to link.
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
