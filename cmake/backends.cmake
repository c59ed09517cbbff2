# One backend per CPython minor, and per free-threaded build: for the Python that pip installs into,
# else for each that scripts/pythons/list finds with its headers. All come to lie beside the plugin.

# Compiles the backend TAG (3.13 or 3.13t) against the headers in INCLUDE.
function(kpt_add_backend tag include)
  string(REGEX MATCH "^3\\.([0-9]+)" _ "${tag}")
  if(CMAKE_MATCH_1 GREATER_EQUAL 12)
    set(_hooks hooks_monitoring.c)
  else()
    set(_hooks hooks_profile.c)
  endif()
  set(_target kpytrace_cpython${tag})
  set(_sources backend.c caller.c dead_code.c exit.c filter.c fork.c frame_mark.c gather.c gatherer.c gathering.c gc.c greenlets.c guard.c handing.c host_call.c idle.c import.c installation.c layout.c
    mark.c memory_hooks.c memory_numpy.c memory_sampler.c memory_tracer.c name.c named.c observer_stacks.c place_cache.c readers.c reading.c record.c room.c roster.c session.c store.c stream.c sync.c task_table.c tasks.c text.c thread.c tracebacks.c tracer.c walk.c
    watch.c ${_hooks})
  list(TRANSFORM _sources PREPEND ${PROJECT_SOURCE_DIR}/python_tracer/)
  add_library(${_target} MODULE ${_sources} $<TARGET_OBJECTS:kpt_replay_core>
    $<TARGET_OBJECTS:kpt_stacks_core> $<TARGET_OBJECTS:kpt_memory_core>)
  target_include_directories(${_target} PRIVATE ${PROJECT_SOURCE_DIR}/python_tracer
    ${PROJECT_SOURCE_DIR}/writers)
  target_include_directories(${_target} SYSTEM PRIVATE ${include})
  if(include MATCHES "^(.*)/usr/include/")
    # Debian's pyconfig.h includes another by its path below /usr/include: of the Python's own tree.
    target_compile_options(${_target} PRIVATE -idirafter ${CMAKE_MATCH_1}/usr/include)
  endif()
  target_compile_definitions(${_target} PRIVATE KPTI_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${_target} PRIVATE kpt_abi kpt_flags kpt_execution_trace Threads::Threads m)
  # Python's symbols come from the process that it is opened in.
  set_target_properties(${_target} PROPERTIES PREFIX lib OUTPUT_NAME ${_target}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_options(${_target} PRIVATE -Wl,-z,nodelete)
  install(TARGETS ${_target} LIBRARY DESTINATION ${KPT_INSTALL_LIB})
  set_property(GLOBAL APPEND PROPERTY KPT_BACKENDS ${tag})
endfunction()

# The folder of PYTHON's headers; for one that runs inside a tree of its own, as this machine sees it.
function(kpt_python_include python out)
  execute_process(COMMAND ${python} -c "import sysconfig; print(sysconfig.get_path('include'))"
    OUTPUT_VARIABLE _include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(_tree ${python}/../../tree ABSOLUTE)
  if(EXISTS ${_tree}${_include}/Python.h)
    set(_include ${_tree}${_include})
  endif()
  if(NOT EXISTS ${_include}/Python.h)
    set(_include "")
  endif()
  set(${out} "${_include}" PARENT_SCOPE)
endfunction()

if(CMAKE_CROSSCOMPILING)
  message(STATUS "backends: none, as there is no Python for the target")
elseif(SKBUILD)
  find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
  set(_tag ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
  if(Python3_SOABI MATCHES "cpython-3[0-9]+t")
    string(APPEND _tag t)
  endif()
  kpt_add_backend(${_tag} "${Python3_INCLUDE_DIRS}")
else()
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/pythons/list OUTPUT_VARIABLE _list
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" _list "${_list}")
  # One Python of each kind of hooks, the rest differs in the interpreter only: the last before 3.12 and the
  # first from there on. Tests that take long know them as KPT_KINDS; sanitizers take their time with all.
  set(_before ${_list})
  set(_kinds ${_list})
  list(FILTER _before INCLUDE REGEX "^3\\.1[01] ")
  list(FILTER _kinds INCLUDE REGEX "^3\\.1[2-9] ")
  list(SUBLIST _kinds 0 1 _kinds)
  if(_before)
    list(POP_BACK _before _last)
    list(PREPEND _kinds ${_last})
  endif()
  if(KPT_SANITIZE)
    set(_list ${_kinds})
  endif()
  list(TRANSFORM _kinds REPLACE " .*" "")
  set_property(GLOBAL PROPERTY KPT_KINDS ${_kinds})
  foreach(_line IN LISTS _list)
    string(REGEX MATCH "^([^ ]+) (.+)$" _ "${_line}")
    set(_tag ${CMAKE_MATCH_1})
    set(_python ${CMAKE_MATCH_2})
    kpt_python_include(${_python} _include)
    if(_include)
      kpt_add_backend(${_tag} ${_include})
      set_property(GLOBAL PROPERTY KPT_PYTHON_${_tag} ${_python})
      message(STATUS "backends: CPython ${_tag} (${_python})")
    else()
      message(STATUS "backends: not for CPython ${_tag}: ${_python} has no headers")
    endif()
  endforeach()
endif()
