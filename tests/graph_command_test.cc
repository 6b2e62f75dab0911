// convgrad graph as a command, and the runner behind it: edges carry values, options change graphs,
// harness files list them, bad input is one sentence.
#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "onednn/graph_harness.h"
#include "onednn/graph_overrides.h"
#include "onednn/serialized_graph.h"
#include "tests/command_line.h"
#include "tools/commands.h"
#include "tools/graph_run.h"

namespace convgrad::tools {
namespace {

using onednn::GraphOp;
using onednn::GraphOverrides;
using onednn::LogicalTensor;
using onednn::SerializedGraph;

const std::string kGraphs = std::string(CONVGRAD_SOURCE_DIR) + "/problems/graphs/";

SerializedGraph ReadGraph(const std::string& name) {
  std::ifstream file(kGraphs + name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<SerializedGraph> graph = onednn::ReadSerializedGraph(text);
  EXPECT_TRUE(graph.ok()) << name << ": " << graph.status().message();
  return graph.ok() ? *graph : SerializedGraph();
}

// The graph as the last of the words' cases changes it.
Result<SerializedGraph> Changed(const std::string& words) {
  onednn::GraphHarness harness;
  for (const std::string& word : Split(words)) {
    const Status status = harness.Accept(word.starts_with("-") ? word : "--case=" + kGraphs + word);
    if (!status.ok()) return status;
  }
  const onednn::GraphCase& item = harness.cases().back();
  return onednn::Rewrite(ReadGraph(item.path.substr(kGraphs.size())), item.choice.overrides);
}

struct Tally {
  std::vector<std::string> passed, failed, skipped;
};

Tally RunAll(const std::vector<GraphOp>& ops, GraphRunRequest request = {},
             std::map<size_t, TensorBuffer>* tensors = nullptr) {
  Tally tally;
  request.keep_tensors = tensors != nullptr;
  request.report = [&](const OpReport& report) {
    auto& list = report.verdict == Verdict::kPassed   ? tally.passed
                 : report.verdict == Verdict::kFailed ? tally.failed
                                                      : tally.skipped;
    list.push_back(report.op->name + ": " + report.reason);
  };
  Result<std::map<size_t, TensorBuffer>> result = RunGraph(ops, request);
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (result.ok() && tensors != nullptr) *tensors = *std::move(result);
  return tally;
}

// ---- Values ----

// What reaches an operation over an edge are the bits that the other wrote: each operation again,
// by hand, on the tensors that the graph had.
TEST(GraphRun, EdgesCarryTheBitsThatWereWritten) {
  for (const char* name : {"training_step.json", "unknown_shapes.json"}) {
    SCOPED_TRACE(name);
    std::map<size_t, TensorBuffer> tensors;
    const SerializedGraph graph = *Changed(std::string(name));
    EXPECT_EQ(RunAll(graph.ops, {}, &tensors).passed.size(), graph.ops.size());
    for (const GraphOp& op : graph.ops) {
      Operation operation{*ParseOpKind(op.kind), {}};
      for (const auto& [key, value] : op.attributes) {
        if (const auto* list = std::get_if<Dims>(&value)) operation.attributes.Set(key, *list);
        if (const auto* text = std::get_if<std::string>(&value)) {
          operation.attributes.Set(key, *text);
        }
      }
      std::vector<ConstTensorView> inputs;
      for (const LogicalTensor& input : op.inputs) inputs.push_back(tensors.at(input.id).view());
      const TensorBuffer& written = tensors.at(op.outputs[0].id);
      TensorBuffer again(written.desc());
      ASSERT_TRUE(convgrad::Run(operation, inputs, {again.view()}).ok()) << op.name;
      EXPECT_TRUE(again.SameBytes(written)) << op.name;
      bool any = false;
      for (int64_t e = 0; e < written.elements(); ++e) any = any || written.At(e) != 0;
      EXPECT_TRUE(any) << op.name << " wrote only zeros";
    }
  }
}

TEST(GraphRun, DataDependOnSeedAndIdAlone) {
  std::map<size_t, TensorBuffer> one, other, third;
  const SerializedGraph graph = ReadGraph("conv_2d.json");
  std::vector<GraphOp> reversed(graph.ops.rbegin(), graph.ops.rend());
  RunAll(graph.ops, {}, &one);
  RunAll(reversed, {.options = {.threads = 1}}, &other);
  RunAll(graph.ops, {.seed = 2}, &third);
  for (const auto& [id, tensor] : one) EXPECT_TRUE(tensor.SameBytes(other.at(id))) << id;
  EXPECT_FALSE(one.at(0).SameBytes(third.at(0)));
}

TEST(GraphRun, FindsAWrongElement) {
  GraphRunRequest request;
  request.tamper = [](std::vector<TensorBuffer>& outputs, bool) {
    outputs[0].Set(outputs[0].elements() - 1, outputs[0].At(outputs[0].elements() - 1) + 1);
  };
  const Tally tally = RunAll(ReadGraph("conv_2d.json").ops, request);
  EXPECT_EQ(tally.passed.size(), 0u);
  ASSERT_EQ(tally.failed.size(), 3u);
  EXPECT_NE(tally.failed[0].find("the formula says"), std::string::npos) << tally.failed[0];
}

// Each operation in each rank and type, also of reals, with alternatives of its attributes.
TEST(GraphRun, RunsEveryOperationRankAndType) {
  int count = 0;
  for (const char* family : {"conv", "conv_transpose"}) {
    for (const char* pass : {"", "_backward_data", "_backward_weights"}) {
      for (const char* rank : {"_1d", "_2d", "_3d"}) {
        const std::string name = Join(family, pass, rank, ".json");
        for (const char* type : {"f32", "bf16", "f16"}) {
          for (const bool reals : {false, true}) {
            SCOPED_TRACE(name + " " + type);
            const Result<SerializedGraph> graph = Changed(Join("--dt=", type, " ", name));
            ASSERT_TRUE(graph.ok()) << graph.status().message();
            const Tally tally = RunAll(graph->ops, {.reals = reals});
            EXPECT_EQ(tally.passed.size(), 3u) << testing::PrintToString(tally.failed);
            count += static_cast<int>(tally.passed.size());
          }
        }
      }
    }
  }
  EXPECT_EQ(count, 18 * 3 * 3 * 2);
}

// Convolutions, each of the one before it.
std::vector<GraphOp> Chain(size_t count, const std::string& type) {
  SerializedGraph graph =
      *Changed("--in-shapes=0:1x8x9x9+1:8x8x3x3 --dt=" + type + " unknown_shapes.json");
  GraphOp link = graph.ops[0];
  link.inputs.pop_back();  // the bias
  graph.ops.assign(1, link);
  for (size_t i = 1; i < count; ++i) {
    link.id = i;
    link.name = std::to_string(i);
    link.inputs[0].id = link.outputs[0].id;
    link.inputs[1].id = 100 + i;
    link.outputs[0].id = 200 + i;
    graph.ops.push_back(link);
  }
  return graph.ops;
}

// A chain that would overflow f16 if numbers grew as sums do.
TEST(GraphRun, KeepsNumbersSmallDownAChain) {
  std::map<size_t, TensorBuffer> tensors;
  EXPECT_EQ(RunAll(Chain(12, "f16"), {}, &tensors).passed.size(), 12u);
  const TensorBuffer& last = tensors.at(211);
  double largest = 0;
  for (int64_t e = 0; e < last.elements(); ++e) largest = std::max(largest, std::abs(last.At(e)));
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 65504);
}

// Numbers of any kind that are long enough chains' end in infinity, then in NaN: that is right.
TEST(GraphRun, OverflowIsNoError) {
  for (const std::string type : {"f16", "bf16", "f32"}) {
    GraphRunRequest request;
    request.reals = true;
    std::map<size_t, TensorBuffer> tensors;
    const size_t count = type == "f16" ? 40 : 80;
    const Tally tally = RunAll(Chain(count, type), request, &tensors);
    EXPECT_EQ(tally.passed.size(), count) << (tally.failed.empty() ? "" : tally.failed[0]);
    EXPECT_FALSE(std::isfinite(tensors.at(200 + count - 1).At(0)));
    // An infinity where there is none is one.
    request.tamper = [](std::vector<TensorBuffer>& outputs, bool) {
      outputs[0].Set(0, std::numeric_limits<double>::infinity());
    };
    EXPECT_EQ(RunAll(Chain(1, type), request).failed.size(), 1u);
  }
}

// ---- Options ----

const LogicalTensor& TensorOf(const SerializedGraph& graph, size_t id) {
  for (const GraphOp& op : graph.ops) {
    for (const auto* tensors : {&op.outputs, &op.inputs}) {
      for (const LogicalTensor& tensor : *tensors) {
        if (tensor.id == id) return tensor;
      }
    }
  }
  ADD_FAILURE() << "no tensor " << id;
  return graph.ops[0].inputs[0];
}

struct Change {
  std::string words;
  size_t tensor;
  Dims extents, strides;
};

TEST(GraphOptions, ShapesAreInferredAgain) {
  const Change changes[] = {
      {"--in-shapes=0:1x3x10x6 unknown_shapes.json", 7, {1, 3, 10, 6}, {180, 60, 6, 1}},
      {"--in-shapes=0:1x3x10x6*acdb unknown_shapes.json", 3, {1, 8, 10, 6}, {480, 1, 48, 8}},
      {"--in-shapes=0:1x3x10x6*acdb unknown_shapes.json", 7, {1, 3, 10, 6}, {180, 1, 18, 3}},
      {"--in-shapes=0:*dcba unknown_shapes.json", 0, {2, 3, 8, 8}, {1, 2, 6, 48}},
      {"--in-shapes=+0:1x3x10x6++1:8x3x3x3+ unknown_shapes.json",
       7,
       {1, 3, 10, 6},
       {180, 60, 6, 1}},
      {"--in-shapes=0:dcba unknown_shapes.json", 0, {2, 3, 8, 8}, {1, 2, 6, 48}},
      {"--in-shapes=0:*400x100x10x1 unknown_shapes.json", 0, {2, 3, 8, 8}, {400, 100, 10, 1}},
      {"--in-shapes=7:*acdb unknown_shapes.json", 7, {2, 3, 8, 8}, {192, 1, 24, 3}},
      {"--op-attrs=1:strides:1x1 unknown_shapes.json", 7, {2, 3, 16, 16}, {768, 256, 16, 1}},
      {"--op-attrs=0:auto_pad:VALID+1:groups:2 --in-shapes=4:4x4x3x3 unknown_shapes.json",
       5,
       {2, 4, 3, 3},
       {36, 9, 3, 1}},
      {"--mb=5 unknown_shapes.json", 7, {5, 3, 8, 8}, {192, 64, 8, 1}},
      {"--mb=5 --in-shapes=0:7x3x4x4 unknown_shapes.json", 3, {5, 8, 4, 4}, {128, 16, 4, 1}},
      {"--mb=7 training_step.json", 9, {7, 8, 12, 12}, {1152, 144, 12, 1}},
      {"--mb=7 training_step.json", 10, {8, 3, 3, 3}, {27, 9, 3, 1}},
      {"--mb=3 channels_last_strides.json", 3, {3, 4, 6, 5}, {120, 1, 20, 4}},
      {"--mb=3 channels_last_strides.json", 4, {3, 4, 6, 5}, {192, 48, 8, 1}},
      {"--mb=3 other_kinds.json", 4, {3, 4, 8, 8}, {256, 64, 8, 1}},
      {"--in-shapes=0:1x3x7+1:4x3x2+2:4 "
       "--op-attrs=0:strides:1*pads_begin:0*pads_end:0*dilations:3 conv_2d.json",
       3,
       {1, 4, 4},
       {16, 4, 1}},
      {"--op-attrs=1:weights_format:OIX*weights_shape:6x2x3x2 conv_backward_weights_2d.json",
       13,
       {6, 2, 3, 2},
       {12, 6, 2, 1}},
      {"--mb=0 --dt=undef channels_last_strides.json", 6, {2, 3, 6, 5}, {}},
  };
  for (const auto& [words, id, extents, strides] : changes) {
    SCOPED_TRACE(words);
    const Result<SerializedGraph> graph = Changed(words);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(TensorOf(*graph, id).extents, extents);
    EXPECT_EQ(TensorOf(*graph, id).strides, strides);
  }
}

TEST(GraphOptions, WhatAnotherKindMakesOfNewShapesIsUnknown) {
  const Result<SerializedGraph> graph = Changed("--in-shapes=0:2x4x16x16 other_kinds.json");
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(TensorOf(*graph, 4).extents, (Dims{2, 4, 16, 16}));  // of ReLU
  EXPECT_FALSE(TensorOf(*graph, 5).extents.has_value());         // of MaxPool
  const Tally tally = RunAll(graph->ops);
  EXPECT_EQ(tally.passed.size(), 1u);
  EXPECT_NE(tally.skipped[3].find("the shape of tensor 5 is of unknown rank"), std::string::npos);
}

TEST(GraphOptions, ChangeTypesAttributesAndKinds) {
  const SerializedGraph typed = *Changed("--dt=bf16 shape_tensors.json");
  EXPECT_EQ(TensorOf(typed, 0).type, onednn::ElementType::kBF16);
  EXPECT_EQ(TensorOf(typed, 2).type, onednn::ElementType::kS32);
  const SerializedGraph some = *Changed("--dt=0:f16+1:f16 conv_2d.json");
  EXPECT_EQ(TensorOf(some, 1).type, onednn::ElementType::kF16);
  EXPECT_EQ(TensorOf(some, 2).type, onednn::ElementType::kF32);
  const SerializedGraph other = *Changed(
      "--op-kind=2:Abs --op-attrs=2:x:1*y:2x3*z:0.5*v:0.5x2*w:a --tensor-property=0:variable "
      "other_kinds.json");
  EXPECT_EQ(other.ops[2].kind, "Abs");
  EXPECT_EQ(*other.ops[2].Find("x"), onednn::GraphValue(int64_t{1}));
  EXPECT_EQ(*other.ops[2].Find("y"), onednn::GraphValue(Dims{2, 3}));
  EXPECT_EQ(*other.ops[2].Find("z"), onednn::GraphValue(0.5f));
  EXPECT_EQ(*other.ops[2].Find("v"), onednn::GraphValue(std::vector<float>{0.5f, 2}));
  EXPECT_EQ(*other.ops[2].Find("w"), onednn::GraphValue(std::string("a")));
  EXPECT_EQ(TensorOf(other, 0).property, onednn::PropertyType::kVariable);
}

TEST(GraphOptions, RefuseWhatTheyCannotDo) {
  const std::pair<std::string, std::string> refusals[] = {
      {"--in-shapes=77:1x2 conv_2d.json", "--in-shapes: the graph has no tensor 77"},
      {"--in-shapes=3:1x2 unknown_shapes.json", "tensor 3 is between operations"},
      {"--in-shapes=0:1x2*abc conv_2d.json", "tensor 0 has 2 axes, and its strides or tag 3"},
      {"--in-shapes=0:1x2*aac conv_2d.json", "'aac' after the * is neither a tag such as acdb"},
      {"--in-shapes=0:1x2* conv_2d.json", "'' after the * is neither a tag"},
      {"--in-shapes=0:1xx2 conv_2d.json", "'1xx2' is no shape"},
      {"--in-shapes=0:-1x2 conv_2d.json", "'-1x2' is no shape"},
      {"--in-shapes=1x2 conv_2d.json", "'1x2' must begin with an id and a colon"},
      {"--in-shapes=0:1+0:2 conv_2d.json", "id 0 is there twice"},
      {"--in-shapes=0: conv_2d.json", "'0:' must have a value after the id"},
      {"--in-shapes=0:9999999999x9999999999 conv_2d.json", "64 bits"},
      {"--in-shapes conv_2d.json", "--in-shapes must have a value"},
      {"--op-attrs=9:strides:1 conv_2d.json", "--op-attrs: the graph has no operation 9"},
      {"--op-attrs=0:strides:ax1 conv_2d.json", "'ax1' is no value for 'strides' of operation 0"},
      {"--op-attrs=0:groups:1x2 conv_2d.json", "'1x2' is no value for 'groups'"},
      {"--op-attrs=0:scale:inf conv_2d.json", "'inf' is no value for 'scale' of operation 0"},
      {"--op-attrs=0:scale:1.5xnan conv_2d.json", "'1.5xnan' is no value for 'scale'"},
      {"--op-attrs=0:strides conv_2d.json", "'strides' must be an attribute with its value"},
      {"--dt=f64 conv_2d.json", "'f64' must be one of f32, bf16, f16 and undef"},
      {"--dt=0:f65 conv_2d.json", "--dt: id 0: 'f65' is no type"},
      {"--dt=99:f32 conv_2d.json", "--dt: the graph has no tensor 99"},
      {"--dt=f16 other_kinds.json", "the graph has the operation Quantize"},
      {"--mb=-1 conv_2d.json", "--mb: '-1' must be a number from 0"},
      {"--op-kind=0:undef conv_2d.json", "operation 0 cannot be taken out"},
      {"--tensor-property=0:x conv_2d.json", "'x' is no property"},
      {"--frobnicate=1 conv_2d.json", "'--frobnicate=1' is not an option of graphs"},
  };
  for (const auto& [words, sentence] : refusals) {
    const Result<SerializedGraph> graph = Changed(words);
    ASSERT_FALSE(graph.ok()) << words;
    EXPECT_NE(graph.status().message().find(sentence), std::string::npos)
        << graph.status().message() << " lacks " << sentence;
  }
}

// ---- The command ----

class GraphCommand : public CommandFixture {
 protected:
  // A Convolution of one operation, with what a test changes.
  static std::string Conv(const std::string& shape, const std::string& more = "") {
    const auto tensor = [](const std::string& id, const std::string& extents) {
      return R"({"id": )" + id + R"(, "dtype": "f32", "shape": )" + extents +
             R"(, "stride": [-9223372036854775808], "layout_type": "any"})";
    };
    const std::string list = R"({"type": "s64[]", "value": [1]})";
    return R"({"graph": [{"id": 0, "name": "c", "kind": "Convolution", "attrs": {"strides": )" +
           list + R"(, "pads_begin": )" + list + R"(, "pads_end": )" + list + R"(, "dilations": )" +
           list + more + R"(}, "inputs": [)" + tensor("0", shape) + ", " +
           tensor("1", "[3, 2, 4]") + R"(], "outputs": [)" + tensor("2", "[-9223372036854775808]") +
           "]}]}";
  }
};

TEST_F(GraphCommand, RunsTheFilesOfTheProject) {
  const Outcome outcome = Succeeds(Words{"graph", "--batch=" + kGraphs + "harness"});
  EXPECT_TRUE(outcome.out.ends_with("138 passed, 0 failed, 6 skipped\n"))
      << outcome.out.substr(outcome.out.size() - std::min<size_t>(200, outcome.out.size()));
  EXPECT_EQ(outcome.out.find("FAIL"), std::string::npos);
}

TEST_F(GraphCommand, PrintsOperationShapesKernelAndVerdict) {
  const Outcome outcome = Succeeds(Words{"graph", kGraphs + "other_kinds.json"});
  for (const char* piece :
       {"other_kinds.json, version 3.9.0, 8 operations\n",
        "same bits  operation 0 \"conv 1\" Convolution src 0:2x4x8x8, weights 1:4x4x3x3 -> dst "
        "2:2x4x8x8 bf16\n",
        "SKIP operation 2 \"relu\" ReLU: convgrad has no operation ReLU\n",
        "     tensor 5 is filled like an input of the graph: operation 3 (MaxPool), which writes "
        "it, does not run here\n",
        "SKIP operation 7 \"conv of u8\" Convolution: tensor 11 is of u8, expected f32",
        "\n2 passed, 0 failed, 6 skipped\n", " ms "}) {
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << outcome.out << "lacks " << piece;
  }
  bool names_kernel = false;
  for (const KernelInfo& kernel : Kernels()) {
    names_kernel |= outcome.out.find("GFLOP/s  " + std::string(kernel.name)) != std::string::npos;
  }
  EXPECT_TRUE(names_kernel) << outcome.out;
}

TEST_F(GraphCommand, ControlCharactersDoNotReachTheTerminal) {
  Put("a\x1b[31m\nb\xc2\x9b\xc3\xa9.json", Conv("[2, 9, 2]"));
  const Outcome outcome = Succeeds(Words{"graph", Path("a\x1b[31m\nb\xc2\x9b\xc3\xa9.json")});
  EXPECT_NE(outcome.out.find("/a?[31m?b??\xc3\xa9.json, "), std::string::npos) << outcome.out;
  ExpectRefused(Words{"graph", "b\xc2\x9b\x7f\xc2\xa0.json"}, "b???\xc2\xa0.json");
}

TEST_F(GraphCommand, AWrongResultIsExitCodeOne) {
  GraphRequest request;
  request.words = {kGraphs + "conv_1d.json"};
  request.tamper = [](std::vector<TensorBuffer>& outputs, bool) { outputs[0].Set(0, 1e6); };
  testing::internal::CaptureStdout();
  const Result<int> code = RunGraphs(request);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 1);
  EXPECT_NE(out.find("replay: convgrad graph " + kGraphs + "conv_1d.json\n"), std::string::npos);
  EXPECT_NE(out.find("\n0 passed, 3 failed, 0 skipped\n"), std::string::npos);
}

TEST_F(GraphCommand, DumpsWhatItReadAndWhatOptionsMakeOfIt) {
  const Outcome first = Succeeds(Words{"graph", "--dump", kGraphs + "training_step.json"});
  Put("first.json", first.out);
  Succeeds("graph first.json --dump=second.json");
  EXPECT_EQ(Get("second.json"), first.out);
  const std::string changed = Succeeds("graph --mb=2 --dt=f16 first.json --dump").out;
  EXPECT_EQ(changed.find("f32"), std::string::npos);
  EXPECT_EQ(changed.find("-9223372036854775808"), std::string::npos);
  Put("changed.json", changed);
  EXPECT_EQ(Succeeds("graph --dump changed.json").out, changed);
  Succeeds("graph changed.json");
  ExpectRefused("graph --mb=1,2 first.json --dump=third.json",
                "--dump=FILE writes one graph, and there are 2");
  ExpectRefused("graph first.json --dump=", "--dump= must have a file");
  ExpectRefused("graph first.json --dump=no/folder.json", "no/folder.json");
}

TEST_F(GraphCommand, ReadsHarnessFiles) {
  std::filesystem::create_directories(Path("suite/deep"));
  Put("suite/conv.json", Conv("[2, 9, 2]"));
  Put("own.json", Conv("[2, 9, 2]"));
  Put("suite/deep/list",
      "# a comment\n"
      "--reset --mode=C --engine=cpu -v1 --expected-n-partitions=0 --attr-fpmath=strict\n"
      "--mb=1,2 --in-shapes=,0:3x7x2, \\\n"
      "         --op-attrs=,0:strides:2 \\\n"
      "  --case=conv.json  # beside the folder of this file\n"
      "--reset --op-attrs=0:groups:5 --case=own.json\n"
      "--reset --in-shapes=8:1x1 own.json\n"
      "--reset --batch=more");
  Put("suite/deep/more", "--dt=bf16\n--case=conv.json");
  const Outcome outcome = Succeeds("graph --batch=suite/deep/list");
  EXPECT_TRUE(outcome.out.ends_with("\n13 passed, 0 failed, 2 skipped\n")) << outcome.out;
  for (const char* piece :
       {"suite/conv.json --in-shapes=0:3x7x2 --op-attrs=0:strides:2 --mb=2, 1 operation\n",
        "src 0:2x7x2, weights 1:3x2x4 -> dst 2:2x4x4 f32\n",
        "src 0:2x9x2, weights 1:3x2x4 -> dst 2:2x9x4 bf16\n",
        "SKIP operation 0 \"c\" Convolution: src has 2 channels, not a multiple of groups 5\n",
        "SKIP --in-shapes=8:1x1 own.json: --in-shapes: the graph has no tensor 8\n"}) {
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << outcome.out << "lacks " << piece;
  }
  Put("loop", "--batch=loop");
  ExpectRefused("graph --batch=loop", "must not nest files more than 16 deep");
}

// The oracle would take long: a sample of elements, and the line says how many.
TEST_F(GraphCommand, ChecksASampleOfWhatIsLarge) {
  Put("conv.json", Conv("[2, 9, 2]"));
  const Outcome outcome = Succeeds("graph --in-shapes=0:4x4096x64+1:3x64x64 conv.json");
  EXPECT_NE(outcome.out.find(" elements  operation 0 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" of 1048576 elements  "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find(" 1048576 of "), std::string::npos) << outcome.out;
  GraphRequest request;
  request.words = {"--in-shapes=0:4x4096x64+1:3x64x64", Path("conv.json")};
  request.tamper = [](std::vector<TensorBuffer>& outputs, bool) {
    outputs[0].Set(outputs[0].elements() - 1, 1e6);
  };
  testing::internal::CaptureStdout();
  const Result<int> code = RunGraphs(request);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 1) << out;
}

// As old versions of benchdnn wrote them.
TEST_F(GraphCommand, NegativePadsTakeWindowsAway) {
  Put("conv.json", Conv("[2, 9, 2]"));
  const Outcome conv = Succeeds("graph --op-attrs=0:pads_end:-2 conv.json");
  EXPECT_NE(conv.out.find("src 0:2x7x2, weights 1:3x2x4 -> dst 2:2x6x4 f32\n1 passed, 0 failed"),
            std::string::npos)
      << conv.out;
  const Outcome gradient =
      Succeeds(Words{"graph", "--in-shapes=0:2x4x8", "--op-attrs=0:pads_end:-2",
                     kGraphs + "conv_backward_data_1d.json"});
  EXPECT_NE(gradient.out.find("pads_end is negative, which ConvolutionBackwardData here cannot"),
            std::string::npos)
      << gradient.out;
  EXPECT_TRUE(gradient.out.ends_with("\n2 passed, 0 failed, 1 skipped\n")) << gradient.out;
}

// Comments end before lines are joined, as in problem files.
// A graph that is not there, or is none, has failed; the others run.
TEST_F(GraphCommand, GraphsOfAHarnessThatCannotBeRead) {
  Put("malformed.json", "{\n");
  Put("absent", "--case=none.json\n--case=" + kGraphs + "conv_2d.json --case=malformed.json\n");
  const Outcome outcome = Convgrad("graph --batch=absent");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(outcome.out.starts_with("FAIL absent:1: --case=none.json must name a file"))
      << outcome.out;
  EXPECT_NE(outcome.out.find("\nFAIL malformed.json: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("\n3 passed, 2 failed, 0 skipped\n")) << outcome.out;
  ExpectRefused("graph --dump --batch=absent", "absent:1: --case=none.json must name a file");
}

TEST_F(GraphCommand, DumpsToStandardOutputByItsNames) {
  const std::string graph = " " + kGraphs + "conv_2d.json";
  const std::string text = Succeeds("graph --dump" + graph).out;
  for (const char* name : {"-", "/dev/stdout"}) {
    EXPECT_EQ(Succeeds(std::string("graph --dump=") + name + graph).out, text);
  }
}

TEST_F(GraphCommand, CommentsOfAHarnessEndWithTheirLine) {
  Put("own.json", Conv("[2, 9, 2]"));
  Put("list",
      "--op-attrs=0:strides:2*\\\n"
      "# about what follows \\\n"
      "  pads_end:2,0:strides:3 \\ # about this line\n"
      "  ,0:strides:4 \\\n"
      "--case=own.json#1 # --case=none.json");
  Put("own.json#1", Conv("[2, 9, 2]"));
  const Outcome outcome = Succeeds("graph --batch=list");
  EXPECT_TRUE(outcome.out.ends_with("\n3 passed, 0 failed, 0 skipped\n")) << outcome.out;
  EXPECT_NE(outcome.out.find("own.json#1 --op-attrs=0:strides:2*pads_end:2, 1 operation\n"),
            std::string::npos)
      << outcome.out;
  Put("open", "\n--case=\"own.json");
  ExpectRefused("graph --batch=open", "open:2: token '--case=\"own.json' must close");
}

// An option that cannot be read concerns the graphs after it, not the rest of the file.
TEST_F(GraphCommand, OptionsOfAHarnessThatCannotBeReadSkipGraphs) {
  Put("own.json", Conv("[2, 9, 2]"));
  Put("bad",
      "--case=own.json\n"
      "--in-shapes=0:2*abc:3x64x8*abc,0:3x9x2 --case=own.json\n"
      "--mb=1 --case=own.json\n"
      "--in-shapes= --case=own.json\n"
      "--reset --frobnicate=1\n"
      "--case=own.json\n"
      "--reset --in-shapes=0:2x7x2--op-attrs=0:strides:2 own.json\n"
      "--reset own.json\n");
  const Outcome outcome = Succeeds("graph --batch=bad");
  EXPECT_TRUE(outcome.out.ends_with("\n5 passed, 0 failed, 4 skipped\n")) << outcome.out;
  for (const char* piece :
       {"SKIP own.json: bad:2: --in-shapes: id 0: 'abc:3x64x8*abc' after the * is neither a tag",
        "SKIP --mb=1 own.json: bad:2: --in-shapes: id 0: ",
        "SKIP own.json: bad:5: '--frobnicate=1' is not an option of graphs",
        "SKIP own.json: bad:7: --in-shapes: id 0: '2x7x2--op-attrs=0:strides:2' is no shape"}) {
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << outcome.out << "lacks " << piece;
  }
  Put("none", "--frobnicate own.json");
  EXPECT_TRUE(Succeeds("graph --batch=none")
                  .out.ends_with("\nnothing ran: 0 passed, 0 failed, 1 skipped\n"));
  ExpectRefused("graph --batch=bad --dump", "bad:2: --in-shapes: id 0: ");
  ExpectRefused("graph --in-shapes=0:2*abc:3 own.json", "--in-shapes: id 0: ");
}

TEST_F(GraphCommand, RefusesBadInputInOneSentence) {
  Put("conv.json", Conv("[2, 9, 2]"));
  Succeeds("graph conv.json");
  ExpectRefused("graph", "no graph is given");
  ExpectRefused("graph none.json", "--case=none.json must name a file that can be read");
  ExpectRefused("graph .", "--case=. must name a file");
  ExpectRefused("graph --mb=1", "no graph is given");
  ExpectRefused("graph conv.json --mb=2", "option '--mb=2' comes after the last graph");
  ExpectRefused("graph --unknown conv.json", "'--unknown' is not an option of graphs");
  ExpectRefused("graph --kernel nosuch conv.json", "nosuch");
  Put("cut.json", Conv("[2, 9, 2]").substr(0, 100));
  ExpectRefused("graph cut.json", "cut.json: line 1, column 100: ");
  Put("deep.json", std::string(100'000, '{'));
  ExpectRefused("graph deep.json", "deep.json: line 1, column 2");
  Put("list.json", std::string(100'000, '['));
  ExpectRefused("graph --dump list.json", "is nested deeper than 32 levels");
  Put("groups.json", Conv("[2, 9, 2]", R"(, "groups": {"type": "s64", "value": 3})"));
  ExpectRefused("graph groups.json", "groups.json: operation 0 (Convolution): ");
  Put("bool.json", Conv("[2, 9, 2]", R"(, "groups": {"type": "bool", "value": 1})"));
  ExpectRefused("graph bool.json", "expected s64, s64[] or string");
  Put("product.json", Conv("[4611686018427387904, 4611686018427387904, 2]"));
  ExpectRefused("graph product.json", "product.json: operation 0 (Convolution): ");
  Put("large.json", Conv("[1099511627776, 9, 2]"));
  ExpectRefused("graph large.json", "MiB are available");
  Put("self.json", [] {
    std::string text = Conv("[2, 9, 2]");
    return text.replace(text.find(R"({"id": 2)"), 8, R"({"id": 0)");
  }());
  ExpectRefused("graph self.json", "operation 0 reads a tensor that it writes itself");
}

}  // namespace
}  // namespace convgrad::tools
