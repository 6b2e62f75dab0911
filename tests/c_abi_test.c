/* The C ABI, called from C: every function, its results and its errors. */
#include <convgrad/convgrad.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "%s:%d: %s failed; last error: %s\n", __FILE__, __LINE__, #condition, \
              convgrad_last_error());                                                       \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

static int says(const char* part) { return strstr(convgrad_last_error(), part) != NULL; }

static const int64_t kOnes[] = {1, 1};
static const int64_t kZeros[] = {0, 0};
static const int64_t kSrc[] = {1, 4, 3, 3};
static const int64_t kDst[] = {1, 4, 2, 2};
static const int64_t kWeights[] = {4, 2, 2, 2};

static convgrad_operation* make_operation(const char* name) {
  convgrad_operation* operation = NULL;
  CHECK(convgrad_operation_create(name, &operation) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_s64s(operation, "strides", kOnes, 2) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_s64s(operation, "pads_begin", kZeros, 2) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_s64s(operation, "pads_end", NULL, 0) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_s64s(operation, "dilations", kOnes, 2) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_s64(operation, "groups", 2) == CONVGRAD_OK);
  CHECK(convgrad_operation_set_string(operation, "data_format", "NCX") == CONVGRAD_OK);
  CHECK(convgrad_operation_set_string(operation, "weights_format", "OIX") == CONVGRAD_OK);
  return operation;
}

static void test_version_and_null(void) {
  CHECK(strcmp(convgrad_version(), CONVGRAD_VERSION_STRING) == 0);
  convgrad_operation_destroy(NULL);
  convgrad_plan_destroy(NULL);
  CHECK(convgrad_plan_workspace_bytes(NULL) == 0);
  CHECK(strcmp(convgrad_plan_kernel(NULL), "") == 0);
  CHECK(strcmp(convgrad_plan_explanation(NULL), "") == 0);
}

static void test_operation_errors(void) {
  convgrad_operation* operation = (convgrad_operation*)&failures;
  CHECK(convgrad_operation_create("Convolute", &operation) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(operation == NULL && says("Convolute"));
  CHECK(convgrad_operation_create(NULL, &operation) == CONVGRAD_INVALID_ARGUMENT && says("name"));
  CHECK(convgrad_operation_create("Convolution", NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_operation_set_s64(NULL, "groups", 1) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("operation is a null pointer"));
  CHECK(convgrad_operation_create("ConvolutionBackpropFilters-1", &operation) == CONVGRAD_OK);
  CHECK(says("") && strcmp(convgrad_last_error(), "") == 0);
  CHECK(convgrad_operation_set_s64(operation, NULL, 1) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_operation_set_s64s(operation, "strides", NULL, 2) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("values is a null pointer"));
  CHECK(convgrad_operation_set_string(operation, "auto_pad", NULL) == CONVGRAD_INVALID_ARGUMENT);
  convgrad_operation_destroy(operation);
}

static void test_forward(void) {
  convgrad_operation* operation = make_operation("Convolution");
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                                    {CONVGRAD_F32, 4, kWeights, NULL, NULL}};
  convgrad_plan* plan = NULL;
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  options.threads = 2;
  options.workspace_limit = 0;
  options.kernel = "oracle";
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, &options, &plan) == CONVGRAD_OK);
  convgrad_operation_destroy(operation); /* a plan does not need it any more */
  convgrad_tensor output;
  CHECK(convgrad_plan_output(plan, 0, &output) == CONVGRAD_OK);
  CHECK(output.type == CONVGRAD_F32 && output.rank == 4);
  CHECK(memcmp(output.extents, kDst, sizeof kDst) == 0);
  CHECK(output.strides[0] == 16 && output.strides[1] == 4 && output.strides[3] == 1);
  CHECK(convgrad_plan_output(plan, 1, &output) == CONVGRAD_INVALID_ARGUMENT && says("output 1"));
  CHECK(convgrad_plan_output(plan, 0, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_output(NULL, 0, &output) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_workspace_bytes(plan) == 0);
  CHECK(convgrad_plan_num_outputs(plan) == 1 && convgrad_plan_num_outputs(NULL) == 0);
  CHECK(convgrad_plan_flops(plan) == 2.0 * 4 * 4 * 2 * 4 && convgrad_plan_flops(NULL) == 0);
  CHECK(convgrad_plan_error_bound(plan) > 0 && convgrad_plan_error_bound(plan) < 1e-14);
  CHECK(convgrad_plan_error_bound(NULL) == 0);
  CHECK(strcmp(convgrad_plan_kernel(plan), "oracle") == 0);
  CHECK(strstr(convgrad_plan_explanation(plan), "fprop f32 g2") != NULL);

  float src[36], weights[32], dst[16];
  for (int i = 0; i < 36; ++i) src[i] = 1;
  for (int i = 0; i < 32; ++i) weights[i] = (float)(i / 8 + 1);
  const void* input_data[] = {src, weights};
  void* output_data[] = {dst};
  CHECK(convgrad_plan_run(plan, input_data, 2, output_data, 1, NULL) == CONVGRAD_OK);
  for (int i = 0; i < 16; ++i) CHECK(dst[i] == (float)(8 * (i / 4 + 1)));

  const void* missing[] = {src, NULL};
  CHECK(convgrad_plan_run(plan, missing, 2, output_data, 1, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("'weights' is a null pointer"));
  CHECK(convgrad_plan_run(plan, NULL, 2, output_data, 1, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_run(plan, input_data, 2, NULL, 1, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_run(plan, input_data, 2, output_data, 0, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_run(NULL, input_data, 2, output_data, 1, NULL) == CONVGRAD_INVALID_ARGUMENT);
  convgrad_plan_destroy(plan);
}

/* Counts that no caller means must be refused before anything is read or allocated. */
static void test_wild_counts(void) {
  convgrad_operation* operation = make_operation("Convolution");
  convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                              {CONVGRAD_F32, 4, kWeights, NULL, NULL}};
  convgrad_plan* plan = NULL;
  const size_t wild = (size_t)-1 / 2;
  CHECK(convgrad_plan_create(operation, inputs, wild, NULL, 0, NULL, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("the number of inputs"));
  CHECK(convgrad_operation_set_s64s(operation, "strides", kOnes, (size_t)-1 / 8 + 1) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("the number of values"));
  inputs[0].rank = 1000000;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_SHAPE);
  CHECK(says("inputs[0] has rank 1000000"));
  inputs[0].rank = 4;
  inputs[0].values = kSrc;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_SHAPE);
  CHECK(says("inputs[0] has values"));
  inputs[0].values = NULL;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_OK);
  const void* data[] = {kSrc, kWeights};
  void* out[] = {&plan};
  CHECK(convgrad_plan_run(plan, data, wild, out, 1, NULL) == CONVGRAD_INVALID_ARGUMENT);
  convgrad_plan_destroy(plan);
  convgrad_operation_destroy(operation);
}

/* A caller built against a later header has more members: fine while they are zero. */
static void test_options_of_other_versions(void) {
  struct {
    convgrad_options known;
    int64_t later[2];
  } options = {CONVGRAD_OPTIONS_INIT, {0, 0}};
  convgrad_operation* operation = make_operation("Convolution");
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                                    {CONVGRAD_F32, 4, kWeights, NULL, NULL}};
  convgrad_plan* plan = NULL;
  options.known.size = sizeof options;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, &options.known, &plan) == CONVGRAD_OK);
  convgrad_plan_destroy(plan);
  options.later[1] = 1;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, &options.known, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("does not know"));
  convgrad_operation_destroy(operation);
}

static void test_kernels(void) {
  CHECK(convgrad_num_kernels() >= 1);
  CHECK(strcmp(convgrad_kernel_name(0), "direct") == 0);
  CHECK(strcmp(convgrad_kernel_name(1), "flat") == 0);
  CHECK(strcmp(convgrad_kernel_name(2), "contract") == 0);
  CHECK(strcmp(convgrad_kernel_name(3), "oracle") == 0);
  CHECK(strcmp(convgrad_kernel_name(convgrad_num_kernels()), "") == 0);
}

static void test_plan_errors(void) {
  convgrad_operation* operation = make_operation("Convolution");
  convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                              {CONVGRAD_F32, 4, kWeights, NULL, NULL}};
  convgrad_plan* plan = NULL;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, NULL) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_create(NULL, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_plan_create(operation, NULL, 2, NULL, 0, NULL, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("inputs is a null pointer"));
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 1, NULL, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  inputs[1].type = CONVGRAD_BF16;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_TYPE);
  CHECK(plan == NULL && says("weights has type bf16, expected f32 as src has"));
  inputs[1].type = (convgrad_type)77;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_TYPE);
  CHECK(says("type 77"));
  inputs[1].type = CONVGRAD_F32;
  inputs[1].rank = -1;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_SHAPE);
  inputs[1].rank = 4;
  inputs[1].extents = NULL;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  inputs[1].extents = kSrc;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, NULL, &plan) == CONVGRAD_INVALID_SHAPE);
  inputs[1].extents = kWeights;
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  options.size = 1;
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, &options, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("options size is 1"));
  options.size = sizeof options;
  options.kernel = "magic";
  CHECK(convgrad_plan_create(operation, inputs, 2, NULL, 0, &options, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("magic"));
  convgrad_operation_destroy(operation);
}

/* One call, with a shape tensor, beta and diff_bias. */
static void test_one_call(void) {
  convgrad_operation* operation = make_operation("ConvolutionBackwardWeights");
  const int64_t four = 4, bias_extent[] = {4};
  const int32_t shape[] = {4, 2, 2, 2};
  float src[36], diff_dst[16], diff_weights[32], diff_bias[4];
  for (int i = 0; i < 36; ++i) src[i] = 1;
  for (int i = 0; i < 16; ++i) diff_dst[i] = (float)(i / 4);
  for (int i = 0; i < 32; ++i) diff_weights[i] = 10;
  for (int i = 0; i < 4; ++i) diff_bias[i] = 20;
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                                    {CONVGRAD_F32, 4, kDst, NULL, NULL},
                                    {CONVGRAD_S32, 1, &four, NULL, NULL}};
  const convgrad_tensor outputs[] = {{CONVGRAD_F32, 4, kWeights, NULL, NULL},
                                     {CONVGRAD_F32, 1, bias_extent, NULL, NULL}};
  const void* input_data[] = {src, diff_dst, shape};
  void* output_data[] = {diff_weights, diff_bias};
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  options.beta = 1;
  CHECK(convgrad_run(operation, inputs, input_data, 3, outputs, output_data, 2, &options) ==
        CONVGRAD_OK);
  for (int i = 0; i < 32; ++i) CHECK(diff_weights[i] == (float)(10 + 4 * (i / 8)));
  for (int i = 0; i < 4; ++i) CHECK(diff_bias[i] == (float)(20 + 4 * i));
  CHECK(convgrad_run(operation, inputs, NULL, 3, outputs, output_data, 2, NULL) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_run(operation, inputs, input_data, 3, outputs, NULL, 2, NULL) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_run(NULL, inputs, input_data, 3, outputs, output_data, 2, NULL) ==
        CONVGRAD_INVALID_ARGUMENT);
  convgrad_operation_destroy(operation);
}

/* A host with threads of its own: one after another, the last first; and all at once. */
struct host {
  int calls, largest;
};

static void backwards(void* of, int count, void (*task)(void* context, int i), void* context) {
  struct host* host = of;
  ++host->calls;
  if (count > host->largest) host->largest = count;
  for (int i = count; i-- > 0;) task(context, i);
}

struct call {
  void (*task)(void* context, int i);
  void* context;
  int i;
};

static void* start(void* of) {
  const struct call* call = of;
  call->task(call->context, call->i);
  return NULL;
}

static void at_once(void* of, int count, void (*task)(void* context, int i), void* context) {
  struct host* host = of;
  pthread_t threads[16];
  struct call calls[16];
  ++host->calls;
  if (count > host->largest) host->largest = count;
  for (int i = 0; i < count && i < 16; ++i) {
    calls[i] = (struct call){task, context, i};
    CHECK(pthread_create(&threads[i], NULL, start, &calls[i]) == 0);
  }
  for (int i = 0; i < count && i < 16; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static float src_of_host[16 * 60 * 60], weights_of_host[16 * 8 * 2 * 2];
static float dst_of_one[16 * 59 * 59], dst_of_host[16 * 59 * 59];

static void test_parallel_for(void) {
  static const int64_t src[] = {1, 16, 60, 60}, weights[] = {16, 8, 2, 2};
  static const int64_t dst[] = {1, 16, 59, 59};
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, src, NULL, NULL},
                                    {CONVGRAD_F32, 4, weights, NULL, NULL}};
  const convgrad_tensor outputs[] = {{CONVGRAD_F32, 4, dst, NULL, NULL}};
  const void* input_data[] = {src_of_host, weights_of_host};
  void* output_data[] = {dst_of_one};
  for (int i = 0; i < 16 * 60 * 60; ++i) src_of_host[i] = 1.0f / (float)(i + 1);
  for (int i = 0; i < 16 * 8 * 2 * 2; ++i) weights_of_host[i] = 1.0f / (float)(1000 - i);
  convgrad_operation* operation = make_operation("Convolution");
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  options.threads = 1;
  CHECK(convgrad_run(operation, inputs, input_data, 2, outputs, output_data, 1, &options) ==
        CONVGRAD_OK);
  output_data[0] = dst_of_host;
  for (int i = 0; i < 2; ++i) {
    struct host host = {0, 0};
    memset(dst_of_host, 0xff, sizeof dst_of_host);
    options.threads = 4;
    options.parallel_for = i == 0 ? backwards : at_once;
    options.parallel_host = &host;
    CHECK(convgrad_run(operation, inputs, input_data, 2, outputs, output_data, 1, &options) ==
          CONVGRAD_OK);
    CHECK(memcmp(dst_of_host, dst_of_one, sizeof dst_of_one) == 0);
    CHECK(host.calls > 0 && host.largest > 1 && host.largest <= 4);
  }
  convgrad_operation_destroy(operation);
}

/* f32 gradients from bf16: the type alone asks for it, and beta adds to f32. */
static void test_wider_gradients(void) {
  static const int64_t bias_extents[] = {4};
  convgrad_operation* operation = make_operation("ConvolutionBackwardWeights");
  CHECK(convgrad_operation_set_s64s(operation, "weights_shape", kWeights, 4) == CONVGRAD_OK);
  const convgrad_tensor inputs[] = {{CONVGRAD_BF16, 4, kSrc, NULL, NULL},
                                    {CONVGRAD_BF16, 4, kDst, NULL, NULL}};
  convgrad_tensor outputs[] = {{CONVGRAD_F32, 0, NULL, NULL, NULL},
                               {CONVGRAD_F32, 0, NULL, NULL, NULL}};
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  options.beta = 0.5f;
  convgrad_plan* plan = NULL;
  CHECK(convgrad_plan_create(operation, inputs, 2, outputs, 2, &options, &plan) == CONVGRAD_OK);
  convgrad_tensor output;
  CHECK(convgrad_plan_output(plan, 0, &output) == CONVGRAD_OK && output.type == CONVGRAD_F32);
  CHECK(output.rank == 4 && memcmp(output.extents, kWeights, sizeof kWeights) == 0);
  CHECK(convgrad_plan_output(plan, 1, &output) == CONVGRAD_OK && output.type == CONVGRAD_F32);
  CHECK(strstr(convgrad_plan_explanation(plan), "wgrad bf16:f32 g2") != NULL);

  uint16_t src[36], dst[16];
  float weights[32], bias[4];
  for (int i = 0; i < 36; ++i) src[i] = 0x4080; /* 4 */
  for (int i = 0; i < 16; ++i) dst[i] = 0x3f81; /* 1 + 2^-7: beside 512, bf16 cannot show it */
  for (int i = 0; i < 32; ++i) weights[i] = 1024;
  for (int i = 0; i < 4; ++i) bias[i] = 2048;
  const void* input_data[] = {src, dst};
  void* output_data[] = {weights, bias};
  CHECK(convgrad_plan_run(plan, input_data, 2, output_data, 2, NULL) == CONVGRAD_OK);
  for (int i = 0; i < 32; ++i) CHECK(weights[i] == 512 + 16.125f);
  for (int i = 0; i < 4; ++i) CHECK(bias[i] == 1024 + 4.03125f);
  convgrad_plan_destroy(plan);

  outputs[0] = (convgrad_tensor){CONVGRAD_F32, 4, kWeights, NULL, NULL};
  outputs[1] = (convgrad_tensor){CONVGRAD_F32, 1, bias_extents, NULL, NULL};
  CHECK(convgrad_run(operation, inputs, input_data, 2, outputs, output_data, 2, &options) ==
        CONVGRAD_OK);
  for (int i = 0; i < 32; ++i) CHECK(weights[i] == 264.0625f + 16.125f);
  outputs[1].type = CONVGRAD_BF16;
  CHECK(convgrad_run(operation, inputs, input_data, 2, outputs, output_data, 2, &options) ==
        CONVGRAD_INVALID_TYPE);
  CHECK(says("diff_bias has type bf16, expected f32 as diff_weights has"));
  convgrad_operation_destroy(operation);
}

/* A gradient for each of two images. */
static void test_per_sample(void) {
  static const int64_t src[] = {2, 4, 3, 3}, dst[] = {2, 4, 2, 2};
  convgrad_operation* operation = make_operation("ConvolutionBackwardWeights");
  CHECK(convgrad_operation_set_s64s(operation, "weights_shape", kWeights, 4) == CONVGRAD_OK);
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, src, NULL, NULL},
                                    {CONVGRAD_F32, 4, dst, NULL, NULL}};
  const convgrad_tensor outputs[] = {{CONVGRAD_F32, 0, NULL, NULL, NULL},
                                     {CONVGRAD_F32, 0, NULL, NULL, NULL}};
  convgrad_options options = CONVGRAD_OPTIONS_INIT;
  CHECK(options.per_sample == 0);
  options.per_sample = 1;
  convgrad_plan* plan = NULL;
  CHECK(convgrad_plan_create(operation, inputs, 2, outputs, 2, &options, &plan) == CONVGRAD_OK);
  convgrad_tensor output;
  CHECK(convgrad_plan_output(plan, 0, &output) == CONVGRAD_OK && output.rank == 5);
  CHECK(output.extents[0] == 2 && memcmp(output.extents + 1, kWeights, sizeof kWeights) == 0);
  CHECK(convgrad_plan_output(plan, 1, &output) == CONVGRAD_OK && output.rank == 2);
  CHECK(output.extents[0] == 2 && output.extents[1] == 4);
  float src_data[72], dst_data[32], weights[64], bias[8];
  for (int i = 0; i < 72; ++i) src_data[i] = (float)(1 + i / 36);
  for (int i = 0; i < 32; ++i) dst_data[i] = (float)(1 + i / 16);
  const void* input_data[] = {src_data, dst_data};
  void* output_data[] = {weights, bias};
  CHECK(convgrad_plan_workspace_bytes(plan) == 0);
  CHECK(convgrad_plan_run(plan, input_data, 2, output_data, 2, NULL) == CONVGRAD_OK);
  for (int i = 0; i < 64; ++i) CHECK(weights[i] == (i < 32 ? 4.0f : 16.0f));
  for (int i = 0; i < 8; ++i) CHECK(bias[i] == (i < 4 ? 4.0f : 8.0f));
  convgrad_plan_destroy(plan);

  options.per_sample = 2;
  CHECK(convgrad_plan_create(operation, inputs, 2, outputs, 2, &options, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("options per_sample is 2, expected 0 or 1"));
  /* A caller built against a header that had no such member. */
  options.per_sample = 1;
  options.size = offsetof(convgrad_options, per_sample);
  CHECK(convgrad_plan_create(operation, inputs, 2, outputs, 2, &options, &plan) == CONVGRAD_OK);
  CHECK(convgrad_plan_output(plan, 0, &output) == CONVGRAD_OK && output.rank == 4);
  convgrad_plan_destroy(plan);
  options.size += 1;
  CHECK(convgrad_plan_create(operation, inputs, 2, outputs, 2, &options, &plan) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(says("which no version has"));
  convgrad_operation_destroy(operation);
}

/* Any of the gradients of a forward operation. */
static void test_backward(void) {
  convgrad_operation* forward = make_operation("Convolution");
  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, kSrc, NULL, NULL},
                                    {CONVGRAD_F32, 4, kWeights, NULL, NULL},
                                    {CONVGRAD_F32, 4, kDst, NULL, NULL}};
  const convgrad_tensor wanted = {CONVGRAD_F32, 0, NULL, NULL, NULL};
  const convgrad_tensor none = {CONVGRAD_UNDEF, 0, NULL, NULL, NULL};
  float src[36], weights[32], diff_dst[16], diff_src[36], diff_weights[32], diff_bias[4];
  for (int i = 0; i < 36; ++i) src[i] = 1;
  for (int i = 0; i < 32; ++i) weights[i] = 1;
  for (int i = 0; i < 16; ++i) diff_dst[i] = (float)(1 + i / 4);
  for (int subset = 1; subset < 8; ++subset) {
    const convgrad_tensor outputs[] = {subset & 1 ? wanted : none, subset & 2 ? wanted : none,
                                       subset & 4 ? wanted : none};
    convgrad_backward* backward = NULL;
    CHECK(convgrad_backward_create(forward, inputs, outputs, NULL, &backward) == CONVGRAD_OK);
    convgrad_tensor output;
    CHECK(convgrad_backward_output(backward, 2, &output) == CONVGRAD_OK);
    CHECK(output.type == (subset & 4 ? CONVGRAD_F32 : CONVGRAD_UNDEF));
    CHECK(output.rank == (subset & 4 ? 1 : 0) && (!(subset & 4) || output.extents[0] == 4));
    CHECK(convgrad_backward_output(backward, 3, &output) == CONVGRAD_INVALID_ARGUMENT);
    CHECK((convgrad_backward_flops(backward) > 0) == (subset != 4));
    CHECK(strstr(convgrad_backward_explanation(backward), "wgrad") != NULL || subset == 1);
    CHECK(convgrad_backward_workspace_bytes(backward) == 0);
    memset(diff_src, 0xff, sizeof diff_src);
    memset(diff_weights, 0xff, sizeof diff_weights);
    memset(diff_bias, 0xff, sizeof diff_bias);
    const void* input_data[] = {subset & 2 ? src : NULL, subset & 1 ? weights : NULL, diff_dst};
    void* output_data[] = {subset & 1 ? diff_src : NULL, subset & 2 ? diff_weights : NULL,
                           subset & 4 ? diff_bias : NULL};
    CHECK(convgrad_backward_run(backward, input_data, output_data, NULL) == CONVGRAD_OK);
    /* The middle pixel of a channel meets all four taps of both outputs of its group. */
    if (subset & 1) CHECK(diff_src[4] == 4 * (1 + 2) && diff_src[31] == 4 * (3 + 4));
    for (int i = 0; i < 32 && subset & 2; ++i) CHECK(diff_weights[i] == (float)(4 * (1 + i / 8)));
    for (int i = 0; i < 4 && subset & 4; ++i) CHECK(diff_bias[i] == (float)(4 * (1 + i)));
    input_data[2] = NULL;
    CHECK(convgrad_backward_run(backward, input_data, output_data, NULL) ==
          CONVGRAD_INVALID_ARGUMENT);
    CHECK(says("'diff_dst' is a null pointer"));
    convgrad_backward_destroy(backward);
  }
  convgrad_backward* backward = NULL;
  const convgrad_tensor nothing[] = {none, none, none};
  CHECK(convgrad_backward_create(forward, inputs, nothing, NULL, &backward) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(backward == NULL && says("no output is wanted"));
  CHECK(convgrad_backward_create(NULL, inputs, nothing, NULL, &backward) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_backward_create(forward, NULL, nothing, NULL, &backward) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_backward_create(forward, inputs, NULL, NULL, &backward) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_backward_create(forward, inputs, nothing, NULL, NULL) ==
        CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_backward_run(NULL, NULL, NULL, NULL) == CONVGRAD_INVALID_ARGUMENT);
  CHECK(convgrad_backward_workspace_bytes(NULL) == 0 && convgrad_backward_flops(NULL) == 0);
  CHECK(strcmp(convgrad_backward_explanation(NULL), "") == 0);
  convgrad_backward_destroy(NULL);
  convgrad_operation_destroy(forward);
}

int main(void) {
  test_version_and_null();
  test_operation_errors();
  test_forward();
  test_plan_errors();
  test_wild_counts();
  test_options_of_other_versions();
  test_kernels();
  test_one_call();
  test_parallel_for();
  test_wider_gradients();
  test_per_sample();
  test_backward();
  if (failures == 0) printf("the C ABI holds\n");
  return failures == 0 ? 0 : 1;
}
