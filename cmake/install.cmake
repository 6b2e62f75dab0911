# find_package(convgrad) gives convgrad::convgrad (shared) and convgrad::convgrad_static; pkg-config too.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS convgrad convgrad_static EXPORT convgrad-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/convgrad DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
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
configure_file(cmake/convgrad.pc.in ${PROJECT_BINARY_DIR}/convgrad.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/convgrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
