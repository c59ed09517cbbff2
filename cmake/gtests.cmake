# Registers a GoogleTest program with ctest: kpt_add_gtests(PROGRAM PREFIX [FILTER] [FIXTURE]).
#
# Usually each test is a ctest of its own and runs in its own process. All tests of a program run in
# one process if a process is slow to start or to end: in an emulator, or with AddressSanitizer,
# whose leak check at every exit takes seconds on some machines.
include(GoogleTest)

# Programs that a quick run neither builds nor runs. The target kpt_long_tests builds them, and long runs
# (KPYTRACE_TEST_LONG=1) run them.
#
# ThreadSanitizer has nothing to find in a program with one thread. A machine without a GPU skips every test of
# kpt_real_gpu_test; AddressSanitizer's leak check takes seconds nevertheless. An emulator shows that the product builds
# and works for another processor, in which conform, replay, v1 and golden are enough: qemu-user has the memory order
# and the byte order of the machine that it runs on.
set(KPT_LONG_PROGRAMS)
if("thread" IN_LIST KPT_SANITIZE)
  set(KPT_LONG_PROGRAMS kpt_replay kpt_sizes kpt_writers_test kpt_real_gpu_test)
elseif("address" IN_LIST KPT_SANITIZE AND NOT EXISTS /dev/nvidiactl)
  set(KPT_LONG_PROGRAMS kpt_real_gpu_test)
elseif(CMAKE_CROSSCOMPILING)
  set(KPT_LONG_PROGRAMS kpt_execution_trace_test kpt_gpu_test kpt_load kpt_memory_test kpt_real_gpu_test kpt_sizes
    kpt_stacks kpt_unit kpt_writers_test)
endif()

# Sets OUT to what stands before the command of a test of PROGRAM: KPT_ONLY_LONG if it is one of those.
function(kpt_when program out)
  set(_when)
  if(program IN_LIST KPT_LONG_PROGRAMS)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(kpt_long_tests ${program})
    set(_when ${KPT_ONLY_LONG})
  endif()
  set(${out} "${_when}" PARENT_SCOPE)
endfunction()

# Compiles up to six C++ files of PROGRAM's own folder at a time, which takes half as long as one by one. Names in them
# differ, therefore. Files of other folders, which several programs share, and C files are compiled one by one.
function(kpt_unite program)
  get_target_property(_sources ${program} SOURCES)
  list(FILTER _sources EXCLUDE REGEX "^[^/$]+\\.cc$")
  set_source_files_properties(${_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
endfunction()

function(kpt_add_gtests program prefix)
  if(TARGET kpt_fake_stacks)
    target_link_libraries(${program} PRIVATE kpt_fake_stacks)
  endif()
  if(KPT_QUICK_TESTS)
    kpt_unite(${program})
    get_target_property(_options ${program} COMPILE_OPTIONS)
    if(_options MATCHES "-O[1-9]") # not the -O0 of all tests: a precompiled header fits only its own options
      target_precompile_headers(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h$<ANGLE-R>>")
    else()
      target_precompile_headers(${program} REUSE_FROM kpt_precompiled)
    endif()
  endif()
  set(filter "*")
  set(required)
  if(ARGC GREATER 2)
    set(filter "${ARGV2}")
  endif()
  if(ARGC GREATER 3)
    set(required FIXTURES_REQUIRED ${ARGV3})
  endif()
  if(KPT_SANITIZE OR CMAKE_CROSSCOMPILING)
    kpt_when(${program} _when)
    add_test(NAME ${prefix} COMMAND ${_when} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${program}>
      --gtest_filter=${filter})
    set_tests_properties(${prefix} PROPERTIES SKIP_RETURN_CODE 77 ${required})
  else()
    # No values in names: they can contain addresses, which differ from run to run.
    gtest_discover_tests(${program} TEST_PREFIX ${prefix}. TEST_FILTER "${filter}"
      NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST PROPERTIES ${required})
  endif()
endfunction()

# Compiles FILES with optimisation in builds that run slowly. FILES read megabytes back; the tests
# themselves, most of the compile time, keep their options. A precompiled header fits only files
# with its own options.
function(kpt_optimise)
  if(KPT_SANITIZE OR CMAKE_CROSSCOMPILING)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Runs TEST without AddressSanitizer's fake stacks, which find uses after a return. Programs with
# many calls take minutes with them. The fuzzers' inputs are run with them.
#
# As in the preset, AddressSanitizer does not intercept __tls_get_addr. With the interceptor it
# guesses where the thread-local memory of libraries is; sometimes the guess is wrong, and the leak
# check reads unmapped memory. That memory is from malloc, so the leak check finds it anyway.
function(kpt_keep_stacks test)
  if(KPT_SANITIZE)
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
      ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0)
  endif()
endfunction()
