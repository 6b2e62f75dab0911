// Problem lines against their specification: the grammar, the derivations worked by hand, tags as
// formats and strides, every error, files, and that every case's text makes the same case again.
// Only descriptions are compared here; nothing is planned or run.
#include "onednn/problem_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "onednn/memory_tag.h"

namespace convgrad::onednn {
namespace {

using Cases = std::vector<ProblemCase>;

Cases Parse(const std::string& line) {
  ProblemParser parser;
  const Status status = parser.AcceptLine(line);
  EXPECT_TRUE(status.ok()) << line << "\n" << status.message();
  return parser.TakeCases();
}

ProblemCase One(const std::string& line) {
  Cases cases = Parse(line);
  EXPECT_EQ(cases.size(), 1u) << line;
  return cases.empty() ? ProblemCase() : cases.front();
}

std::string ErrorOf(const std::string& line) {
  ProblemParser parser;
  const Status status = parser.AcceptLine(line);
  EXPECT_FALSE(status.ok()) << line;
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  return status.message();
}

void ExpectError(const std::string& line, const std::string& part) {
  const std::string message = ErrorOf(line);
  EXPECT_NE(message.find(part), std::string::npos) << line << "\n" << message;
}

Dims List(const ProblemCase& problem, std::string_view name) {
  const AttributeValue* value = problem.operation.attributes.Find(name);
  return value && value->list() ? *value->list() : Dims{};
}

std::string Text(const ProblemCase& problem, std::string_view name) {
  const AttributeValue* value = problem.operation.attributes.Find(name);
  return value && value->text() ? *value->text() : std::string();
}

// All that a case says, so that two cases are equal when these are.
std::string Dump(const ProblemCase& problem) {
  std::string dump = problem.text + "|" + problem.name + "|" +
                     std::to_string(static_cast<int>(problem.operation.kind));
  const auto add = [&](const Dims& list) {
    dump += "[";
    for (int64_t value : list) dump += std::to_string(value) + " ";
    dump += "]";
  };
  for (const auto& [name, value] : problem.operation.attributes.entries()) {
    dump += " " + name + "=";
    if (value.s64()) dump += std::to_string(*value.s64());
    if (value.list()) add(*value.list());
    if (value.text()) dump += *value.text();
  }
  for (const auto* tensors : {&problem.inputs, &problem.outputs}) {
    dump += tensors == &problem.inputs ? " inputs" : " outputs";
    for (const TensorDesc& desc : *tensors) {
      dump += " " + std::string(NameOf(desc.type));
      add(desc.extents);
      add(desc.strides);
    }
  }
  return dump;
}

void ExpectRoundTrip(const std::string& line) {
  for (const ProblemCase& problem : Parse(line)) {
    EXPECT_EQ(Dump(problem), Dump(One(problem.text)));
  }
}

// --- derivations --------------------------------------------------------------------------------

// in, out, kernel, stride, pads and output padding of the first axis.
struct Solved {
  int64_t in, out, stride, begin, end, extra;
  bool operator==(const Solved&) const = default;
};

Solved SolvedOf(const std::string& descriptor, bool transposed) {
  const Result<ProblemDescriptor> parsed = ParseDescriptor(descriptor, transposed);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  if (!parsed.ok()) return {};
  const ProblemAxis& axis = parsed->axes.front();
  return {axis.in, axis.out, axis.stride, axis.pad_begin, axis.pad_end, axis.output_padding};
}

TEST(Derivation, ConvolutionOutFromPad) {
  // (56 - 3 + 2) / 1 + 1 = 56; the end pad (56-1) - 56 + 3 - 1 = 1.
  EXPECT_EQ(SolvedOf("ic1iw56oc1kw3pw1", false), (Solved{56, 56, 1, 1, 1, 0}));
  // Neither given: pad 0, (7 - 3) / 2 + 1 = 3, nothing left.
  EXPECT_EQ(SolvedOf("ic1iw7oc1kw3sw2", false), (Solved{7, 3, 2, 0, 0, 0}));
  // (224 - 7 + 6) / 2 + 1 = 112 (floor of 111.5); the end pad 222 - 224 + 7 - 3 = 2.
  EXPECT_EQ(SolvedOf("ic3iw224oc64kw7sw2pw3", false), (Solved{224, 112, 2, 3, 2, 0}));
  // Dilation 1 is every second: E = 5, (10 - 5) / 1 + 1 = 6.
  EXPECT_EQ(SolvedOf("ic1iw10oc1kw3dw1", false), (Solved{10, 6, 1, 0, 0, 0}));
}

TEST(Derivation, ConvolutionPadFromOut) {
  // ((56-1) - 56 + 3) / 2 = 1, and as much at the end.
  EXPECT_EQ(SolvedOf("ic1iw56oc1ow56kw3", false), (Solved{56, 56, 1, 1, 1, 0}));
  // (111*2 - 224 + 7) / 2 = 2 (floor of 2.5); the end pad 5 - 2 = 3.
  EXPECT_EQ(SolvedOf("ic1iw224oc1ow112kw7sw2", false), (Solved{224, 112, 2, 2, 3, 0}));
  // (27*2 - 56 + 1) / 2 is -1 with floor: no pad, and one column of the input is left over.
  EXPECT_EQ(SolvedOf("ic1iw56oc1ow28kw1sw2", false), (Solved{56, 28, 2, 0, 0, 0}));
}

TEST(Derivation, ConvolutionWithBothGiven) {
  // WaveNet: all the padding before. The end pad 99 - 100 + 5 - 4 = 0.
  EXPECT_EQ(SolvedOf("ic1iw100oc1ow100kw3dw1pw4", false), (Solved{100, 100, 1, 4, 0, 0}));
  // A remainder of 2 of a stride of 3: (3-1)*3 - 9 + 1 = -2, clamped.
  EXPECT_EQ(SolvedOf("ic1iw9oc1ow3kw1sw3pw0", false), (Solved{9, 3, 3, 0, 0, 0}));
  // A remainder of 3 would make another output.
  ExpectError("ic1iw10oc1ow3kw1sw3pw0", "ow 3 leaves 3 of iw 10 unused");
}

TEST(Derivation, TransposedOutFromPad) {
  // (4-1)*2 + 4 - 2 = 8; the end pad 6 - 8 + 4 - 1 = 1.
  EXPECT_EQ(SolvedOf("ic1iw4oc1kw4sw2pw1", true), (Solved{4, 8, 2, 1, 1, 0}));
  // (5-1)*3 + (3-1)*2+1 - 0 = 17.
  EXPECT_EQ(SolvedOf("ic1iw5oc1kw3sw3dw1", true), (Solved{5, 17, 3, 0, 0, 0}));
}

TEST(Derivation, TransposedPadFromOut) {
  // (6 - 8 + 4) / 2 = 1.
  EXPECT_EQ(SolvedOf("ic1iw4oc1ow8kw4sw2", true), (Solved{4, 8, 2, 1, 1, 0}));
  // (6 - 8 + 3) / 2 = 0 (floor of 0.5), and 1 at the end.
  EXPECT_EQ(SolvedOf("ic1iw4oc1ow8kw3sw2", true), (Solved{4, 8, 2, 0, 1, 0}));
  // (6 - 9 + 2) / 2 is -1 with floor: no pad, one more output than the kernel reaches.
  EXPECT_EQ(SolvedOf("ic1iw4oc1ow9kw2sw2", true), (Solved{4, 9, 2, 0, 0, 1}));
}

TEST(Derivation, TransposedOutputPadding) {
  // PyTorch's k3 s2 p1 op1: 6 - 8 + 3 - 1 = 0 at the end.
  EXPECT_EQ(SolvedOf("ic1iw4oc1ow8kw3sw2pw1", true), (Solved{4, 8, 2, 1, 0, 0}));
  // 6 - 12 + 3 - 1 = -4: output padding 4, which may be more than the stride.
  EXPECT_EQ(SolvedOf("ic1iw4oc1ow12kw3sw2pw1", true), (Solved{4, 12, 2, 1, 0, 4}));
  const ProblemCase problem = One("--deconv --dir=BWD_W ic1iw4oc1ow12kw3sw2pw1");
  EXPECT_EQ(List(problem, "output_padding"), (Dims{4}));
  EXPECT_EQ(List(problem, "pads_end"), (Dims{0}));
  EXPECT_EQ(One("--deconv ic1iw4oc1kw3").operation.attributes.Find("output_padding"), nullptr);
}

// --- descriptors --------------------------------------------------------------------------------

TEST(Descriptor, DefaultsAndOrder) {
  const ProblemCase problem = One("kh3_oc8ih5ic4");
  EXPECT_EQ(problem.operation.kind, OpKind::kConvolution);
  EXPECT_EQ(problem.inputs[0].extents, (Dims{2, 4, 5, 5}));
  EXPECT_EQ(problem.inputs[1].extents, (Dims{8, 4, 3, 3}));
  EXPECT_EQ(problem.inputs[2].extents, (Dims{8}));
  EXPECT_EQ(problem.outputs[0].extents, (Dims{2, 8, 3, 3}));
  EXPECT_EQ(problem.inputs[0].type, DataType::kF32);
  EXPECT_EQ(List(problem, "strides"), (Dims{1, 1}));
  EXPECT_EQ(List(problem, "dilations"), (Dims{1, 1}));
  EXPECT_EQ(problem.operation.attributes.Find("groups"), nullptr);
  EXPECT_EQ(problem.name, "g1mb2_ic4ih5_oc8oh3_kh3_sh1_ph0_dh0");
  EXPECT_EQ(problem.text,
            "--conv --dir=FWD_B --dt=f32 --stag=any --wtag=any --dtag=any " + problem.name);
  EXPECT_TRUE(problem.origin.empty());
}

TEST(Descriptor, RankAndInheritance) {
  EXPECT_EQ(One("ic2iw9oc2kw3").inputs[0].extents, (Dims{2, 2, 9}));
  EXPECT_EQ(One("ic2ih9oc2kh3").inputs[0].extents, (Dims{2, 2, 9, 9}));
  EXPECT_EQ(One("ic2ih9iw7oc2kh3kw1").inputs[0].extents, (Dims{2, 2, 9, 7}));
  EXPECT_EQ(One("ic2id9oc2kd3").inputs[0].extents, (Dims{2, 2, 9, 9, 9}));
  EXPECT_EQ(One("ic2id9ih8iw7oc2kd1kh1kw1").inputs[0].extents, (Dims{2, 2, 9, 8, 7}));
  // An axis inherits all or nothing: sw is the default here, not sh.
  EXPECT_EQ(List(One("ic2ih9iw9oc2kh3kw3sh2"), "strides"), (Dims{2, 1}));
  EXPECT_EQ(List(One("ic2ih9oc2kh3sh2dh1ph2"), "dilations"), (Dims{2, 2}));
  // Entries that only repeat a default do not make an axis.
  EXPECT_EQ(One("ic2ih9oc2kh3_sd1sw1pd0pw0dd0dw0").inputs[0].extents, (Dims{2, 2, 9, 9}));
}

TEST(Descriptor, Names) {
  EXPECT_EQ(One("ic1iw3oc1kw1n\"a name: 3*x, #1\"").name, "a name: 3*x, #1");
  EXPECT_EQ(One("ic1iw3oc1kw1nplain").name, "plain");
  EXPECT_EQ(One("ic1iw3oc1kw1_nplain_kw3").name, "plain_kw3");
  EXPECT_EQ(One("ic1iw3oc1kw1_n\"\"").name, One("ic1iw3oc1kw1").name);
}

TEST(Descriptor, EmptyBatchIsLegal) {
  const ProblemCase problem = One("--stag=xba mb0ic2iw3oc2kw1");
  EXPECT_EQ(problem.inputs[0].extents, (Dims{0, 2, 3}));
  EXPECT_EQ(problem.inputs[0].strides, (Dims{1, 1, 2}));
}

TEST(Descriptor, Errors) {
  ExpectError("iw3oc1kw1", "ic is missing");
  ExpectError("ic1iw3kw1", "oc is missing");
  ExpectError("ic1oc1kw1", "iw is missing");
  ExpectError("ic1oc1iw1", "kw is missing");
  ExpectError("ic1oc1", "at least one spatial axis");
  ExpectError("ic1id3ih3oc1kd1kh1", "both of h and w or neither");
  ExpectError("ic1ih3iw3oc1kh1", "kw is missing");
  ExpectError("icxiw3oc1kw1", "ic must be followed by a number");
  ExpectError("ic-3iw3oc1kw1", "ic must be followed by a number");
  ExpectError("ic99999999999999999999iw3oc1kw1", "ic 99999999999999999999 is larger than");
  ExpectError("ic0iw3oc1kw1", "ic 0 must be at least 1");
  ExpectError("ic1iw3oc1kw1sw0", "sw 0 must be at least 1");
  ExpectError("g0ic1iw3oc1kw1", "g 0 must be at least 1");
  ExpectError("g3ic4iw3oc3kw1", "ic 4 must be a multiple of g 3");
  ExpectError("g3ic3iw3oc4kw1", "oc 4 must be a multiple of g 3");
  ExpectError("ic1iw3oc1kw1q5", "'q5' does not begin with one of g, mb");
  ExpectError("ic1iw3oc1kw1k", "'k' does not begin with one of g, mb");
  ExpectError("ic1iw3oc1kw5", "ow follows from the rest as less than 1");
  ExpectError("--deconv ic1iw3oc1kw1pw2", "ow follows from the rest as less than 1");
  ExpectError("ic1iw3oc1kw900000000000000dw900000000000000ow3", "axis w follow as more than");
  ExpectError("--dir=\"FWD_D ic1iw3oc1kw1", "must close its double quote");
  ExpectError("mb900000000000ic900000000000iw3oc1kw1", "more bytes than 64 bits");
}

// --- operations ---------------------------------------------------------------------------------

TEST(Operations, Convolution) {
  const std::string line = " mb3ic4ih6oc8kh3ph1";
  const Dims src{3, 4, 6, 6}, weights{8, 4, 3, 3}, dst{3, 8, 6, 6};
  for (const char* dir : {"FWD_D", "FWD_I"}) {
    const ProblemCase problem = One(std::string("--dir=") + dir + line);
    EXPECT_EQ(problem.operation.kind, OpKind::kConvolution);
    ASSERT_EQ(problem.inputs.size(), 2u);
    EXPECT_EQ(problem.inputs[1].extents, weights);
    EXPECT_EQ(problem.outputs[0].extents, dst);
  }
  EXPECT_EQ(One("--dir=fwd_b" + line).inputs.size(), 3u);

  const ProblemCase data = One("--dir=BWD_D" + line);
  EXPECT_EQ(data.operation.kind, OpKind::kConvolutionBackwardData);
  EXPECT_EQ(data.inputs[0].extents, dst);
  EXPECT_EQ(data.inputs[1].extents, weights);
  EXPECT_EQ(data.outputs[0].extents, src);
  EXPECT_EQ(List(data, "dst_shape"), src);

  const ProblemCase filter = One("--dir=BWD_W" + line);
  EXPECT_EQ(filter.operation.kind, OpKind::kConvolutionBackwardWeights);
  EXPECT_EQ(filter.inputs[0].extents, src);
  EXPECT_EQ(filter.inputs[1].extents, dst);
  EXPECT_EQ(List(filter, "weights_shape"), weights);
  ASSERT_EQ(filter.outputs.size(), 1u);

  const ProblemCase both = One("--dir=BWD_WB --dt=bf16" + line);
  ASSERT_EQ(both.outputs.size(), 2u);
  EXPECT_EQ(both.outputs[1].extents, (Dims{8}));
  EXPECT_EQ(both.outputs[1].type, DataType::kBF16);
}

TEST(Operations, ConvTranspose) {
  const std::string line = " g2mb3ic4ih6oc8kh4sh2ph1";
  const Dims src{3, 4, 6, 6}, weights{4, 4, 4, 4}, dst{3, 8, 12, 12};
  const ProblemCase forward = One("--deconv --dir=FWD_D" + line);
  EXPECT_EQ(forward.operation.kind, OpKind::kConvTranspose);
  EXPECT_EQ(forward.inputs[0].extents, src);
  EXPECT_EQ(forward.inputs[1].extents, weights);
  EXPECT_EQ(forward.outputs[0].extents, dst);
  EXPECT_EQ(Text(forward, "weights_format"), "IOX");
  EXPECT_EQ(*forward.operation.attributes.Find("groups")->s64(), 2);

  const ProblemCase data = One("--deconv --dir=BWD_D" + line);
  EXPECT_EQ(data.operation.kind, OpKind::kConvTransposeBackwardData);
  EXPECT_EQ(data.inputs[0].extents, dst);
  EXPECT_EQ(data.outputs[0].extents, src);
  EXPECT_EQ(data.operation.attributes.Find("dst_shape"), nullptr);

  const ProblemCase filter = One("--deconv --dir=BWD_WB" + line);
  EXPECT_EQ(filter.operation.kind, OpKind::kConvTransposeBackwardWeights);
  EXPECT_EQ(List(filter, "weights_shape"), weights);
  EXPECT_EQ(filter.outputs[1].extents, (Dims{8}));
}

// --- tags ---------------------------------------------------------------------------------------

TEST(Tags, DataFormats) {
  const std::string line = " --dir=FWD_D mb2ic3ih5iw7oc4oh5ow7kh1kw1";
  for (const char* tag : {"any", "abx", "abcd", "nchw"}) {
    const ProblemCase problem = One(std::string("--dtag=any --stag=") + tag + line);
    EXPECT_EQ(Text(problem, "data_format"), "NCX");
    EXPECT_EQ(problem.inputs[0].extents, (Dims{2, 3, 5, 7}));
    EXPECT_TRUE(problem.inputs[0].strides.empty());
  }
  for (const char* tag : {"axb", "acdb", "nhwc"}) {
    const ProblemCase problem = One(std::string("--dtag=axb --stag=") + tag + line);
    EXPECT_EQ(Text(problem, "data_format"), "NXC");
    EXPECT_EQ(problem.inputs[0].extents, (Dims{2, 5, 7, 3}));
    EXPECT_EQ(problem.outputs[0].extents, (Dims{2, 5, 7, 4}));
    EXPECT_TRUE(problem.inputs[0].strides.empty() && problem.outputs[0].strides.empty());
  }
  // One format for both: channels last is strides under NCX beside a channels-first dst.
  const ProblemCase mixed = One("--stag=axb --dtag=abx" + line);
  EXPECT_EQ(Text(mixed, "data_format"), "NCX");
  EXPECT_EQ(mixed.inputs[0].extents, (Dims{2, 3, 5, 7}));
  EXPECT_EQ(mixed.inputs[0].strides, (Dims{105, 1, 21, 3}));
  EXPECT_TRUE(mixed.outputs[0].strides.empty());
  EXPECT_EQ(One("--stag=xba --dtag=xba" + line).inputs[0].strides, (Dims{1, 2, 42, 6}));
  EXPECT_EQ(One("--stag=chwn --dtag=abx" + line).inputs[0].strides, (Dims{1, 70, 14, 2}));
}

TEST(Tags, NamesOfEveryRank) {
  EXPECT_EQ(Text(One("--stag=nwc --dtag=acb ic3iw5oc4kw1"), "data_format"), "NXC");
  EXPECT_EQ(Text(One("--stag=ncw --dtag=abc ic3iw5oc4kw1"), "data_format"), "NCX");
  EXPECT_EQ(Text(One("--stag=ndhwc --dtag=acdeb ic3id5oc4kd1"), "data_format"), "NXC");
  EXPECT_EQ(Text(One("--wtag=wio ic3iw5oc4kw1"), "weights_format"), "XIO");
  EXPECT_EQ(Text(One("--wtag=dhwigo g3ic3id5oc6kd1"), "weights_format"), "XIO");
  EXPECT_EQ(Text(One("--wtag=goidhw g3ic3id5oc6kd1"), "weights_format"), "OIX");
}

struct ExpectedWeights {
  std::string tag;
  std::string format;
  Dims extents;
  Dims strides;  // empty: dense
};

void ExpectWeights(const std::string& line, const std::vector<ExpectedWeights>& table) {
  for (const ExpectedWeights& row : table) {
    SCOPED_TRACE(line + " --wtag=" + row.tag);
    const ProblemCase problem = One("--dir=FWD_D --wtag=" + row.tag + " " + line);
    ASSERT_EQ(problem.inputs.size(), 2u);
    EXPECT_EQ(Text(problem, "weights_format"), row.format);
    EXPECT_EQ(problem.inputs[1].extents, row.extents);
    EXPECT_EQ(problem.inputs[1].strides, row.strides);
  }
}

TEST(Tags, ConvolutionWeights) {
  ExpectWeights("ic3ih9oc4kh2kw5iw9", {{"any", "OIX", {4, 3, 2, 5}, {}},
                                       {"abx", "OIX", {4, 3, 2, 5}, {}},
                                       {"oihw", "OIX", {4, 3, 2, 5}, {}},
                                       {"xba", "XIO", {2, 5, 3, 4}, {}},
                                       {"hwio", "XIO", {2, 5, 3, 4}, {}},
                                       {"cdba", "XIO", {2, 5, 3, 4}, {}},
                                       {"axb", "OIX", {4, 3, 2, 5}, {30, 1, 15, 3}},
                                       {"bax", "OIX", {4, 3, 2, 5}, {10, 40, 5, 1}},
                                       {"xab", "OIX", {4, 3, 2, 5}, {3, 1, 60, 12}}});
  // One group may be written as a letter, too.
  ExpectWeights("g1ic3ih9oc4kh2",
                {{"abcde", "OIX", {4, 3, 2, 2}, {}}, {"hwigo", "XIO", {2, 2, 3, 4}, {}}});
  // g 2, two outputs and three inputs to each.
  ExpectWeights("g2ic6iw9oc4kw5", {{"any", "OIX", {4, 3, 5}, {}},
                                   {"abx", "OIX", {4, 3, 5}, {}},
                                   {"abcd", "OIX", {4, 3, 5}, {}},
                                   {"abcx", "OIX", {4, 3, 5}, {}},
                                   {"xba", "XIO", {5, 3, 4}, {}},
                                   {"wigo", "XIO", {5, 3, 4}, {}},
                                   {"axb", "OIX", {4, 3, 5}, {15, 1, 3}},
                                   {"abxc", "OIX", {4, 3, 5}, {15, 1, 3}}});
  // Depthwise: o has one element, so the stride of the channels is that of g wherever it lies.
  ExpectWeights("g4ic4iw9oc4kw5",
                {{"xba", "XIO", {5, 1, 4}, {}}, {"xab", "OIX", {4, 1, 5}, {1, 1, 4}}});
  ExpectError("--wtag=bax g2ic6iw9oc4kw5", "the groups must lie directly outside o");
  ExpectError("--wtag=xab g2ic6iw9oc4kw5", "with g 2 the groups must lie");
}

TEST(Tags, ConvTransposeWeights) {
  ExpectWeights("--deconv ic3iw9oc4kw5", {{"any", "IOX", {3, 4, 5}, {}},
                                          {"bax", "IOX", {3, 4, 5}, {}},
                                          {"iow", "IOX", {3, 4, 5}, {}},
                                          {"abx", "IOX", {3, 4, 5}, {5, 15, 1}},
                                          {"xab", "XOI", {5, 4, 3}, {}},
                                          {"xba", "IOX", {3, 4, 5}, {4, 1, 12}}});
  // g 2, two outputs and three inputs to each.
  ExpectWeights("--deconv g2ic6iw9oc4kw5",
                {{"any", "IOX", {6, 2, 5}, {}},             // g i o k
                 {"bax", "IOX", {6, 2, 5}, {}},             // the same
                 {"xab", "XOI", {5, 2, 6}, {}},             // k o g i
                 {"abx", "IOX", {3, 4, 5}, {5, 15, 1}},     // g o i k: only o can carry the groups
                 {"xba", "IOX", {3, 4, 5}, {4, 1, 12}},     // k i g o: as well
                 {"igow", "IOX", {3, 4, 5}, {}},            // the documents' grouped shape
                 {"wgoi", "XOI", {5, 4, 3}, {}},            // and in XOI
                 {"giwo", "IOX", {6, 2, 5}, {10, 1, 2}}});  // g i k o
  ExpectError("--deconv --wtag=gwio g2ic6iw9oc4kw5", "directly outside i or o");
}

TEST(Tags, Errors) {
  const std::string line = " g2ic6ih9oc4kh5";
  ExpectError("--stag=aBx16b" + line, "blocked layouts are not supported");
  ExpectError("--wtag=ABcd16a16b" + line, "blocked layouts are not supported");
  ExpectError("--stag=zyx" + line, "--stag: tag 'zyx' must be any, a wildcard");
  ExpectError("--stag=abx,", "tag '' must be any");
  ExpectError("--stag=xxab" + line, "must be any, a wildcard");
  ExpectError("--stag=abc" + line, "tag 'abc' must have each letter of 'abcd' or 'nchw' once");
  ExpectError("--dtag=aacd" + line, "--dtag=aacd: tag 'aacd' must have each letter");
  ExpectError("--wtag=hwio" + line, "'abcde' or 'goihw' once, for weights with 2 spatial axes");
  ExpectError("--wtag=abcde ic6ih9oc4kh5 ic6iw9oc4kw5", "'abc' or 'oiw' once");
}

// --- options ------------------------------------------------------------------------------------

TEST(Options, HoldForTheProblemsAfterThem) {
  const Cases cases = Parse(
      "ic1iw3oc1kw1 --dir=BWD_W --mb=7 mb3ic1iw3oc1kw1 --deconv --mb=0 mb3ic1iw3oc1kw1"
      " --dt=f16:f16:f16 --reset ic1iw3oc1kw1");
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[0].operation.kind, OpKind::kConvolution);
  EXPECT_EQ(cases[1].operation.kind, OpKind::kConvolutionBackwardWeights);
  EXPECT_EQ(cases[1].inputs[0].extents, (Dims{7, 1, 3}));
  EXPECT_EQ(cases[2].operation.kind, OpKind::kConvTransposeBackwardWeights);
  EXPECT_EQ(cases[2].inputs[0].extents, (Dims{3, 1, 3}));
  // --reset keeps --deconv: benchdnn's files rely on the command's driver.
  EXPECT_EQ(cases[3].operation.kind, OpKind::kConvTranspose);
  EXPECT_EQ(cases[3].inputs[0].type, DataType::kF32);
}

TEST(Options, AlternativesMultiply) {
  const Cases cases = Parse(
      "--dir=BWD_D,BWD_W --dt=f32,bf16 --stag=abx,axb --wtag=abx,xba --dtag=abx,axb --mb=1,0,4 "
      "ic2iw3oc2kw1");
  ASSERT_EQ(cases.size(), 96u);
  EXPECT_EQ(cases.front().text,
            "--conv --dir=BWD_D --dt=f32 --stag=abx --wtag=abx --dtag=abx "
            "g1mb1_ic2iw3_oc2ow3_kw1_sw1_pw0_dw0");
  EXPECT_EQ(cases[1].inputs[0].extents, (Dims{2, 2, 3}));
  EXPECT_EQ(cases[3].text.find("--dtag=axb") != std::string::npos, true);
  EXPECT_EQ(cases.back().text,
            "--conv --dir=BWD_W --dt=bf16 --stag=axb --wtag=xba --dtag=axb "
            "g1mb4_ic2iw3_oc2ow3_kw1_sw1_pw0_dw0");
}

TEST(Options, Match) {
  const std::string lines = " ic1iw3oc1kw1n\"first:a\" ic2iw3oc1kw3n\"second\"";
  EXPECT_EQ(Parse("--match=kw3" + lines).size(), 1u);
  EXPECT_EQ(Parse("--match=.*kw1[^0-9].*" + lines).front().name, "first:a");
  EXPECT_EQ(Parse("--match=second" + lines).front().name, "second");
  EXPECT_EQ(Parse("--match=none" + lines).size(), 0u);
  EXPECT_EQ(Parse("--match=ic[1,2]" + lines).size(), 2u);
  EXPECT_EQ(Parse("--match=none --reset" + lines).size(), 2u);
  // A problem that does not match need not fit the tags.
  EXPECT_EQ(Parse("--stag=acb --match=iw ic1ih3oc1kh1 ic1iw3oc1kw1").size(), 1u);
}

TEST(Options, Errors) {
  ExpectError("--dir=BWD_X", "--dir: 'BWD_X' must be one of FWD_D");
  ExpectError("--dir=BWD_W,", "--dir: '' must be one of");
  ExpectError("--dir", "--dir must have a value");
  ExpectError("--dt=s8", "--dt: 's8' must be one of f32, bf16 and f16");
  ExpectError("--dt=f32:bf16:f32", "must have one type for src, wei and dst");
  ExpectError("--dt=f32:f32", "must be one type, or three as src:wei:dst");
  ExpectError("--mb=-1", "--mb: '-1' must be a number from 0");
  ExpectError("--mb=2x", "--mb: '2x' must be a number");
  ExpectError("--match=(", "--match: '(' is not a regular expression");
  ExpectError("--match=" + std::string(300, 'a'), "of 300 characters must have at most 256");
  ExpectError("--cfg=f32", "'--cfg=f32' is not an option of problem lines");
  ExpectError("-v1", "'-v1' is not an option of problem lines");
  ExpectError("--conv=1", "'--conv=1' is not an option");
  ExpectError("--batch", "--batch must have a value");
  ExpectError("n" + std::string(5000, 'a'), "has 5001 characters, and must have at most 4096");
  std::string many = "--mb=1";
  for (int i = 1; i < 200; ++i) many += ",1";
  std::string dirs = "--dir=BWD_W", types = "--dt=f32";
  for (int i = 1; i < 100; ++i) dirs += ",BWD_W", types += ",f32";
  ExpectError(many + " " + dirs + " " + types + " ic1iw3oc1kw1", "more than 1000000 cases");
}

TEST(Options, IsOption) {
  for (const char* token : {"--conv", "--deconv", "--reset", "--dir=BWD_W", "--dt=f32", "--stag=a",
                            "--wtag=a", "--dtag=a", "--mb=1", "--batch=x", "--match=x", "--mb"}) {
    EXPECT_TRUE(ProblemParser::IsOption(token)) << token;
  }
  for (const char* token : {"--threads=4", "--convolution", "--dirs=x", "ic1iw3oc1kw1", "", "-"}) {
    EXPECT_FALSE(ProblemParser::IsOption(token)) << token;
  }
}

TEST(Options, AnErrorChangesNothing) {
  ProblemParser parser;
  EXPECT_TRUE(parser.Accept("ic1iw3oc1kw1").ok());
  EXPECT_FALSE(parser.Accept("--dir=BWD_W,nonsense").ok());
  EXPECT_FALSE(parser.Accept("ic1").ok());
  EXPECT_TRUE(parser.Accept("ic1iw3oc1kw1").ok());
  ASSERT_EQ(parser.cases().size(), 2u);
  EXPECT_EQ(parser.cases()[1].operation.kind, OpKind::kConvolution);
  EXPECT_EQ(parser.TakeCases().size(), 2u);
  EXPECT_TRUE(parser.cases().empty());
}

// --- text and files -----------------------------------------------------------------------------

TEST(RoundTrip, TextMakesTheSameCase) {
  const std::string dirs = "--dir=FWD_D,FWD_B,FWD_I,BWD_D,BWD_W,BWD_WB ";
  ExpectRoundTrip(dirs +
                  "--dt=f32,bf16,f16 ic3ih224oc64oh112kh7sh2 g4mb1ic8iw9oc4kw3dw1pw2n\"a b\"");
  ExpectRoundTrip(dirs +
                  "--stag=abx,axb,xba --dtag=axb,any --wtag=any,abx,xba,axb "
                  "g2mb3_ic4id5ih6iw7_oc6_kd1kh2kw3_sd1sh2sw3_pd0ph1pw4_dd0dh1dw2 "
                  "ic3ih8oc4oh4kh1sh2 mb0ic1iw5oc1kw9pw4");
  ExpectRoundTrip("--deconv " + dirs +
                  "--wtag=any,abx,xba,xab,bax g2ic4ih5oc6oh17kh3sh3ph1 "
                  "ic4iw4oc2ow9kw2sw2 ic1id3oc1kd2sd2n\"#1\"");
}

TEST(RoundTrip, EverySuite) {
  const auto folder = std::filesystem::path(CONVGRAD_SOURCE_DIR) / "problems";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") ExpectRoundTrip("--batch=" + entry.path().string());
  }
}

class BatchFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("problem_line_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "inner");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << content;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(BatchFile, TokensCommentsAndOrigins) {
  const std::string path = Write("suite.txt",
                                 "# a comment with ic1 in it\n"
                                 "--dir=BWD_W   # options\r\n"
                                 "\n"
                                 "ic1iw3oc1kw1_n\"two words # no comment\"\tic2iw3oc2kw1\n"
                                 "ic3iw3oc3kw1");
  const Cases cases = Parse("--batch=" + path + " ic4iw3oc4kw1");
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[0].name, "two words # no comment");
  EXPECT_EQ(cases[0].origin, path + ":4");
  EXPECT_EQ(cases[1].origin, path + ":4");
  EXPECT_EQ(cases[2].origin, path + ":5");
  // Options of a file hold after it, as in benchdnn.
  EXPECT_EQ(cases[3].operation.kind, OpKind::kConvolutionBackwardWeights);
  EXPECT_TRUE(cases[3].origin.empty());
}

TEST_F(BatchFile, NestedRelativeToTheIncludingFile) {
  const std::string outer = Write("outer.txt", "--batch=inner/a.txt\nic9iw3oc1kw1\n");
  Write("inner/a.txt", "\n--batch=b.txt --batch=../c.txt\n");
  const std::string b = Write("inner/b.txt", "ic1iw3oc1kw1\n");
  Write("c.txt", "ic2iw3oc1kw1\n");
  const Cases cases = Parse("--batch=" + outer);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].origin, b + ":1");
  EXPECT_EQ(cases[2].origin, outer + ":2");
}

TEST_F(BatchFile, Errors) {
  ExpectError("--batch=" + (folder_ / "none.txt").string(), "must name a file that can be read");
  ExpectError("--batch=" + folder_.string(), "must name a file that can be read");
  ExpectError("--batch=", "must name a file that can be read");
  const std::string itself = Write("itself.txt", "\n--batch=itself.txt\n");
  ExpectError("--batch=" + itself, itself + ":2: --batch=itself.txt must not nest files");
  const std::string outer = Write("outer.txt", "--batch=inner/wrong.txt\n");
  const std::string wrong = Write("inner/wrong.txt", "\n\nic1iw3oc1kw5\n");
  EXPECT_EQ(ErrorOf("--batch=" + outer).find(wrong + ":3: descriptor 'ic1iw3oc1kw5'"), 0u);
  const std::string option = Write("option.txt", "--skip-impl=ref\n");
  EXPECT_EQ(ErrorOf("--batch=" + option).find(option + ":1: '--skip-impl=ref' is not"), 0u);
  const std::string quote = Write("quote.txt", "--dir=\"a\nb\"\n");
  EXPECT_EQ(ErrorOf("--batch=" + quote).find(quote + ":1: token"), 0u);
  const std::string missing = Write("missing.txt", "--batch=none.txt\n");
  EXPECT_EQ(ErrorOf("--batch=" + missing).find(missing + ":1: --batch=none.txt must"), 0u);
}

TEST_F(BatchFile, SixteenFilesAreNotTooMany) {
  for (int i = 0; i < 15; ++i) {
    Write(std::to_string(i) + ".txt", "--batch=" + std::to_string(i + 1) + ".txt\n");
  }
  Write("15.txt", "ic1iw3oc1kw1\n");
  EXPECT_EQ(Parse("--batch=" + (folder_ / "0.txt").string()).size(), 1u);
}

}  // namespace
}  // namespace convgrad::onednn
