/* oneDNN's primitive API. convgrad has what both of oneDNN's APIs share, engines and streams, and
 * memory on the host, which utilities of clients name. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_H_

#include "oneapi/dnnl/dnnl_common.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_types.h"
#include "oneapi/dnnl/dnnl_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a cache that convgrad does not have: kept as a number. */
DNNL_API dnnl_status_t dnnl_get_primitive_cache_capacity(int* capacity);
DNNL_API dnnl_status_t dnnl_set_primitive_cache_capacity(int capacity);

/* What the CPU can do, and not more than the limit: of an x86, and 0 of any other. */
DNNL_API dnnl_cpu_isa_t dnnl_get_effective_cpu_isa(void);
/* Of what dnnl_get_effective_cpu_isa answers; dnnl_cpu_isa_default ends it. */
DNNL_API dnnl_status_t dnnl_set_max_cpu_isa(dnnl_cpu_isa_t isa);

/* Kept, and change nothing. */
DNNL_API dnnl_status_t dnnl_set_cpu_isa_hints(dnnl_cpu_isa_hints_t isa_hints);
DNNL_API dnnl_cpu_isa_hints_t dnnl_get_cpu_isa_hints(void);

/* Memory. Null strides: dense, the last axis the fastest. The size is 0 where it is not known. A
 * description that is asked for is the memory's own; mapped data are the data themselves. */
DNNL_API dnnl_status_t dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t* memory_desc,
                                                            int ndims, const dnnl_dims_t dims,
                                                            dnnl_data_type_t data_type,
                                                            const dnnl_dims_t strides);
DNNL_API dnnl_status_t dnnl_memory_desc_destroy(dnnl_memory_desc_t memory_desc);
DNNL_API size_t dnnl_memory_desc_get_size(const_dnnl_memory_desc_t memory_desc);
DNNL_API dnnl_status_t dnnl_memory_create(dnnl_memory_t* memory,
                                          const_dnnl_memory_desc_t memory_desc,
                                          dnnl_engine_t engine, void* handle);
DNNL_API dnnl_status_t dnnl_memory_destroy(dnnl_memory_t memory);
DNNL_API dnnl_status_t dnnl_memory_get_memory_desc(const_dnnl_memory_t memory,
                                                   const_dnnl_memory_desc_t* memory_desc);
DNNL_API dnnl_status_t dnnl_memory_get_engine(const_dnnl_memory_t memory, dnnl_engine_t* engine);
DNNL_API dnnl_status_t dnnl_memory_get_data_handle(const_dnnl_memory_t memory, void** handle);
DNNL_API dnnl_status_t dnnl_memory_set_data_handle(dnnl_memory_t memory, void* handle);
DNNL_API dnnl_status_t dnnl_memory_map_data(const_dnnl_memory_t memory, void** mapped_ptr);
DNNL_API dnnl_status_t dnnl_memory_unmap_data(const_dnnl_memory_t memory, void* mapped_ptr);

/* Of a JIT that convgrad does not have: accepted. */
DNNL_API dnnl_status_t dnnl_set_jit_dump(int enable);
DNNL_API dnnl_status_t dnnl_set_jit_profiling_flags(unsigned flags);
DNNL_API dnnl_status_t dnnl_set_jit_profiling_jitdumpdir(const char* dir);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_H_ */
