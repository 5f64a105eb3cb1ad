# Included at each project() of a library's build (CMAKE_PROJECT_INCLUDE): the targets in DEUT_PRECOMPILE take the headers
# that nearly all their files include (DEUT_PRECOMPILE_HEADERS) precompiled, which halves the time of compiling them.
if(NOT DEUT_PRECOMPILE OR DEUT_PRECOMPILE_DEFERRED OR NOT CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  return()
endif()
set(DEUT_PRECOMPILE_DEFERRED TRUE)

function(deut_precompile)
  set(text "#ifdef __cplusplus\n")
  foreach(header IN LISTS DEUT_PRECOMPILE_HEADERS)
    string(APPEND text "#include <${header}>\n")
  endforeach()
  set(file "${CMAKE_BINARY_DIR}/deut_precompile.h")
  file(WRITE "${file}" "${text}#endif\n")
  foreach(target IN LISTS DEUT_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE "${file}")
  endforeach()
endfunction()

# The targets exist at the end of the project's own folder.
cmake_language(DEFER CALL deut_precompile)
