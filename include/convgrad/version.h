/* The version of the library: the one place that has it (CMake reads it from here). C99. */
#ifndef CONVGRAD_VERSION_H_
#define CONVGRAD_VERSION_H_

#define CONVGRAD_VERSION_MAJOR 0
#define CONVGRAD_VERSION_MINOR 1
#define CONVGRAD_VERSION_PATCH 0
#define CONVGRAD_VERSION_STRING "0.1.0"

#endif /* CONVGRAD_VERSION_H_ */
