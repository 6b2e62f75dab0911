# Installs the build in BUILD_DIR to a folder of its own, then builds and runs the consumer against it,
# by find_package and by pkg-config. Usage: cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DCC=... -P
set(root ${BUILD_DIR}/consumer)
file(REMOVE_RECURSE ${root})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} gave ${code}:\n${out}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${root}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${root}/build -DCMAKE_PREFIX_PATH=${root}/prefix)
run(${CMAKE_COMMAND} --build ${root}/build)
foreach(program shared_cc static_cc shared_c)
  run(${root}/build/${program})
endforeach()
run(${root}/prefix/bin/convgrad --version)

# A project without C++, and one that has convgrad as a folder of its own: its build type, which compiles all of the
# library once more, is the default, but without -O: two minutes of one core.
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/c_only -B ${root}/c_only -DCMAKE_PREFIX_PATH=${root}/prefix)
run(${CMAKE_COMMAND} --build ${root}/c_only)
run(${root}/c_only/c_only)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/subproject -B ${root}/subproject -DCMAKE_CXX_FLAGS_RELEASE=-O0)
run(${CMAKE_COMMAND} --build ${root}/subproject --parallel 2)
run(${root}/subproject/subproject)

# Clients of oneDNN Graph: by the package's target, by the name that oneDNN's own package has, by pkg-config.
set(example_dir ${SOURCE_DIR}/../../examples/onednn_graph)
run(${CMAKE_COMMAND} -S ${example_dir} -B ${root}/onednn_graph -DCMAKE_PREFIX_PATH=${root}/prefix)
file(GLOB_RECURSE dnnl_config ${root}/prefix/*/dnnl-config.cmake)
cmake_path(GET dnnl_config PARENT_PATH dnnl_dir)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/dnnl_client -B ${root}/dnnl_client -Ddnnl_DIR=${dnnl_dir})
foreach(client onednn_graph dnnl_client)
  run(${CMAKE_COMMAND} --build ${root}/${client})
endforeach()
run(${root}/onednn_graph/training_step)
run(${root}/onednn_graph/conv_transpose_gradient)
run(${root}/dnnl_client/conv_transpose_gradient)

find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE pc_file ${root}/prefix/*/convgrad.pc)
cmake_path(GET pc_file PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs convgrad
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CC} ${SOURCE_DIR}/main.c ${flags} -o ${root}/by_pkg_config)
cmake_path(GET pc_dir PARENT_PATH lib_dir)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${lib_dir} ${root}/by_pkg_config)

execute_process(COMMAND ${PKG_CONFIG} --cflags --libs convgrad_dnnl
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CC} ${example_dir}/conv_transpose_gradient.c ${flags} -o ${root}/dnnl_by_pkg_config)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${lib_dir} ${root}/dnnl_by_pkg_config)
