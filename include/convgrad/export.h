// Marks what the shared library exports. Everything else is hidden.
#ifndef CONVGRAD_EXPORT_H_
#define CONVGRAD_EXPORT_H_

#if defined(__GNUC__)
#define CONVGRAD_API __attribute__((visibility("default")))
#else
#define CONVGRAD_API
#endif

#endif  // CONVGRAD_EXPORT_H_
