/* The gradient of a ConvTranspose with respect to its weights, from C. Build it against an
 * installed convgrad:  cc weights_gradient.c $(pkg-config --cflags --libs convgrad) */
#include <convgrad/convgrad.h>
#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, convgrad_last_error());
  return 1;
}

int main(void) {
  const int64_t two[] = {2, 2}, one[] = {1, 1}, zero[] = {0, 0};
  const int64_t src_extents[] = {1, 2, 3, 3};      /* N, IC, H, W */
  const int64_t diff_dst_extents[] = {1, 1, 6, 6}; /* N, OC, H, W */
  const int64_t weights_extents[] = {2, 1, 2, 2};  /* IC, OC, KH, KW */
  float src[18], diff_dst[36], diff_weights[8];
  for (size_t i = 0; i < COUNT(src); ++i) src[i] = (float)i;
  for (size_t i = 0; i < COUNT(diff_dst); ++i) diff_dst[i] = (float)(i % 6);

  convgrad_operation* operation = NULL;
  if (convgrad_operation_create("ConvTransposeBackwardWeights", &operation) != CONVGRAD_OK) {
    return fail("operation");
  }
  convgrad_operation_set_s64s(operation, "strides", two, 2);
  convgrad_operation_set_s64s(operation, "pads_begin", zero, 2);
  convgrad_operation_set_s64s(operation, "pads_end", zero, 2);
  convgrad_operation_set_s64s(operation, "dilations", one, 2);
  convgrad_operation_set_string(operation, "data_format", "NCX");
  convgrad_operation_set_string(operation, "weights_format", "IOX");

  const convgrad_tensor inputs[] = {{CONVGRAD_F32, 4, src_extents, NULL, NULL},
                                    {CONVGRAD_F32, 4, diff_dst_extents, NULL, NULL}};
  const convgrad_tensor output = {CONVGRAD_F32, 4, weights_extents, NULL, NULL};
  convgrad_plan* plan = NULL;
  if (convgrad_plan_create(operation, inputs, 2, &output, 1, NULL, &plan) != CONVGRAD_OK) {
    return fail("plan");
  }
  const void* input_data[] = {src, diff_dst};
  void* output_data[] = {diff_weights};
  if (convgrad_plan_run(plan, input_data, 2, output_data, 1, NULL) != CONVGRAD_OK) {
    return fail("run");
  }
  for (size_t i = 0; i < COUNT(diff_weights); ++i) printf("%g ", (double)diff_weights[i]);
  printf("\n%s", convgrad_plan_explanation(plan));
  convgrad_plan_destroy(plan);
  convgrad_operation_destroy(operation);
  return 0;
}
