/* convgrad for C99: the convolution family of a training step. (C++: convgrad/convgrad.hpp)
 *
 * Calls return a status; convgrad_last_error() gives the sentence that goes with the status of the
 * calling thread's last such call. Handles are created and destroyed by the caller; a plan does not
 * need the operation it was made from. Null handles may be destroyed. */
#ifndef CONVGRAD_CONVGRAD_H_
#define CONVGRAD_CONVGRAD_H_

#include <stddef.h>
#include <stdint.h>

#include "convgrad/export.h"
#include "convgrad/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CONVGRAD_OK = 0,
  CONVGRAD_INVALID_ARGUMENT = 1, /* an operation, attribute, option or pointer */
  CONVGRAD_INVALID_SHAPE = 2,    /* extents, ranks, channels, strides */
  CONVGRAD_INVALID_TYPE = 3,     /* element types */
  CONVGRAD_OUT_OF_MEMORY = 4
} convgrad_status;

typedef enum {
  CONVGRAD_UNDEF = 0, /* not given: an optional input left out, an output to be inferred */
  CONVGRAD_F32 = 1,
  CONVGRAD_BF16 = 2,
  CONVGRAD_F16 = 3,
  CONVGRAD_S32 = 4, /* shape tensors */
  CONVGRAD_S64 = 5
} convgrad_type;

/* Type, extents and strides (in elements), axes in the order of the operation's format. */
typedef struct {
  int32_t type;           /* a convgrad_type */
  int32_t rank;           /* of an output, 0: to be inferred */
  const int64_t* extents; /* [rank]; of an output, negative ones are inferred */
  const int64_t* strides; /* [rank], or null: dense, last axis fastest */
  const int64_t* values;  /* [extents[0]], of a shape tensor known when planning; or null */
} convgrad_tensor;

/* Calls task(context, i) for every i in [0, count), at the same time as far as it can, and returns
 * when all calls have returned; one after another, in any order, is right too. It must not throw. A
 * task needs 256 KiB of stack. */
typedef void (*convgrad_parallel_for)(void* host, int count, void (*task)(void* context, int i),
                                      void* context);

typedef struct {
  size_t size;                        /* sizeof(convgrad_options): later versions may add members */
  int32_t threads;                    /* 0: as many as the machine has */
  int64_t workspace_limit;            /* bytes; -1: no limit */
  float beta;                         /* out = beta * out + result */
  const char* kernel;                 /* null: the planner chooses */
  convgrad_parallel_for parallel_for; /* null: OpenMP */
  void* parallel_host;                /* passed back to parallel_for */
  int32_t per_sample;                 /* 1: BackwardWeights gives a gradient for each image,
                                         (N, weights...) and (N, OC); 0: their sum */
} convgrad_options;

#define CONVGRAD_OPTIONS_INIT \
  { sizeof(convgrad_options), 0, -1, 0.0f, NULL, NULL, NULL, 0 }

typedef struct convgrad_operation convgrad_operation;
typedef struct convgrad_plan convgrad_plan;
typedef struct convgrad_backward convgrad_backward;

CONVGRAD_API const char* convgrad_version(void);

/* "" when the last call succeeded. Valid until the thread's next call. */
CONVGRAD_API const char* convgrad_last_error(void);

/* The kernels of this build; "" beyond the last. */
CONVGRAD_API size_t convgrad_num_kernels(void);
CONVGRAD_API const char* convgrad_kernel_name(size_t index);

/* `name` as in the specification, such as "ConvTransposeBackwardWeights". */
CONVGRAD_API convgrad_status convgrad_operation_create(const char* name,
                                                       convgrad_operation** operation);
CONVGRAD_API void convgrad_operation_destroy(convgrad_operation* operation);
CONVGRAD_API convgrad_status convgrad_operation_set_s64(convgrad_operation* operation,
                                                        const char* attribute, int64_t value);
CONVGRAD_API convgrad_status convgrad_operation_set_s64s(convgrad_operation* operation,
                                                         const char* attribute,
                                                         const int64_t* values, size_t count);
CONVGRAD_API convgrad_status convgrad_operation_set_string(convgrad_operation* operation,
                                                           const char* attribute,
                                                           const char* value);

/* `outputs` may be null and `options` may be null. Inputs and outputs in the index order of the
 * specification; output 1 of the BackwardWeights operations is diff_bias, if given. The outputs of
 * these may be f32 where the inputs are bf16 or f16; of rank 0, a type alone asks for that. */
CONVGRAD_API convgrad_status convgrad_plan_create(const convgrad_operation* operation,
                                                  const convgrad_tensor* inputs, size_t num_inputs,
                                                  const convgrad_tensor* outputs,
                                                  size_t num_outputs,
                                                  const convgrad_options* options,
                                                  convgrad_plan** plan);
CONVGRAD_API void convgrad_plan_destroy(convgrad_plan* plan);

/* The complete description of an output; the pointers live as long as the plan. */
CONVGRAD_API convgrad_status convgrad_plan_output(const convgrad_plan* plan, size_t index,
                                                  convgrad_tensor* output);
CONVGRAD_API size_t convgrad_plan_num_outputs(const convgrad_plan* plan);
/* Of one run: two for each multiply-add whose factors both lie inside their tensors. */
CONVGRAD_API double convgrad_plan_flops(const convgrad_plan* plan);
/* Before it is rounded to its type, an element is off by at most this share of the sum of the
 * magnitudes of its terms, if no product underflows and no factor of bf16 is subnormal. */
CONVGRAD_API double convgrad_plan_error_bound(const convgrad_plan* plan);
CONVGRAD_API int64_t convgrad_plan_workspace_bytes(const convgrad_plan* plan);
/* Live as long as the plan. */
CONVGRAD_API const char* convgrad_plan_kernel(const convgrad_plan* plan);
CONVGRAD_API const char* convgrad_plan_explanation(const convgrad_plan* plan);

/* May be called for one plan from several threads at once, with different outputs and workspaces.
 * `workspace` may be null when no bytes are needed. */
CONVGRAD_API convgrad_status convgrad_plan_run(const convgrad_plan* plan, const void* const* inputs,
                                               size_t num_inputs, void* const* outputs,
                                               size_t num_outputs, void* workspace);

/* One call: plan, workspace and run. */
CONVGRAD_API convgrad_status convgrad_run(const convgrad_operation* operation,
                                          const convgrad_tensor* inputs,
                                          const void* const* input_data, size_t num_inputs,
                                          const convgrad_tensor* outputs, void* const* output_data,
                                          size_t num_outputs, const convgrad_options* options);

/* Any of the gradients of one forward operation, "Convolution" or "ConvTranspose", in one call.
 * inputs: src, weights, diff_dst, all of them described. outputs: diff_src, diff_weights,
 * diff_bias; CONVGRAD_UNDEF is not wanted, of rank 0 a type alone asks for one. Each result has the
 * bits of the single operation, and what is not wanted is not computed. */
CONVGRAD_API convgrad_status convgrad_backward_create(const convgrad_operation* forward,
                                                      const convgrad_tensor inputs[3],
                                                      const convgrad_tensor outputs[3],
                                                      const convgrad_options* options,
                                                      convgrad_backward** backward);
CONVGRAD_API void convgrad_backward_destroy(convgrad_backward* backward);

/* Of type CONVGRAD_UNDEF and rank 0 where it is not wanted; the pointers live as long as the
 * handle. */
CONVGRAD_API convgrad_status convgrad_backward_output(const convgrad_backward* backward,
                                                      size_t index, convgrad_tensor* output);
CONVGRAD_API double convgrad_backward_flops(const convgrad_backward* backward);
/* Of the part that needs the most: they run one after the other. */
CONVGRAD_API int64_t convgrad_backward_workspace_bytes(const convgrad_backward* backward);
/* Lives as long as the handle. */
CONVGRAD_API const char* convgrad_backward_explanation(const convgrad_backward* backward);

/* As convgrad_plan_run. Outputs that are not wanted are null; src may be null without diff_weights,
 * weights without diff_src. */
CONVGRAD_API convgrad_status convgrad_backward_run(const convgrad_backward* backward,
                                                   const void* const inputs[3],
                                                   void* const outputs[3], void* workspace);

#ifdef __cplusplus
}
#endif

#endif /* CONVGRAD_CONVGRAD_H_ */
