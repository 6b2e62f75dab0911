/* How the library is built, in the words of oneDNN: threads on the CPU, no GPU. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_CONFIG_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_CONFIG_H_

#if defined(__GNUC__)
#define DNNL_API __attribute__((visibility("default")))
#define DNNL_DEPRECATED __attribute__((deprecated))
#else
#define DNNL_API
#define DNNL_DEPRECATED
#endif

/* Names for what runs on a device, of oneDNN. */
#define DNNL_RUNTIME_NONE 0u
#define DNNL_RUNTIME_SEQ 1u
#define DNNL_RUNTIME_OMP 2u
#define DNNL_RUNTIME_TBB 4u
#define DNNL_RUNTIME_THREADPOOL 8u
#define DNNL_RUNTIME_OCL 256u
#define DNNL_RUNTIME_SYCL 512u
#define DNNL_RUNTIME_DPCPP DNNL_RUNTIME_SYCL
#define DNNL_RUNTIME_ZE 1024u

#define DNNL_VENDOR_NONE 0u
#define DNNL_VENDOR_INTEL 1u
#define DNNL_VENDOR_NVIDIA 2u
#define DNNL_VENDOR_AMD 4u
#define DNNL_VENDOR_GENERIC 8u

/* OpenMP's threads, unless convgrad was built without them. OMP also is what clients take for "the
 * library has its threads": SEQ would say that it has none, THREADPOOL and TBB that the caller
 * brings them. */
#define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_OMP
#define DNNL_CPU_RUNTIME DNNL_RUNTIME_OMP
#define DNNL_GPU_RUNTIME DNNL_RUNTIME_NONE
#define DNNL_GPU_VENDOR DNNL_VENDOR_NONE

#define ONEDNN_BUILD_GRAPH

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_CONFIG_H_ */
