# convgrad_layer(core SOURCES a.cc USES include): one folder of src/ as one target.
#
# A layer's headers are included as "core/window.h". Each layer has an include root of its own that
# holds nothing but a link to its folder, and a target sees only the roots of the layers that it uses:
# an include that points against the design's arrows does not build.
function(convgrad_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;USES" ${ARGN})
  set(root ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name} ${root}/${name} SYMBOLIC)

  add_library(convgrad_${name}_headers INTERFACE)
  target_include_directories(convgrad_${name}_headers INTERFACE ${root})
  foreach(used ${LAYER_USES})
    target_link_libraries(convgrad_${name}_headers INTERFACE convgrad_${used}_headers)
  endforeach()

  list(TRANSFORM LAYER_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
  add_library(convgrad_${name} OBJECT ${LAYER_SOURCES})
  target_link_libraries(convgrad_${name} PRIVATE convgrad_${name}_headers)
endfunction()

# A program's own files may be compiled without -O, the library's are not: functions of headers that both have come
# from what is linked first.
function(convgrad_link_library_first program)
  target_link_options(${program} PRIVATE
    -Wl,--whole-archive $<TARGET_FILE:convgrad_static> -Wl,--no-whole-archive)
endfunction()
