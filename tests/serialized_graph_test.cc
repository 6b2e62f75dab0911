// Serialized graphs as text and as a model: what is read, what is written, what is refused and
// where; the order of operations; shapes, and what older versions meant.
#include "onednn/serialized_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "onednn/graph_dialect.h"
#include "onednn/graph_order.h"
#include "onednn/graph_overrides.h"
#include "onednn/graph_shapes.h"
#include "onednn/json_tree.h"

namespace convgrad::onednn {
namespace {

std::string GraphFile(const std::string& name) {
  std::ifstream file(std::string(CONVGRAD_SOURCE_DIR) + "/problems/graphs/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> GraphFiles() {
  std::vector<std::string> names;
  const std::string folder = std::string(CONVGRAD_SOURCE_DIR) + "/problems/graphs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().filename());
  }
  return names;
}

SerializedGraph Parsed(const std::string& text) {
  Result<SerializedGraph> graph = ReadSerializedGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message() << "\n" << text;
  return graph.ok() ? *graph : SerializedGraph();
}

std::string Tensor(const std::string& id, const std::string& more = "") {
  return R"({"id": )" + id + R"(, "dtype": "f32", "shape": [2, 3], "stride": [3, 1],
    "layout_type": "strided", "property_type": "undef")" +
         more + "}";
}

std::string Op(const std::string& id, const std::string& inputs, const std::string& outputs,
               const std::string& attrs = "{}") {
  return R"({"id": )" + id + R"(, "name": "o", "kind": "Abs", "attrs": )" + attrs +
         R"(, "inputs": [)" + inputs + R"(], "outputs": [)" + outputs + "]}";
}

std::string Graph(const std::string& ops) {
  return R"({"version": "3.14.0", "graph": [)" + ops + "]}";
}

std::string WithAttribute(const std::string& type, const std::string& value) {
  return Graph(Op("0", Tensor("1"), Tensor("2"),
                  R"({"a": {"type": ")" + type + R"(", "value": )" + value + "}}"));
}

std::string WithTensor(const std::string& fields) {
  return Graph(Op("0", "{" + fields + "}", Tensor("2")));
}

TEST(SerializedGraph, ComesBackTheSame) {
  ASSERT_EQ(GraphFiles().size(), 27u);
  for (const std::string& name : GraphFiles()) {
    SCOPED_TRACE(name);
    const SerializedGraph graph = Parsed(GraphFile(name));
    const std::string text = WriteSerializedGraph(graph);
    EXPECT_TRUE(Parsed(text) == graph);
    EXPECT_EQ(WriteSerializedGraph(Parsed(text)), text);
  }
}

constexpr const char* kClamp = R"({
  "version": "3.14.0",
  "engine_kind": "cpu",
  "fpmath_mode": "strict",
  "fpmath_mode_apply_to_int": "false",
  "input_ports": [
    7
  ],
  "output_ports": [],
  "graph": [
    {
      "id": 18446744073709551615,
      "name": "a \"b\"\\\n\u0001",
      "kind": "Clamp",
      "attrs": {
        "min": {
          "type": "f32",
          "value": 0.1
        },
        "list": {
          "type": "s64[]",
          "value": [
            1,
            -2
          ]
        },
        "flag": {
          "type": "bool",
          "value": 1
        }
      },
      "inputs": [
        {
          "id": 7,
          "dtype": "bf16",
          "shape": [
            -9223372036854775808
          ],
          "stride": [
            -9223372036854775808
          ],
          "layout_type": "undef",
          "property_type": "undef"
        }
      ],
      "outputs": [
        {
          "id": 7,
          "dtype": "bf16",
          "shape": [],
          "stride": [],
          "layout_type": "strided",
          "property_type": "host_scalar"
        }
      ]
    }
  ]
}
)";

TEST(SerializedGraph, WritesTheWordsOfOneDnn) {
  SerializedGraph graph;
  graph.version = "3.14.0";
  graph.engine_kind = "cpu";
  graph.fpmath_mode = "strict";
  graph.fpmath_mode_apply_to_int = "false";
  graph.input_ports = {{7}};
  graph.output_ports.emplace();
  GraphOp& op = graph.ops.emplace_back();
  op.id = 18446744073709551615u;
  op.kind = "Clamp";
  op.name = "a \"b\"\\\n\x01";
  op.attributes = {{"min", 0.1f}, {"list", std::vector<int64_t>{1, -2}}, {"flag", true}};
  LogicalTensor tensor;
  tensor.id = 7;
  tensor.type = ElementType::kBF16;
  op.inputs.push_back(tensor);
  tensor.extents = Dims{};
  tensor.layout = LayoutType::kStrided;
  tensor.property = PropertyType::kHostScalar;
  op.outputs.push_back(tensor);
  EXPECT_EQ(WriteSerializedGraph(graph), kClamp);
  EXPECT_TRUE(Parsed(kClamp) == graph);
}

TEST(SerializedGraph, ReadsWhatVersionsDiffer) {
  // No ports, no attributes, no property; unknown keys; members in any order.
  const SerializedGraph graph = Parsed(R"({"graph": [{"outputs": [], "kind": "End", "id": 3,
      "inputs": [{"shape": [4], "dtype": "s8", "new": {"x": [1]}, "id": 5}], "later": null}]})");
  EXPECT_EQ(graph.version, "");
  // A version is kept, whatever it looks like.
  std::string dated = Graph(Op("0", "", ""));
  dated.replace(dated.find("3.14.0"), 6, "3.14.0-rc");
  const SerializedGraph candidate = Parsed(dated);
  EXPECT_EQ(candidate.version, "3.14.0-rc");
  EXPECT_TRUE(Parsed(WriteSerializedGraph(candidate)) == candidate);
  EXPECT_FALSE(graph.input_ports.has_value());
  ASSERT_EQ(graph.ops.size(), 1u);
  EXPECT_EQ(graph.ops[0].name, "");
  EXPECT_EQ(graph.ops[0].inputs[0].extents, Dims{4});
  EXPECT_EQ(graph.ops[0].inputs[0].layout, LayoutType::kUndef);
  EXPECT_EQ(WriteSerializedGraph(graph).find("version"), std::string::npos);

  const auto tensor = [](const std::string& fields) {
    return Parsed(WithTensor(R"("id": 1, "dtype": "f32", )" + fields)).ops[0].inputs[0];
  };
  // -1 is how older versions wrote what is unknown; a layout of undef with strides is strided.
  EXPECT_FALSE(tensor(R"("shape": [-1], "stride": [-1])").extents.has_value());
  EXPECT_EQ(tensor(R"("shape": [-1, 4])").extents, (Dims{kUnknownExtent, 4}));
  EXPECT_EQ(tensor(R"("shape": [2, 4], "stride": [-1], "layout_type": "strided")").strides,
            Dims(2, kUnknownExtent));
  EXPECT_EQ(tensor(R"("shape": [2, 4], "stride": [1, 2], "layout_type": "undef")").layout,
            LayoutType::kStrided);
  EXPECT_EQ(tensor(R"("shape": [2, 4], "stride": [1, 2], "layout_type": "any")").strides, Dims{});

  const auto value = [](const std::string& type, const std::string& text) {
    return Parsed(WithAttribute(type, text)).ops[0].attributes[0].second;
  };
  EXPECT_EQ(value("bool", "1"), GraphValue(true));
  EXPECT_EQ(value("bool", "false"), GraphValue(false));
  EXPECT_EQ(value("f32", "1"), GraphValue(1.0f));
  EXPECT_EQ(value("f32[]", "[0.0640506, -2e3]"), GraphValue(std::vector<float>{0.0640506f, -2e3f}));
  EXPECT_EQ(value("s64", "-9223372036854775808"), GraphValue(kUnknownExtent));
}

struct Refusal {
  std::string text, sentence;
};

TEST(SerializedGraph, NamesThePlaceOfWhatIsWrong) {
  const std::string op = Op("0", Tensor("1"), Tensor("2"));
  const Refusal refusals[] = {
      {"", "line 1, column 0: syntax error while parsing value - unexpected end of input"},
      {"{\n \"graph\": [1,, 2]}", "line 2, column 14: syntax error"},
      {Graph(op) + "x", "invalid literal"},
      {"{\"graph\": [\"\xff\"]}", "ill-formed UTF-8"},
      {"[]", "the top level is a list of 0 values, expected an object"},
      {"{}", "graph is missing"},
      {Graph(""), "graph has no operation"},
      {R"({"graph": {}})", "graph is an object, expected a list"},
      {R"({"version": 3, "graph": []})", "version is 3, expected a string"},
      {R"({"input_ports": [1, "2"], "graph": []})", "input_ports[1] is \"2\", expected a whole"},
      {Graph("null"), "graph[0] is null, expected an object"},
      {Graph(op + ", {}"), "graph[1].id is missing"},
      {Graph(R"({"id": 1, "kind": "A", "inputs": []})"), "graph[0].outputs is missing"},
      {Graph(Op("-1", "", "")), "graph[0].id is -1, expected a whole number from 0"},
      {Graph(Op("1.5", "", "")), "graph[0].id is 1.5, expected a whole number from 0"},
      {Graph(Op("18446744073709551616", "", "")), "graph[0].id is 1.8446744073709552e+19"},
      {Graph(Op("1e308", "", "")), "graph[0].id is 1e+308"},
      {Graph(Op("1e999", "", "")), "number overflow parsing '1e999'"},
      {Graph(Op("0", "7", "")), "graph[0].inputs[0] is 7, expected an object"},
      {Graph(Op("0", "", "", "[]")), "graph[0].attrs is a list of 0 values, expected an object"},
      {Graph(Op("0", "", "", R"({"a": 1})")), "graph[0].attrs.a is 1, expected an object with"},
      {Graph(Op("0", "", "", R"({"a": {"type": "s64"}})")), "graph[0].attrs.a.value is missing"},
      {WithAttribute("s32", "1"), "graph[0].attrs.a.type is \"s32\", expected string, bool, s64"},
      {WithAttribute("s64", "9223372036854775808"),
       "attrs.a.value is 9223372036854775808, expected"},
      {WithAttribute("s64", "1.0"), "attrs.a.value is 1, expected a whole number that s64 has"},
      {WithAttribute("s64[]", "[1, [2]]"), "attrs.a.value[1] is a list of 1 value, expected"},
      {WithAttribute("f32", "1e39"), "attrs.a.value is 9.9999999999999994e+38, expected a number"},
      {WithAttribute("bool", "2"), "attrs.a.value is 2, expected true, false, 1 or 0"},
      {WithAttribute("string", "null"), "attrs.a.value is null, expected a string"},
      {WithTensor(R"("dtype": "f32", "shape": [])"), "graph[0].inputs[0].id is missing"},
      {WithTensor(R"("id": 1, "shape": [])"), "graph[0].inputs[0].dtype is missing"},
      {WithTensor(R"("id": 1, "dtype": "f33", "shape": [])"),
       "inputs[0].dtype is \"f33\", expected"},
      {WithTensor(R"("id": 1, "dtype": "f32")"), "graph[0].inputs[0].shape is missing"},
      {WithTensor(R"("id": 1, "dtype": "f32", "shape": [1e308])"), "inputs[0].shape[0] is 1e+308"},
      {WithTensor(R"("id": 1, "dtype": "f32", "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1])"),
       "inputs[0].shape is a list of 13 values, expected at most 12"},
      {WithTensor(R"("id": 1, "dtype": "f32", "shape": [2, 3], "stride": [3, 1, 1])"),
       "inputs[0].stride is a list of 3 values, expected as many as shape has, 2"},
      {WithTensor(R"("id": 1, "dtype": "f32", "shape": [], "layout_type": "blocked")"),
       "inputs[0].layout_type is \"blocked\", expected undef, any, strided or opaque"},
      {WithTensor(R"("id": 1, "dtype": "f32", "shape": [], "property_type": 3)"),
       "inputs[0].property_type is 3, expected a string"},
      {Graph(Op("0", Tensor("1", R"(, "id": 2)"), "")),
       "graph[0].inputs[0] has the key \"id\" twice"},
      {R"({"graph": [], "graph": []})", "the top level has the key \"graph\" twice"},
  };
  for (const auto& [text, sentence] : refusals) {
    const Result<SerializedGraph> graph = ReadSerializedGraph(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_NE(graph.status().message().find(sentence), std::string::npos)
        << graph.status().message() << " lacks " << sentence;
  }
}

TEST(SerializedGraph, BoundsWhatItReads) {
  const auto message = [](const std::string& text) {
    return ReadSerializedGraph(text).status().message();
  };
  const std::string deep(1'000'000, '[');
  EXPECT_NE(message(deep).find("is nested deeper than 32 levels"), std::string::npos);
  EXPECT_LT(message(deep).size(), 300u);
  const std::string keys = [] {
    std::string text = "{";
    for (int i = 0; i < 300'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
    return text + "\"0\":0}";
  }();
  EXPECT_NE(message(keys).find("has the key \"0\" twice"), std::string::npos);
  std::string values = "[0";
  for (int i = 0; i < 5'000'000; ++i) values += ",0";
  EXPECT_NE(message(values + "]").find("more than 4194304 values"), std::string::npos);
  EXPECT_NE(message(std::string(kMostJsonBytes + 1, ' ')).find("must have at most 67108864"),
            std::string::npos);
  // A long string is shown by its beginning.
  const std::string name(100'000, 'n');
  EXPECT_LT(message(R"({"version": ")" + name + R"("})").size(), 200u);
  EXPECT_LT(message(R"({")" + name + R"(": nul)").size(), 300u);
  std::string attributes = "{";
  for (int i = 0; i < 300; ++i) {
    attributes +=
        (i == 0 ? "\"" : ", \"") + std::to_string(i) + R"(": {"type": "s64", "value": 0})";
  }
  EXPECT_NE(message(Graph(Op("0", "", "", attributes + "}"))).find("has 300 attributes"),
            std::string::npos);
}

// However a file is cut off, and whichever byte is another one, there is a graph or a sentence.
TEST(SerializedGraph, SurvivesCutAndChangedText) {
  const std::string text = GraphFile("unknown_shapes.json");
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    const Result<SerializedGraph> graph = ReadSerializedGraph(text.substr(0, length));
    ASSERT_FALSE(graph.ok()) << length;
    ASSERT_NE(graph.status().message().find("line "), std::string::npos);
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (char byte : {'\0', '"', '[', '}', '9', '-', '\x80'}) {
      std::string changed = text;
      changed[at] = byte;
      const Result<SerializedGraph> graph = ReadSerializedGraph(changed);
      if (graph.ok()) {
        ASSERT_TRUE(Parsed(WriteSerializedGraph(*graph)) == *graph) << at << byte;
      } else {
        ASSERT_FALSE(graph.status().message().empty());
      }
    }
  }
}

// ---- Order ----

struct Wiring {
  size_t id;
  std::vector<size_t> inputs, outputs;
};

std::vector<GraphOp> Wired(const std::vector<Wiring>& wirings) {
  std::vector<GraphOp> ops;
  for (const Wiring& wiring : wirings) {
    GraphOp& op = ops.emplace_back();
    op.id = wiring.id;
    for (size_t id : wiring.inputs) op.inputs.emplace_back().id = id;
    for (size_t id : wiring.outputs) op.outputs.emplace_back().id = id;
  }
  return ops;
}

TEST(GraphOrder, PutsWritersFirstAndElseKeepsTheOrder) {
  const Result<GraphEdges> edges = ConnectOperations(
      Wired({{9, {3}, {4}}, {8, {0}, {1}}, {7, {1, 2}, {3}}, {6, {0}, {2}}, {5, {0, 0}, {}}}));
  ASSERT_TRUE(edges.ok()) << edges.status().message();
  EXPECT_EQ(edges->order, (std::vector<size_t>{1, 3, 2, 0, 4}));
  EXPECT_EQ(edges->writers.at(3).op, 2u);
  EXPECT_FALSE(edges->writers.contains(0));
}

TEST(GraphOrder, RefusesWhatDoesNotHangTogether) {
  const std::pair<std::vector<Wiring>, std::string> refusals[] = {
      {{{1, {}, {}}, {1, {}, {}}}, "two operations have the id 1"},
      {{{1, {}, {5}}, {2, {}, {5}}}, "tensor 5 is an output of operation 1 and of operation 2"},
      {{{1, {}, {5, 5}}}, "tensor 5 is an output of operation 1 twice"},
      {{{1, {5}, {5}}}, "operation 1 reads a tensor that it writes itself"},
      {{{1, {12}, {11}}, {2, {11}, {12}}, {3, {12}, {13}}}, "operations "},
  };
  for (const auto& [wirings, sentence] : refusals) {
    const Result<GraphEdges> edges = ConnectOperations(Wired(wirings));
    ASSERT_FALSE(edges.ok()) << sentence;
    EXPECT_EQ(edges.status().message().find(sentence), 0u) << edges.status().message();
  }
  std::vector<Wiring> ring;
  for (size_t i = 0; i < 1000; ++i) ring.push_back({i, {i}, {(i + 1) % 1000}});
  EXPECT_NE(ConnectOperations(Wired(ring)).status().message().find("and 992 more wait for each"),
            std::string::npos);
}

// ---- What older versions meant ----

const GraphOp& OpOf(const SerializedGraph& graph, size_t id) {
  return *std::ranges::find(graph.ops, id, &GraphOp::id);
}

TEST(GraphDialect, TranslatesFilters) {
  const SerializedGraph first = Parsed(GraphFile("first_generation_conv_transpose.json"));
  const GraphOp turned = InCurrentWords(OpOf(first, 0));
  EXPECT_EQ(*turned.Find("weights_format"), GraphValue(std::string("IOX")));
  EXPECT_EQ(turned.inputs[1].extents, (Dims{4, 6, 3, 3}));
  EXPECT_EQ(turned.inputs[1].strides, (Dims{9, 36, 3, 1}));
  EXPECT_TRUE(InCurrentWords(OpOf(first, 1)) == OpOf(first, 1));

  const SerializedGraph between = Parsed(GraphFile("between_generations.json"));
  const GraphOp renamed = InCurrentWords(OpOf(between, 2));
  EXPECT_EQ(renamed.kind, "ConvTransposeBackwardWeights");
  EXPECT_NE(renamed.Find("weights_shape"), nullptr);
  EXPECT_EQ(renamed.Find("filter_shape"), nullptr);
}

TEST(GraphDialect, DropsOnlyPadsThatTakeNoWindowAway) {
  const SerializedGraph graph = Parsed(GraphFile("between_generations.json"));
  GraphOp op = OpOf(graph, 3);  // 8 pixels, windows of 1 at every second one
  const auto pads_end = [&](Dims pads) {
    for (auto& [name, value] : op.attributes) {
      if (name == "pads_end") value = pads;
    }
    return *InCurrentWords(op).Find("pads_end");
  };
  EXPECT_EQ(pads_end({-1, -1}), GraphValue(Dims{0, 0}));
  EXPECT_EQ(pads_end({-9, kUnknownExtent}), GraphValue(Dims{-9, kUnknownExtent}));
}

// The windows that pads_end takes away: src ends before them, in the same memory.
TEST(GraphDialect, CropsSrcWhereNegativePadsTakeWindowsAway) {
  GraphOp op = OpOf(Parsed(GraphFile("between_generations.json")), 3);
  const Dims strides = op.inputs[0].strides;
  for (auto& [name, value] : op.attributes) {
    if (name == "pads_end") value = Dims{-2, -1};
  }
  for (const char* kind : {"Convolution", "ConvolutionBackwardWeights"}) {
    op.kind = kind;
    const GraphOp cropped = InCurrentWords(op);
    EXPECT_EQ(*cropped.Find("pads_end"), GraphValue(Dims{0, 0}));
    // The gradient's windows are not looked at.
    const int64_t width = op.kind == "Convolution" ? 8 : 7;
    EXPECT_EQ(cropped.inputs[0].extents, (Dims{1, 4, 6, width}));
    EXPECT_EQ(cropped.inputs[0].strides, strides);
  }
}

TEST(GraphDialect, LeavesOutWhatPartitioningAdds) {
  GraphOp op = OpOf(Parsed(GraphFile("conv_2d.json")), 0);
  const GraphOp before = op;
  op.attributes.emplace_back("partition_id", std::string("0"));
  op.attributes.emplace_back("backend", std::string("dnnl_backend"));
  EXPECT_TRUE(InCurrentWords(op) == before);
}

// ---- Shapes ----

ShapedGraph Shaped(const SerializedGraph& graph) {
  const Result<GraphEdges> edges = ConnectOperations(graph.ops);
  EXPECT_TRUE(edges.ok());
  return InferShapes(graph.ops, *edges);
}

TEST(GraphShapes, FollowFromTheInputs) {
  const ShapedGraph shaped = Shaped(Parsed(GraphFile("unknown_shapes.json")));
  EXPECT_EQ(shaped.ops[0].outputs[0].extents, (Dims{2, 8, 8, 8}));
  EXPECT_EQ(shaped.ops[1].inputs[0].extents, (Dims{2, 8, 8, 8}));
  EXPECT_EQ(shaped.ops[1].outputs[0].extents, (Dims{2, 4, 4, 4}));
  EXPECT_EQ(shaped.ops[2].outputs[0].extents, (Dims{2, 3, 8, 8}));
  for (const ShapedOp& op : shaped.decisions) EXPECT_EQ(op.state, OpState::kRuns);
}

TEST(GraphShapes, TellWhatDoesNotRunAndWhy) {
  SerializedGraph graph = Parsed(GraphFile("other_kinds.json"));
  const auto state = [&](size_t id) {
    const ShapedGraph shaped = Shaped(graph);
    return shaped.decisions[static_cast<size_t>(&OpOf(graph, id) - graph.ops.data())];
  };
  EXPECT_EQ(state(1).state, OpState::kOtherKind);
  EXPECT_EQ(state(7).state, OpState::kUnsupported);
  EXPECT_EQ(state(4).state, OpState::kRuns);
  GraphOp& pool = graph.ops[3];
  GraphOp& conv = graph.ops[4];
  ASSERT_EQ(pool.kind, "MaxPool");
  conv.inputs[0].extents = Dims{2, 4, 5, 5};
  EXPECT_EQ(state(4).state, OpState::kIllegal);
  EXPECT_EQ(state(4).why.message(),
            "tensor 5 is 2x4x4x4 where operation 3 (MaxPool) writes it, and 2x4x5x5 here");
  pool.outputs[0].extents.reset();
  conv.inputs[0].extents.reset();
  EXPECT_EQ(state(4).state, OpState::kUnknown);
  EXPECT_NE(state(4).why.message().find("operation 3 (MaxPool)"), std::string::npos);
}

}  // namespace
}  // namespace convgrad::onednn
