# find_package(convgrad) gives convgrad::convgrad (shared), convgrad::convgrad_static and, for clients of
# oneDNN Graph, convgrad::convgrad_dnnl; pkg-config convgrad and convgrad_dnnl.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS convgrad convgrad_static convgrad_dnnl EXPORT convgrad-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/convgrad DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# A root of their own: oneDNN's headers have the same names.
install(DIRECTORY include/onednn/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convgrad_dnnl)
install(EXPORT convgrad-targets NAMESPACE convgrad::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/convgrad)
if(CONVGRAD_TOOLS)
  install(TARGETS convgrad_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/convgrad-config.cmake.in
  ${PROJECT_BINARY_DIR}/convgrad-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/convgrad)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/convgrad-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/convgrad-config.cmake
              ${PROJECT_BINARY_DIR}/convgrad-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/convgrad)

if(CONVGRAD_OPENMP)
  set(convgrad_private_libs "-lhwy -lstdc++ -lgomp -pthread")
else()
  set(convgrad_private_libs "-lhwy -lstdc++ -pthread")
endif()
# Relative to the file itself: `cmake --install --prefix` may put it anywhere.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH convgrad_prefix_from_pc ${pc_dir} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH convgrad_include_from_pc ${pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(name convgrad convgrad_dnnl)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# For projects that say find_package(dnnl): with dnnl_DIR set to this folder, DNNL::dnnl is convgrad. In a
# folder that is not searched, so that nobody gets it who wants oneDNN.
file(STRINGS include/onednn/oneapi/dnnl/dnnl_version.h dnnl_numbers REGEX "DNNL_VERSION_[A-Z]+ [0-9]+")
list(TRANSFORM dnnl_numbers REPLACE ".* ([0-9]+)$" "\\1")
list(JOIN dnnl_numbers "." dnnl_version)
set(dnnl_dir ${CMAKE_INSTALL_LIBDIR}/cmake/convgrad/dnnl)
configure_package_config_file(cmake/dnnl-config.cmake.in ${PROJECT_BINARY_DIR}/dnnl-config.cmake
                              INSTALL_DESTINATION ${dnnl_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dnnl-config-version.cmake
                                 VERSION ${dnnl_version} COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dnnl-config.cmake ${PROJECT_BINARY_DIR}/dnnl-config-version.cmake
        DESTINATION ${dnnl_dir})
