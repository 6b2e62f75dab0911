# docs/spec.md holds the tables that `convgrad ops --markdown` prints.
# Usage: cmake -DCOMMAND=... -DSPEC=docs/spec.md -P
execute_process(COMMAND ${COMMAND} ops --markdown OUTPUT_VARIABLE tables COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SPEC} spec)
string(FIND "${spec}" "${tables}" at)
if(tables STREQUAL "" OR at EQUAL -1)
  message(FATAL_ERROR "${SPEC} does not hold the output of `convgrad ops --markdown`:\n${tables}")
endif()
