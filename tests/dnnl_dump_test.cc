// Files of graphs (set_dump_mode), in a folder of this test: their names, what they hold, when they
// are written. Two of them are kept there for `convgrad graph` to read.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"

namespace convgrad::tests {
namespace {

namespace fs = std::filesystem;
using dnnl::graph::graph_dump_mode;
using dnnl::graph::set_dump_mode;

class DnnlDump : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(kFolder);
    fs::current_path(kFolder);
    Clear();
  }
  void TearDown() override {
    set_dump_mode(graph_dump_mode::none);
    Clear();
    fs::current_path("..");
  }

  // Convolution and Clamp, with extents; the output of the first is not known.
  static graph Made() {
    const Problem problem = MakeProblem({});
    op convolution(3, op::kind::Convolution);
    convolution.add_inputs(InputTensors(problem));
    convolution.add_outputs({logical_tensor(kOutputId, ElementType::f32, 4, Layout::strided)});
    SetAttributes(problem.attributes, convolution);
    graph g(dnnl::engine::kind::cpu, dnnl::fpmath_mode::bf16);
    g.add_op(convolution);
    op clamp(4, op::kind::Clamp, {logical_tensor(kOutputId, ElementType::f32, 4, Layout::strided)},
             {logical_tensor(101, ElementType::f32, 4, Layout::strided)}, "se\xffond");
    clamp.set_attr<float>(op::attr::min, 0);
    clamp.set_attr<float>(op::attr::max, std::numeric_limits<float>::infinity());
    g.add_op(clamp);
    g.finalize();
    return g;
  }
  static std::set<std::string> Names() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(".")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("graph-")) names.insert(name);
    }
    return names;
  }
  static std::string Text(const std::string& name) {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Compile(const partition& p, const dnnl::engine& engine) {
    p.compile(InputTensors(MakeProblem({})),
              {logical_tensor(kOutputId, ElementType::f32, Layout::any)}, engine);
  }

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};

 private:
  static constexpr char kFolder[] = "dnnl_dump";
  static void Clear() {
    for (const std::string& name : Names()) fs::remove(name);
  }
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(DnnlDump, NothingUnlessAsked) {
  graph g = Made();
  Compile(g.get_partitions()[0], engine_);
  EXPECT_EQ(Names(), std::set<std::string>());
}

TEST_F(DnnlDump, GraphsWhenTheyArePartitioned) {
  set_dump_mode(graph_dump_mode::graph);
  graph g = Made();
  EXPECT_EQ(Names(), std::set<std::string>());
  const std::vector<partition> partitions = g.get_partitions();
  Compile(partitions[0], engine_);
  ASSERT_EQ(Names().size(), 2U);
  const std::string partitioning = *Names().begin(), whole = *Names().rbegin();
  EXPECT_TRUE(std::regex_match(whole, std::regex("graph-1[0-9]{5}\\.json"))) << whole;
  EXPECT_EQ(partitioning, whole.substr(0, whole.size() - 5) + "-partitioning.json");
  const std::string text = Text(whole);
  EXPECT_TRUE(Has(text, "\"version\": \"3.14.0\""));
  EXPECT_TRUE(Has(text, "\"engine_kind\": \"cpu\""));
  EXPECT_TRUE(Has(text, "\"fpmath_mode\": \"bf16\""));
  EXPECT_TRUE(Has(text, "\"input_ports\": [\n    0,\n    1\n  ]"));
  EXPECT_TRUE(Has(text, "\"output_ports\": [\n    101\n  ]"));
  EXPECT_TRUE(Has(text, "\"kind\": \"Convolution\""));
  EXPECT_TRUE(Has(text, "\"name\": \"Convolution_3\"")) << "the one of an op without a name";
  EXPECT_TRUE(Has(text, "\"kind\": \"Clamp\""));
  EXPECT_TRUE(Has(text, "\"name\": \"se\\u00ffond\"")) << "bytes that are not UTF-8";
  EXPECT_TRUE(Has(text, "\"value\": 3.4028235e+38")) << "infinity";
  EXPECT_FALSE(Has(text, "partition_id"));
  for (const partition& p : partitions) {
    EXPECT_TRUE(Has(Text(partitioning), "\"value\": \"" + std::to_string(p.get_id()) + "\""));
  }
  fs::copy(whole, "whole.json", fs::copy_options::overwrite_existing);
  g.get_partitions();  // the same files again
  EXPECT_EQ(Names().size(), 2U);
}

TEST_F(DnnlDump, SubgraphsWhenTheyAreCompiled) {
  set_dump_mode(graph_dump_mode::subgraph);
  graph g = Made();
  const partition first = g.get_partitions()[0];
  EXPECT_EQ(Names(), std::set<std::string>());
  Compile(first, engine_);
  ASSERT_EQ(Names().size(), 1U);
  const std::string name = *Names().begin();
  EXPECT_TRUE(std::regex_match(name, std::regex("graph-1[0-9]{5}-[0-9]+\\.json"))) << name;
  EXPECT_TRUE(name.starts_with("graph-" + std::to_string(first.get_id()) + "-")) << name;
  Compile(first, engine_);  // the same file again
  EXPECT_EQ(Names().size(), 1U);
  const std::string text = Text(name);
  EXPECT_TRUE(Has(text, "\"output_ports\": [\n    100\n  ]"));
  EXPECT_FALSE(Has(text, "-9223372036854775808")) << "extents are those that were inferred";
  EXPECT_FALSE(Has(text, "Clamp"));
  fs::copy(name, "subgraph.json", fs::copy_options::overwrite_existing);
  // Also of what cannot be compiled: that is when one wants to see it.
  EXPECT_THROW(first.compile(InputTensors(MakeProblem({})), {}, engine_), dnnl::error);
  EXPECT_EQ(convgrad_dnnl_last_error(), std::string("tensor 100 of the op is not given"));
  EXPECT_EQ(Names().size(), 2U);
}

TEST_F(DnnlDump, AFolderThatIsGoneFailsNoCall) {
  set_dump_mode(graph_dump_mode::graph | graph_dump_mode::subgraph);
  fs::create_directory("gone");
  fs::current_path("gone");
  fs::remove("../gone");
  graph g = Made();
  Compile(g.get_partitions().at(0), engine_);
  fs::current_path(CONVGRAD_DUMP_FOLDER);
}

}  // namespace
}  // namespace convgrad::tests
