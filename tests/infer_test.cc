// What is inferred: the output's shape for all ten names, pads from auto_pad, output padding, where
// a shape may come from, unknown extents, strides. The numbers are worked by hand from SPEC.md, in
// its words: N, IC, OC, I, O, K, S, D, PB, PE, OP. What is refused, and how, is in error_test.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/convgrad.hpp"
#include "spec/check.h"

namespace convgrad {
namespace {

using enum OpKind;
constexpr int64_t kAny = std::numeric_limits<int64_t>::min();  // unknown, as oneDNN writes it
constexpr int64_t kRefused = -1;

struct Request {
  OpKind kind;
  Attributes attributes;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs = {};

  Result<Plan> Make() const { return Plan::Make({kind, attributes}, inputs, outputs); }
  Request& Set(std::string name, AttributeValue value) {
    attributes.Set(std::move(name), std::move(value));
    return *this;
  }
  Request& Outputs(std::vector<TensorDesc> descs) {
    outputs = std::move(descs);
    return *this;
  }
  Request& Late(DataType type) {  // a shape tensor whose values are known only when it runs
    inputs.push_back({type, {static_cast<int64_t>(inputs[0].extents.size())}, {}, {}});
    return *this;
  }
  Request& Shape(Dims values) {
    Late(DataType::kS32).inputs.back().values = std::move(values);
    return *this;
  }
};

TensorDesc F32(Dims extents, Dims strides = {}) {
  return {DataType::kF32, std::move(extents), std::move(strides), {}};
}

// The extents of output 0; none, and a failure, where there is no plan.
Dims Inferred(const Request& request) {
  const Result<Plan> plan = request.Make();
  if (plan.ok()) return plan->output().extents;
  ADD_FAILURE() << NameOf(request.kind) << ": " << plan.status().message();
  return {};
}

bool Refused(const Request& request) { return !request.Make().ok(); }

// All names, ranks and formats -------------------------------------------------------------------

// N 2, IC 6, OC 4, groups 2; three axes, of which a rank takes the first ones. E is 3, 3, 4.
const Dims kI = {7, 9, 8}, kK = {3, 2, 4};
const Dims kConvO = {3, 8, 3};           // floor(5/2)+1, 7/1+1, floor(7/3)+1
const Dims kTransposedO = {14, 10, 22};  // 2*6+3-1, 1*8+3-1, 3*7+4-3

Dims First(const Dims& list, int rank) { return {list.begin(), list.begin() + rank}; }

// Axes in the order of a format's letters.
Dims Lay(const std::string& format, const std::vector<std::pair<char, Dims>>& axes) {
  Dims dims;
  for (const char letter : format) {
    for (const auto& [axis, extents] : axes) {
      if (axis == letter) dims.insert(dims.end(), extents.begin(), extents.end());
    }
  }
  return dims;
}

struct Formats {
  int rank;
  std::string data, weights;

  TensorDesc Data(int64_t n, int64_t c, const Dims& x) const {
    return F32(Lay(data, {{'N', {n}}, {'C', {c}}, {'X', First(x, rank)}}));
  }
  TensorDesc Weights(int64_t o, int64_t i) const {
    return F32(Lay(weights, {{'O', {o}}, {'I', {i}}, {'X', First(kK, rank)}}));
  }
  Request Ask(OpKind kind, std::vector<TensorDesc> inputs) const {
    const bool first = NameOf(kind).find("Backprop") != std::string_view::npos;
    return {kind,
            {{"strides", First({2, 1, 3}, rank)},
             {"pads_begin", First({1, 0, 2}, rank)},
             {"pads_end", First({0, 1, 1}, rank)},
             {"dilations", First({1, 2, 1}, rank)},
             {"groups", 2},
             {"data_format", data},
             {first ? "filter_format" : "weights_format", weights}},
            std::move(inputs)};
  }
};

std::vector<Formats> AllFormats(const std::string& weights_a, const std::string& weights_b) {
  std::vector<Formats> all;
  for (const int rank : {1, 2, 3}) {
    for (const char* data : {"NXC", "NCX"}) {
      for (const std::string& weights : {weights_a, weights_b})
        all.push_back({rank, data, weights});
    }
  }
  return all;
}

TEST(Infer, ConvolutionFamily) {
  for (const Formats& f : AllFormats("XIO", "OIX")) {
    SCOPED_TRACE(f.data + " " + f.weights + " rank " + std::to_string(f.rank));
    const TensorDesc src = f.Data(2, 6, kI), dst = f.Data(2, 4, kConvO), weights = f.Weights(4, 3);
    const TensorDesc src_pixels = f.Data(kAny, -1, kI), taps = f.Weights(-1, kAny);
    EXPECT_EQ(Inferred(f.Ask(kConvolution, {src, weights})), dst.extents);
    for (const auto& [kind, shape] : {std::pair(kConvolutionBackwardData, "dst_shape"),
                                      {kConvolutionBackpropData, "output_shape"}}) {
      EXPECT_EQ(Inferred(f.Ask(kind, {dst, weights}).Set(shape, src.extents)), src.extents);
      EXPECT_EQ(Inferred(f.Ask(kind, {dst, weights}).Outputs({src_pixels})), src.extents);
    }
    for (const auto& [kind, shape] : {std::pair(kConvolutionBackwardWeights, "weights_shape"),
                                      {kConvolutionBackpropFilters, "filter_shape"}}) {
      EXPECT_EQ(Inferred(f.Ask(kind, {src, dst}).Set(shape, weights.extents)), weights.extents);
      EXPECT_EQ(Inferred(f.Ask(kind, {src, dst}).Outputs({taps})), weights.extents);
    }
  }
}

TEST(Infer, ConvTransposeFamily) {
  for (const Formats& f : AllFormats("XOI", "IOX")) {
    SCOPED_TRACE(f.data + " " + f.weights + " rank " + std::to_string(f.rank));
    const TensorDesc src = f.Data(2, 6, kI), dst = f.Data(2, 4, kTransposedO);
    const TensorDesc deployed = f.Weights(2, 6), documented = f.Weights(4, 3);
    for (const TensorDesc& weights : {deployed, documented}) {
      EXPECT_EQ(Inferred(f.Ask(kConvTranspose, {src, weights})), dst.extents);
      EXPECT_EQ(Inferred(f.Ask(kConvTransposeBackwardData, {dst, weights})), src.extents);
      EXPECT_EQ(Inferred(f.Ask(kConvTransposeBackwardWeights, {src, dst})
                             .Set("weights_shape", weights.extents)),
                weights.extents);
    }
    // Unknown channels become the deployed shape, unless the known one says otherwise.
    const Request weights = f.Ask(kConvTransposeBackwardWeights, {src, dst});
    EXPECT_EQ(Inferred(Request(weights).Outputs({f.Weights(-1, -1)})), deployed.extents);
    EXPECT_EQ(Inferred(Request(weights).Outputs({f.Weights(2, -1)})), deployed.extents);
    EXPECT_EQ(Inferred(Request(weights).Outputs({f.Weights(4, -1)})), documented.extents);
    EXPECT_EQ(Inferred(Request(weights).Outputs({f.Weights(-1, 6)})), deployed.extents);
    EXPECT_EQ(Inferred(Request(weights).Outputs({f.Weights(-1, 3)})), documented.extents);
  }
}

TEST(Infer, ConvTransposeFiltersOfTheFirstGeneration) {
  for (const Formats& f : AllFormats("XIO", "OIX")) {
    SCOPED_TRACE(f.data + " " + f.weights + " rank " + std::to_string(f.rank));
    const TensorDesc src = f.Data(2, 6, kI), dst = f.Data(2, 4, kTransposedO);
    const TensorDesc filter = f.Weights(2, 6);  // OC / groups, IC
    EXPECT_EQ(Inferred(f.Ask(kConvTransposeBackpropData, {dst, filter})), src.extents);
    const Request filters = f.Ask(kConvTransposeBackpropFilters, {src, dst});
    EXPECT_EQ(Inferred(Request(filters).Set("filter_shape", filter.extents)), filter.extents);
    EXPECT_EQ(Inferred(Request(filters).Outputs({f.Weights(-1, -1)})), filter.extents);
    EXPECT_TRUE(Refused(Request(filters).Set("filter_shape", f.Weights(4, 3).extents)));
  }
}

// The same as literals, so that a mistake in Lay would show; groups, formats by default.
TEST(Infer, DefaultsAreChannelsLast) {
  const Attributes window = {
      {"strides", {2, 1}}, {"pads_begin", {1, 0}}, {"pads_end", {0, 1}}, {"dilations", {1, 2}}};
  const TensorDesc src = F32({2, 7, 9, 6}), conv_dst = F32({2, 3, 8, 4});
  const TensorDesc transposed_dst = F32({2, 14, 10, 4});
  const TensorDesc xio = F32({3, 2, 6, 4}), xoi = F32({3, 2, 4, 6});
  EXPECT_EQ(Inferred({kConvolution, window, {src, xio}}), conv_dst.extents);
  EXPECT_EQ(Inferred({kConvTranspose, window, {src, xoi}}), transposed_dst.extents);
  EXPECT_EQ(Inferred({kConvTransposeBackwardData, window, {transposed_dst, xoi}}), src.extents);
  EXPECT_EQ(Inferred({kConvTransposeBackpropData, window, {transposed_dst, xio}}), src.extents);
  const TensorDesc taps = F32({3, 2, -1, -1});
  EXPECT_EQ(Inferred({kConvolutionBackwardWeights, window, {src, conv_dst}, {taps}}), xio.extents);
  EXPECT_EQ(Inferred({kConvolutionBackpropFilters, window, {src, conv_dst}, {taps}}), xio.extents);
  EXPECT_EQ(Inferred({kConvTransposeBackwardWeights, window, {src, transposed_dst}, {taps}}),
            xoi.extents);
  EXPECT_EQ(Inferred({kConvTransposeBackpropFilters, window, {src, transposed_dst}, {taps}}),
            xio.extents);
}

TEST(Infer, TypeOfTheOutputIsThatOfTheInputs) {
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    Request request = Formats{1, "NCX", "OIX"}.Ask(kConvolution, {});
    request.inputs = {{type, {2, 6, 7}, {}, {}}, {type, {4, 3, 3}, {}, {}}};
    const Result<Plan> plan = request.Make();
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->output().type, type);
  }
}

// One axis ---------------------------------------------------------------------------------------

constexpr OpKind kConvolutions[] = {kConvolution, kConvolutionBackwardData,
                                    kConvolutionBackwardWeights};
constexpr OpKind kConvTransposes[] = {kConvTranspose, kConvTransposeBackwardData,
                                      kConvTransposeBackwardWeights};

// One channel and one spatial axis; `in` and `out` are I and O of the forward operation.
struct Line {
  int64_t in, out, taps;
  int64_t stride = 1, dilation = 1, begin = 0, end = 0;
  Dims output_padding = {};
  std::string auto_pad = "none";
};

Request Of(OpKind kind, const Line& line) {
  const TensorDesc src = F32({1, 1, line.in}), dst = F32({1, 1, line.out});
  const TensorDesc weights = F32({1, 1, line.taps});
  const bool transposed = kind >= kConvTranspose;
  Request request{kind,
                  {{"strides", {line.stride}},
                   {"pads_begin", {line.begin}},
                   {"pads_end", {line.end}},
                   {"dilations", {line.dilation}},
                   {"auto_pad", line.auto_pad},
                   {"data_format", "NCX"},
                   {"weights_format", transposed ? "IOX" : "OIX"}},
                  {src, weights}};
  if (!line.output_padding.empty()) request.Set("output_padding", line.output_padding);
  if (kind == kConvolutionBackwardData) request.Set("dst_shape", src.extents);
  if (kind == kConvolutionBackwardData || kind == kConvTransposeBackwardData) {
    request.inputs = {dst, weights};
  }
  if (kind == kConvolutionBackwardWeights || kind == kConvTransposeBackwardWeights) {
    request.inputs = {src, dst};
    request.Set("weights_shape", weights.extents);
  }
  return request;
}

// The output's extent, or kRefused.
int64_t Extent(OpKind kind, const Line& line) {
  const Result<Plan> plan = Of(kind, line).Make();
  return plan.ok() ? plan->output().extents[2] : kRefused;
}

// All three operations of a family agree on this axis: each infers, or accepts, its own extent.
void ExpectLegal(bool transposed, const Line& line) {
  for (const OpKind kind : transposed ? kConvTransposes : kConvolutions) {
    const Result<Plan> plan = Of(kind, line).Make();
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const bool forward = kind == kConvolution || kind == kConvTranspose;
    const bool data = kind == kConvolutionBackwardData || kind == kConvTransposeBackwardData;
    EXPECT_EQ(plan->output().extents[2], forward ? line.out
                                         : data  ? line.in
                                                 : line.taps)
        << NameOf(kind);
  }
}

// {PB, PE} as the plan uses them.
Dims Pads(OpKind kind, const Line& line) {
  const Request r = Of(kind, line);
  const Result<CheckedOperation> checked = Check({r.kind, r.attributes}, r.inputs, r.outputs);
  if (!checked.ok()) {
    ADD_FAILURE() << NameOf(kind) << ": " << checked.status().message();
    return {};
  }
  return {checked->attributes.pads_begin[0], checked->attributes.pads_end[0]};
}

struct SameCase {
  Line line;  // auto_pad is set by the test; pads of 5 and 7 must be ignored
  int64_t total;
};

void ExpectSame(bool transposed, const std::vector<SameCase>& cases) {
  for (auto [line, total] : cases) {
    SCOPED_TRACE("I " + std::to_string(line.in) + " K " + std::to_string(line.taps) + " S " +
                 std::to_string(line.stride) + " D " + std::to_string(line.dilation));
    line.begin = 5;
    line.end = 7;
    const int64_t half = total / 2;
    for (const OpKind kind : transposed ? kConvTransposes : kConvolutions) {
      line.auto_pad = "same_upper";  // the odd one goes to the end
      EXPECT_EQ(Pads(kind, line), (Dims{half, total - half})) << NameOf(kind);
      line.auto_pad = "same_lower";  // and here to the beginning
      EXPECT_EQ(Pads(kind, line), (Dims{total - half, half})) << NameOf(kind);
    }
    ExpectLegal(transposed, line);
  }
}

TEST(AutoPad, SameOfConvolution) {
  ExpectSame(false, {
                        {{.in = 8, .out = 4, .taps = 3, .stride = 2}, 1},   // 3 - 2
                        {{.in = 7, .out = 4, .taps = 3, .stride = 2}, 2},   // 3 - 7 mod 2
                        {{.in = 5, .out = 5, .taps = 4}, 3},                // 4 - 1
                        {{.in = 9, .out = 3, .taps = 2, .stride = 3}, 0},   // 2 - 3 < 0
                        {{.in = 10, .out = 4, .taps = 1, .stride = 3}, 0},  // 1 - 10 mod 3
                        {{.in = 2, .out = 1, .taps = 5, .stride = 4}, 3},   // 5 - 2 mod 4
                        {{.in = 10, .out = 4, .taps = 3, .stride = 3, .dilation = 2}, 4},  // 5 - 1
                        {{.in = 11, .out = 4, .taps = 3, .stride = 3, .dilation = 2}, 3},  // 5 - 2
                        {{.in = 12, .out = 4, .taps = 3, .stride = 3, .dilation = 2}, 2},  // 5 - 3
                    });
}

// E - S whatever the extents: with a Convolution's rule I 7 of the first case would give 2.
TEST(AutoPad, SameOfConvTranspose) {
  ExpectSame(true, {
                       {{.in = 7, .out = 14, .taps = 3, .stride = 2}, 1},
                       {{.in = 7, .out = 14, .taps = 5, .stride = 2}, 3},
                       {{.in = 7, .out = 20, .taps = 2, .stride = 3}, 0},  // 3 * 6 + 2
                       {{.in = 5, .out = 10, .taps = 4, .stride = 2, .dilation = 2}, 5},
                       {{.in = 6, .out = 6, .taps = 4}, 3},
                       {{.in = 7, .out = 15, .taps = 3, .stride = 2, .output_padding = {1}}, 1},
                   });
  // A gradient may leave output padding unsaid: dst 15 has a rest of one.
  const Line line{.in = 7, .out = 15, .taps = 3, .stride = 2, .auto_pad = "same_lower"};
  EXPECT_EQ(Extent(kConvTransposeBackwardData, line), 7);
  EXPECT_EQ(Extent(kConvTransposeBackwardWeights, line), 3);
  EXPECT_EQ(Extent(kConvTranspose, line), 14);
}

TEST(AutoPad, ValidIsZero) {
  const Line conv{
      .in = 9, .out = 3, .taps = 4, .stride = 2, .begin = 5, .end = 7, .auto_pad = "valid"};
  for (const OpKind kind : kConvolutions) EXPECT_EQ(Pads(kind, conv), (Dims{0, 0}));
  ExpectLegal(false, conv);
  const Line transposed{
      .in = 3, .out = 8, .taps = 4, .stride = 2, .begin = 5, .end = 7, .auto_pad = "valid"};
  for (const OpKind kind : kConvTransposes) EXPECT_EQ(Pads(kind, transposed), (Dims{0, 0}));
  ExpectLegal(true, transposed);
}

TEST(AutoPad, LetterCaseDoesNotMatter) {
  Line line{.in = 8, .out = 4, .taps = 3, .stride = 2, .begin = 1, .end = 1};
  const std::pair<const char*, Dims> spellings[] = {
      {"none", {1, 1}},       {"None", {1, 1}},       {"NONE", {1, 1}},
      {"same_upper", {0, 1}}, {"SAME_UPPER", {0, 1}}, {"Same_Upper", {0, 1}},
      {"same_lower", {1, 0}}, {"SAME_LOWER", {1, 0}}, {"sAME_lOWER", {1, 0}},
      {"valid", {0, 0}},      {"VALID", {0, 0}},      {"Valid", {0, 0}}};
  for (const auto& [spelling, pads] : spellings) {
    line.auto_pad = spelling;
    EXPECT_EQ(Pads(kConvolution, line), pads) << spelling;
  }
}

TEST(OutputPadding, ExtendsConvTranspose) {
  Line line{.in = 4, .out = 0, .taps = 3, .stride = 2};
  const std::pair<Dims, int64_t> cases[] = {{{}, 9}, {{0}, 9}, {{1}, 10}, {{2}, 11}, {{5}, 14}};
  for (const auto& [padding, out] : cases) {
    line.output_padding = padding;
    EXPECT_EQ(Extent(kConvTranspose, line), out);
  }
}

// S 2, E 3, I 4: without output padding dst may be 9 or 10, with it just 9 + OP.
TEST(OutputPadding, MustMatchExactlyInGradients) {
  for (int64_t op = 0; op <= 5; ++op) {
    for (int64_t out = 3; out <= 16; ++out) {
      SCOPED_TRACE("OP " + std::to_string(op) + " O " + std::to_string(out));
      const Line transposed{.in = 4, .out = out, .taps = 3, .stride = 2, .output_padding = {op}};
      const bool legal = out == 9 + op || (op == 0 && out == 10);
      EXPECT_EQ(Extent(kConvTransposeBackwardWeights, transposed), legal ? 3 : kRefused);
      // Where I is the answer, some I must give this O exactly: 3 + 2 * (I - 1) + OP.
      const int64_t rest = out - 3 - op;
      const bool some = rest >= 0 && (op == 0 || rest % 2 == 0);
      EXPECT_EQ(Extent(kConvTransposeBackwardData, transposed), some ? rest / 2 + 1 : kRefused);
      const Line conv{.in = out, .out = 4, .taps = 3, .stride = 2, .output_padding = {op}};
      EXPECT_EQ(Extent(kConvolutionBackwardData, conv), legal ? out : kRefused);
    }
  }
  // More padding than there is room: I would be 0.
  EXPECT_EQ(
      Extent(kConvTransposeBackwardData, {.in = 0, .out = 5, .taps = 3, .output_padding = {3}}),
      kRefused);
}

// A zero beside a padding that is not zero leaves its own axis floored: "given and non-zero" is
// read for each axis.
TEST(OutputPadding, BelongsToItsAxis) {
  const Attributes window = {{"strides", {2, 3}},        {"pads_begin", Dims{}},
                             {"pads_end", Dims{}},       {"dilations", {1, 1}},
                             {"output_padding", {0, 2}}, {"data_format", "NCX"}};
  const TensorDesc weights = F32({2, 2, 1, 1}), src = F32({1, 1, 3, 3});
  EXPECT_EQ(Inferred({kConvTranspose, window, {src, weights}}), (Dims{1, 1, 6, 10}));
  const auto accepts = [&](int64_t h, int64_t w) {
    return !Refused({kConvTransposeBackwardWeights, window, {src, F32({1, 1, h, w})}, {weights}});
  };
  EXPECT_TRUE(accepts(6, 10));
  EXPECT_TRUE(accepts(7, 10));
  EXPECT_FALSE(accepts(8, 10));
  EXPECT_FALSE(accepts(6, 9));
  EXPECT_FALSE(accepts(6, 8));
  EXPECT_FALSE(accepts(6, 11));
}

// S 4, E 5, three windows, pads 1 and 2: they cover 4 * 2 + 5 - 3 = 10; 0 to 3 more may be left.
TEST(FlooredRelation, AcceptsEveryRemainder) {
  for (int64_t wide = 5; wide <= 20; ++wide) {
    SCOPED_TRACE(wide);
    Line conv{.in = wide, .out = 3, .taps = 3, .stride = 4, .dilation = 2, .begin = 1, .end = 2};
    const bool legal = wide >= 10 && wide <= 13;
    EXPECT_EQ(Extent(kConvolutionBackwardWeights, conv), legal ? 3 : kRefused);
    EXPECT_EQ(Extent(kConvolutionBackwardData, conv), legal ? wide : kRefused);
    EXPECT_EQ(Extent(kConvolution, conv), (wide - 2) / 4 + 1);
    Line transposed = conv;
    std::swap(transposed.in, transposed.out);
    EXPECT_EQ(Extent(kConvTransposeBackwardWeights, transposed), legal ? 3 : kRefused);
    EXPECT_EQ(Extent(kConvTransposeBackwardData, transposed), (wide - 2) / 4 + 1);
    EXPECT_EQ(Extent(kConvTranspose, transposed), 10);
  }
}

TEST(Legal, OddGeometry) {
  ExpectLegal(false, {.in = 0, .out = 2, .taps = 3, .begin = 2, .end = 2});   // all padding
  ExpectLegal(false, {.in = 2, .out = 1, .taps = 5, .begin = 2, .end = 1});   // kernel > src
  ExpectLegal(false, {.in = 3, .out = 11, .taps = 2, .begin = 4, .end = 5});  // pads > kernel
  ExpectLegal(false, {.in = 9, .out = 2, .taps = 2, .stride = 6});            // stride > kernel
  ExpectLegal(false, {.in = 1, .out = 1, .taps = 1, .stride = 9, .dilation = 9});
  ExpectLegal(true, {.in = 2, .out = 1, .taps = 5, .begin = 2, .end = 3});
  ExpectLegal(true, {.in = 2, .out = 8, .taps = 2, .stride = 6});
  // Floor, not truncation: (2 - 3) / 2 is -1, so there are no windows.
  EXPECT_EQ(Extent(kConvolution, {.in = 2, .out = 0, .taps = 3, .stride = 2}), kRefused);
  EXPECT_EQ(Extent(kConvolutionBackwardWeights, {.in = 2, .out = 1, .taps = 3, .stride = 2}),
            kRefused);
  EXPECT_EQ(Extent(kConvTransposeBackwardData, {.in = 1, .out = 2, .taps = 3, .stride = 2}),
            kRefused);
}

TEST(Legal, EmptyBatchAndNoChannels) {
  const Formats conv{1, "NCX", "OIX"}, transposed{1, "NCX", "IOX"};
  const TensorDesc w = conv.Weights(4, 3), wt = transposed.Weights(2, 6);
  const TensorDesc src = conv.Data(0, 6, kI), dst = conv.Data(0, 4, kConvO);
  const TensorDesc wide = conv.Data(0, 4, kTransposedO);
  EXPECT_EQ(Inferred(conv.Ask(kConvolution, {src, w})), (Dims{0, 4, 3}));
  EXPECT_EQ(Inferred(conv.Ask(kConvolutionBackwardData, {dst, w}).Set("dst_shape", {0, 6, 7})),
            (Dims{0, 6, 7}));
  EXPECT_EQ(Inferred(conv.Ask(kConvolutionBackwardWeights, {src, dst}).Outputs({w})),
            (Dims{4, 3, 3}));
  EXPECT_EQ(Inferred(transposed.Ask(kConvTranspose, {src, wt})), (Dims{0, 4, 14}));
  EXPECT_EQ(Inferred(transposed.Ask(kConvTransposeBackwardData, {wide, wt})), (Dims{0, 6, 7}));
  EXPECT_EQ(Inferred(transposed.Ask(kConvTransposeBackwardWeights, {src, wide}).Outputs({wt})),
            (Dims{6, 2, 3}));
  EXPECT_EQ(Inferred(conv.Ask(kConvolution, {F32({2, 0, 7}), F32({4, 0, 3})})), (Dims{2, 4, 3}));
  EXPECT_EQ(Inferred(conv.Ask(kConvolution, {F32({2, 6, 7}), F32({0, 3, 3})})), (Dims{2, 0, 3}));
  // Without src channels (IC, OC / G) and (IC / G, OC) look alike; the deployed one is taken.
  EXPECT_EQ(Inferred(transposed.Ask(kConvTranspose, {F32({2, 0, 7}), F32({0, 4, 3})})),
            (Dims{2, 8, 14}));
}

// Where a shape comes from -----------------------------------------------------------------------

// I 10, S 4: kernels of 3 and of 4 both give O 2, so that the geometry does not tell them apart.
Request Weights() {
  return Of(kConvolutionBackwardWeights, {.in = 10, .out = 2, .taps = 3, .stride = 4})
      .Set("weights_shape", Dims(12, 0));  // as oneDNN writes "not given"
}
// K 3, O 2, S 4: diff_src may be 7 to 10.
Request Data() {
  return Of(kConvolutionBackwardData, {.in = 0, .out = 2, .taps = 3, .stride = 4})
      .Set("dst_shape", Dims(12, 0));
}

TEST(ShapeSource, TensorOverAttributeOverOutput) {
  EXPECT_EQ(Inferred(Weights().Shape({1, 1, 3}).Set("weights_shape", {1, 1, 4})), (Dims{1, 1, 3}));
  EXPECT_EQ(Inferred(Weights().Shape({1, 1, 4}).Set("weights_shape", {1, 1, 3})), (Dims{1, 1, 4}));
  EXPECT_EQ(Inferred(Weights().Set("weights_shape", {1, 1, 4})), (Dims{1, 1, 4}));
  EXPECT_EQ(Inferred(Weights().Outputs({F32({1, 1, 4})})), (Dims{1, 1, 4}));
  EXPECT_EQ(Inferred(Data().Shape({1, 1, 8}).Set("dst_shape", {1, 1, 9})), (Dims{1, 1, 8}));
  EXPECT_EQ(Inferred(Data().Set("dst_shape", {1, 1, 9})), (Dims{1, 1, 9}));
  EXPECT_EQ(Inferred(Data().Outputs({F32({1, 1, 7})})), (Dims{1, 1, 7}));
  EXPECT_TRUE(Refused(Weights()));
  EXPECT_TRUE(Refused(Data()));
}

TEST(ShapeSource, OutputMustAgreeWhereItIsKnown) {
  const Request tensor = Weights().Shape({1, 1, 3}), attribute = Data().Set("dst_shape", {1, 1, 9});
  EXPECT_EQ(Inferred(Request(tensor).Outputs({F32({1, 1, 3})})), (Dims{1, 1, 3}));
  EXPECT_EQ(Inferred(Request(tensor).Outputs({F32({-1, kAny, -5})})), (Dims{1, 1, 3}));
  EXPECT_TRUE(Refused(Request(tensor).Outputs({F32({-1, -1, 4})})));  // legal by itself
  EXPECT_EQ(Inferred(Request(attribute).Outputs({F32({1, -1, 9})})), (Dims{1, 1, 9}));
  EXPECT_TRUE(Refused(Request(attribute).Outputs({F32({1, -1, 8})})));
}

TEST(ShapeSource, LateValuesAreCheckedByRun) {
  const std::vector<float> ones(10, 1.0f);
  std::vector<float> diff(4);
  const auto run = [&](const Request& request, const void* shape) {
    const Result<Plan> plan = request.Make();
    if (!plan.ok()) return plan.status();
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    return plan->Run({ones.data(), ones.data(), shape}, diff.data(), workspace.data());
  };
  const std::vector<int32_t> three = {1, 1, 3}, four = {1, 1, 4};
  const std::vector<int64_t> wide_three = {1, 1, 3}, wide_four = {1, 1, 4};
  const Request late = Weights().Late(DataType::kS32).Set("weights_shape", {1, 1, 4});
  EXPECT_TRUE(run(late, four.data()).ok());
  EXPECT_EQ(diff, std::vector<float>(4, 2.0f));  // two windows of ones: it did run
  EXPECT_EQ(run(late, three.data()).code(), StatusCode::kInvalidShape);
  const Request wide = Weights().Late(DataType::kS64).Outputs({F32({1, 1, 3})});
  EXPECT_TRUE(run(wide, wide_three.data()).ok());
  EXPECT_EQ(run(wide, wide_four.data()).code(), StatusCode::kInvalidShape);
  EXPECT_TRUE(Refused(Weights().Late(DataType::kS64)));  // nothing to plan with
}

TEST(ShapeSource, OneCallReadsTheTensor) {
  const std::vector<float> src(10, 1.0f), diff_dst = {1, 2};
  const std::vector<int32_t> shape = {1, 1, 4};
  std::vector<float> diff(4);
  const Request r = Weights();
  TensorView out;  // not described: only the shape tensor says how large it is
  out.data = diff.data();
  const Status status = convgrad::Run(
      {r.kind, r.attributes},
      {{src.data(), {1, 1, 10}}, {diff_dst.data(), {1, 1, 2}}, {shape.data(), {3}}}, {out});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(diff, std::vector<float>(4, 3.0f));
}

TEST(Unknown, ExtentsOfOutputsAreInferred) {
  const Formats conv{2, "NCX", "OIX"}, transposed{2, "NCX", "IOX"};
  const Dims dst = {2, 4, 3, 8}, src = {2, 6, 7, 9};
  const Request forward = conv.Ask(kConvolution, {F32(src), conv.Weights(4, 3)});
  const Request data = transposed.Ask(
      kConvTransposeBackwardData, {transposed.Data(2, 4, kTransposedO), transposed.Weights(2, 6)});
  for (const int64_t unknown : {int64_t{-1}, int64_t{-2}, kAny}) {
    for (size_t mask = 0; mask < 16; ++mask) {
      Dims some_dst = dst, some_src = src;
      for (size_t a = 0; a < 4; ++a) {
        if (mask >> a & 1) some_dst[a] = some_src[a] = unknown;
      }
      EXPECT_EQ(Inferred(Request(forward).Outputs({F32(some_dst)})), dst);
      EXPECT_EQ(Inferred(Request(data).Outputs({F32(some_src)})), src);
    }
  }
  EXPECT_EQ(Inferred(Request(forward).Outputs({F32({})})), dst);
  EXPECT_EQ(Inferred(Request(forward).Outputs({{}})), dst);
}

TEST(Lists, TwelveEntriesAreReadAsSerialized) {
  const auto twelve = [](Dims list) {
    list.resize(12, 0);
    return list;
  };
  const Formats f{2, "NCX", "IOX"};
  Request request = f.Ask(kConvTranspose, {f.Data(2, 6, kI), f.Weights(2, 6)});
  for (const char* name : {"strides", "pads_begin", "pads_end", "dilations"}) {
    request.Set(name, twelve(*request.attributes.Find(name)->list()));
  }
  EXPECT_EQ(Inferred(Request(request)), (Dims{2, 4, 14, 10}));
  EXPECT_EQ(Inferred(Request(request).Set("output_padding", twelve({}))), (Dims{2, 4, 14, 10}));
  EXPECT_EQ(Inferred(Request(request).Set("output_padding", twelve({0, 3}))), (Dims{2, 4, 14, 13}));
  EXPECT_EQ(Inferred(Weights().Set("weights_shape", twelve({1, 1, 4}))), (Dims{1, 1, 4}));
  // Pads that were never set are zeros, as an empty list is.
  EXPECT_FALSE(Refused(Request(request).Set("pads_begin", twelve({}))));
  EXPECT_EQ(Inferred(request.Set("pads_begin", Dims{})), (Dims{2, 4, 15, 10}));
  EXPECT_EQ(Inferred(request.Set("pads_end", Dims{})), (Dims{2, 4, 15, 11}));
}

TEST(OutputStrides, AreReported) {
  const Formats f{2, "NXC", "OIX"};
  const Request request = f.Ask(kConvolution, {f.Data(2, 6, kI), f.Weights(4, 3)});
  const auto strides = [&](TensorDesc output) {
    const Result<Plan> plan = Request(request).Outputs({std::move(output)}).Make();
    if (!plan.ok()) ADD_FAILURE() << plan.status().message();
    return plan.ok() ? plan->output().strides : Dims();
  };
  EXPECT_EQ(strides({}), (Dims{96, 32, 4, 1}));  // dense 2x3x8x4
  EXPECT_EQ(strides(F32({2, 3, 8, 4})), (Dims{96, 32, 4, 1}));
  EXPECT_EQ(strides(F32({}, {120, 40, 5, 1})), (Dims{120, 40, 5, 1}));  // padded
  EXPECT_EQ(strides(F32({-1, -1, -1, -1}, {96, 8, 1, 24})), (Dims{96, 8, 1, 24}));
  EXPECT_EQ(strides(F32({}, {96, -32, -4, -1})), (Dims{96, -32, -4, -1}));
}

TEST(OutputStrides, OfTheBiasGradient) {
  const Formats f{1, "NCX", "OIX"};
  Request request = f.Ask(kConvolutionBackwardWeights, {f.Data(2, 6, kI), f.Data(2, 4, kConvO)});
  const auto bias = [&](TensorDesc desc) {
    const Result<Plan> plan = request.Outputs({f.Weights(4, 3), std::move(desc)}).Make();
    if (!plan.ok()) ADD_FAILURE() << plan.status().message();
    if (!plan.ok() || plan->num_outputs() != 2) return std::pair(Dims(), Dims());
    return std::pair(plan->output(1).extents, plan->output(1).strides);
  };
  EXPECT_EQ(bias(F32({})), std::pair(Dims{4}, Dims{1}));
  EXPECT_EQ(bias(F32({-1})), std::pair(Dims{4}, Dims{1}));
  EXPECT_EQ(bias(F32({4}, {-3})), std::pair(Dims{4}, Dims{-3}));
  EXPECT_EQ(bias({}), std::pair(Dims(), Dims()));  // not asked for: one output
}

}  // namespace
}  // namespace convgrad
