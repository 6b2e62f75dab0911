// The command end to end: every operation and attribute through `convgrad run`, on files that the
// test writes itself, against the formulas of the specification; types, file formats and options.
// What is refused, verify, explain and signals are in command_error_test.cc.
#include "tests/command_line.h"

namespace convgrad::tools {
namespace {

using enum DataType;

// How the tensors of a run are kept, and what its output is then.
struct Storage {
  std::string name = "npy f32";
  DataType file = kF32;
  bool fortran_order = false;
  bool safetensors = false;
  std::string dtype;  // of --dtype
  DataType output = kF32;
};

// One run as words: OPERATION name=extents... --attribute value... -> output extents. Data are
// small integers; a shape tensor is s32:extents or s64:extents; name=? asks for output 1.
struct RunLine {
  Operation operation;
  NamedTensors data;     // inputs 0, 1 and bias, as the line has them
  NamedTensors shapes;   // shape tensors
  Words options;         // attributes, as they were written
  std::string spelling;  // of the operation
  std::string bias_output;
  Dims output;
};

Dims ParseExtents(const std::string& text, char separator = 'x') {
  Dims numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) numbers.push_back(stoll(part));
  return numbers;
}

void AddAttribute(const std::string& name, const std::string& text, Attributes* attributes) {
  if (name == "groups") {
    attributes->Set(name, std::stoll(text));
  } else if (name == "auto_pad" || name.ends_with("_format")) {
    attributes->Set(name, text);
  } else {
    attributes->Set(name, ParseExtents(text, ','));
  }
}

void AddArgument(const std::string& word, RunLine* line) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  if (value == "?") {
    line->bias_output = name;
  } else if (value.starts_with("s")) {
    const Dims values = ParseExtents(value.substr(4));
    line->shapes.push_back({name,
                            {value.starts_with("s32:") ? kS32 : kS64,
                             {static_cast<int64_t>(values.size())},
                             {values.begin(), values.end()}}});
  } else {
    const auto seed = static_cast<uint32_t>(17 + line->data.size());
    line->data.push_back({name, Integers(ParseExtents(value), seed)});
  }
}

RunLine ParseRunLine(const std::string& text) {
  const Words words = Split(text);
  RunLine line;
  line.spelling = words[0];
  const Result<OpKind> kind = ParseOpKind(words[0]);
  EXPECT_TRUE(kind.ok()) << words[0];
  if (kind.ok()) line.operation.kind = *kind;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "->") {
      line.output = ParseExtents(words[++i]);
    } else if (!words[i].starts_with("--")) {
      AddArgument(words[i], &line);
    } else {
      line.options.push_back(words[i]);
      const size_t equals = words[i].find('=');
      const bool separate = equals == std::string::npos;
      if (separate) line.options.push_back(words[i + 1]);
      const std::string value = separate ? words[i + 1] : words[i].substr(equals + 1);
      AddAttribute(words[i].substr(2, equals - 2), value, &line.operation.attributes);
      i += separate ? 1 : 0;
    }
  }
  return line;
}

// What the specification says of output 0, or of output 1 where `bias` is true.
Tensor Evaluate(const RunLine& line, bool bias = false) {
  std::vector<std::vector<float>> data;
  std::vector<ConstTensorView> views;
  for (const auto& [name, tensor] : line.data) {
    data.emplace_back(tensor.values.begin(), tensor.values.end());
    views.emplace_back(data.back().data(), tensor.extents);
  }
  const Result<Formula> formula =
      Formula::Make(line.operation, views, TensorDesc{kF32, line.output, {}, {}});
  Tensor expected{kF32, line.output, {}};
  if (!formula.ok()) {
    ADD_FAILURE() << "the formulas refuse: " << formula.status().message();
    return expected;
  }
  for (int64_t e = 0; !bias && e < NumElements(line.output); ++e) {
    expected.values.push_back(formula->At(IndexOf(e, line.output)).value);
  }
  if (!bias) return expected;
  for (int64_t c = 0; !std::isnan(formula->BiasAt(c).value); ++c) {
    expected.values.push_back(formula->BiasAt(c).value);
  }
  expected.extents = {static_cast<int64_t>(expected.values.size())};
  return expected;
}

class CommandTest : public CommandFixture {
 protected:
  // Writes the inputs and returns the words of the command.
  Words Prepare(const RunLine& line, const Storage& storage) const {
    Words words = {"run", line.spelling};
    NamedTensors all = line.data;
    for (auto& entry : all) entry.second.type = storage.file;
    all.insert(all.end(), line.shapes.begin(), line.shapes.end());
    if (storage.safetensors) Put("in.safetensors", SafetensorsBytes(all));
    for (const auto& [name, tensor] : all) {
      const std::string npy = name + ".npy";
      if (!storage.safetensors) Put(npy, NpyBytes(tensor, storage.fortran_order));
      words.push_back(name + "=" + (storage.safetensors ? "in.safetensors:" + name : npy));
    }
    words = words + line.options;
    if (!storage.dtype.empty()) words = words + Words{"--dtype", storage.dtype};
    if (!line.bias_output.empty()) words.push_back(line.bias_output + "=bias_output.npy");
    return words + Words{"--out", storage.safetensors ? "out.safetensors:result" : "out.npy"};
  }

  void ExpectFormula(const std::string& text, const Storage& storage = {}) const {
    SCOPED_TRACE(storage.name + ": " + text);
    const RunLine line = ParseRunLine(text);
    Remove("out.npy");
    Remove("bias_output.npy");
    const Outcome outcome = Succeeds(Prepare(line, storage));
    EXPECT_EQ(outcome.out, "");
    Tensor expected = Evaluate(line);
    expected.type = storage.output;
    EXPECT_EQ(storage.safetensors ? ParseSafetensors(Get("out.safetensors"))["result"]
                                  : ParseNpy(Get("out.npy")),
              expected);
    if (line.bias_output.empty()) return;
    Tensor bias = Evaluate(line, true);
    EXPECT_EQ(ParseNpy(Get("bias_output.npy")), bias);
  }

  void ExpectFormulas(const std::vector<std::string>& lines) const {
    for (const std::string& line : lines) ExpectFormula(line);
  }

  // `pattern` with each of `values` in place of its '@'. A value is word|output extents.
  void ExpectValues(const std::string& pattern, const std::vector<std::string>& values) const {
    for (const std::string& value : values) {
      const size_t bar = value.find('|');
      std::string line = pattern;
      line.replace(line.find('@'), 1, value.substr(0, bar));
      ExpectFormula(line + " -> " + value.substr(bar + 1));
    }
  }
};

// All ten names, ranks 1 to 3, both data formats, every argument.
const std::vector<std::string> kTenNames = {
    "Convolution src=2x5x6x3 weights=3x2x3x4 bias=4 --strides 2,1 --pads_begin 1,0 "
    "--pads_end 0,1 --dilations 1,2 -> 2x2x5x4",
    "ConvolutionBackwardData diff_dst=1x4x3x5 weights=4x2x3x2 --strides 2,1 --pads_begin 1,1 "
    "--pads_end 1,0 --dilations 1,1 --data_format NCX --weights_format OIX "
    "--dst_shape 1,2,6,5 -> 1x2x6x5",
    "ConvolutionBackwardWeights src=2x9x3 diff_dst=2x4x5 --strides 2 --pads_begin 0 --pads_end 1 "
    "--dilations 2 --weights_shape 2,3,5 -> 2x3x5",
    "ConvTranspose src=1x3x2x2 weights=3x2x3x2 bias=3 --strides 2,3 --pads_begin 1,0 "
    "--pads_end 0,0 --dilations 1,1 -> 1x6x5x3",
    "ConvTransposeBackwardData diff_dst=1x3x6x5 weights=2x3x3x2 --strides 2,3 --pads_begin 1,0 "
    "--pads_end 0,0 --dilations 1,1 --data_format NCX --weights_format IOX -> 1x2x3x2",
    "ConvTransposeBackwardWeights src=2x3x2x2x2 diff_dst=2x2x4x3x4 --strides 2,1,2 "
    "--pads_begin 0,0,0 --pads_end 0,0,0 --dilations 1,1,1 --data_format NCX "
    "--weights_format IOX --weights_shape 3,2,2,2,2 -> 3x2x2x2x2",
    "ConvolutionBackpropData output_delta=2x4x2 filter=3x5x2 --strides 1 --pads_begin 1 "
    "--pads_end 1 --dilations 1 --output_shape 2,4,5 -> 2x4x5",
    "ConvolutionBackpropFilters input_forward=2x3x5x4 output_delta=2x2x3x4 --strides 2,1 "
    "--pads_begin 0,0 --pads_end 1,0 --dilations 1,1 --data_format NCX --filter_format OIX "
    "--filter_shape 2,3,2,1 -> 2x3x2x1",
    "ConvTransposeBackpropData output_delta=1x7x3 filter=3x2x3 --strides 2 --pads_begin 0 "
    "--pads_end 0 --dilations 1 -> 1x3x2",
    "ConvTransposeBackpropFilters input_forward=1x2x3x3 output_delta=1x4x7x5 --strides 2,2 "
    "--pads_begin 0,0 --pads_end 0,0 --dilations 1,1 --data_format NCX --filter_format OIX "
    "--filter_shape 4,2,3,1 -> 4x2x3x1"};

TEST_F(CommandTest, TenNamesInEveryStorage) {
  for (const Storage& storage : {
           Storage{},
           Storage{"npy f16", kF16, false, false, "", kF16},
           Storage{"npy f32 in Fortran order", kF32, true, false, "", kF32},
           Storage{"npy f16 in Fortran order, converted", kF16, true, false, "bf16", kF32},
           Storage{"npy f32, bf16", kF32, false, false, "bf16", kF32},
           Storage{"npy f32, f16", kF32, false, false, "f16", kF16},
           Storage{"npy f16, f32", kF16, false, false, "f32", kF32},
           Storage{"safetensors f32", kF32, false, true, "", kF32},
           Storage{"safetensors f16", kF16, false, true, "", kF16},
           Storage{"safetensors bf16", kBF16, false, true, "", kBF16},
           Storage{"safetensors f32, bf16", kF32, false, true, "bf16", kBF16},
       }) {
    for (const std::string& line : kTenNames) ExpectFormula(line, storage);
  }
}

TEST_F(CommandTest, VersionedSpelling) {
  for (size_t i = 6; i < 10; ++i) {
    std::string line = kTenNames[i];
    ExpectFormula(line.insert(line.find(' '), "-1"));
  }
}

TEST_F(CommandTest, StridesAndDilations) {
  ExpectValues(
      "Convolution src=1x9x2 weights=2x2x3 --strides @ --pads_begin 0 --pads_end 0 --dilations 1",
      {"1|1x8x3", "2|1x4x3", "3|1x3x3", "5|1x2x3", "100|1x1x3"});
  ExpectValues(
      "Convolution src=1x9x2 weights=3x2x3 --strides=1 --pads_begin=0 --pads_end=0 --dilations=@",
      {"1|1x7x3", "2|1x5x3", "3|1x3x3", "4|1x1x3"});
  ExpectValues(
      "ConvTranspose src=1x3x2 weights=2x3x2 --strides=@ --pads_begin=0 --pads_end=0 "
      "--dilations=3",
      {"1|1x6x3", "2|1x8x3", "7|1x18x3"});
}

TEST_F(CommandTest, Pads) {
  const std::string convolution =
      "Convolution src=1x5x4x2 weights=2x3x2x3 --strides 1,1 --dilations 1,1 ";
  ExpectFormulas({
      convolution + "--pads_begin 1,2 --pads_end 3,0 -> 1x8x4x3",
      convolution + "--pads_begin 7,0 --pads_end 0,9 -> 1x11x11x3",
      convolution + "--pads_begin '' --pads_end '' -> 1x4x2x3",
      convolution + "--pads_begin= --pads_end=1,1 -> 1x5x3x3",
      // As oneDNN serializes a list of two.
      convolution + "--pads_begin 1,2,0,0,0,0,0,0,0,0,0,0 --pads_end= -> 1x5x4x3",
      "ConvTranspose src=1x4x2 weights=3x3x2 --strides 2 --dilations 1 --pads_begin 2 "
      "--pads_end 1 -> 1x6x3",
      "ConvTranspose src=1x4x2 weights=3x3x2 --strides 2 --dilations 1 --pads_begin= "
      "--pads_end '' -> 1x9x3",
  });
}

TEST_F(CommandTest, AutoPad) {
  // An odd total, so that upper and lower differ; pads that would do harm if they were read.
  const std::string window = " --strides 2 --pads_begin 5 --pads_end 4 --dilations 1 --auto_pad ";
  ExpectValues("Convolution src=1x7x2 weights=4x2x3" + window + "@",
               {"same_upper|1x4x3", "SAME_UPPER|1x4x3", "Same_Upper|1x4x3", "same_lower|1x4x3",
                "SAME_LOWER|1x4x3", "sAmE_lOwEr|1x4x3", "valid|1x2x3", "VALID|1x2x3", "Valid|1x2x3",
                "none|1x7x3", "NONE|1x7x3", "None|1x7x3"});
  ExpectValues("ConvTranspose src=1x8x2 weights=5x3x2" + window + "@",
               {"same_upper|1x16x3", "SAME_LOWER|1x16x3", "Valid|1x19x3", "None|1x10x3"});
  for (const std::string value : {"SAME_UPPER", "same_lower"}) {
    ExpectFormulas({
        "ConvolutionBackwardData diff_dst=1x4x3 weights=4x2x3 --dst_shape=1,7,2" + window + value +
            " -> 1x7x2",
        "ConvolutionBackwardWeights src=1x7x2 diff_dst=1x4x3 --weights_shape=4,2,3" + window +
            value + " -> 4x2x3",
        "ConvTransposeBackwardData diff_dst=1x6x3 weights=5x3x2" + window + value + " -> 1x3x2",
        "ConvTransposeBackwardWeights src=1x3x2 diff_dst=1x6x3 --weights_shape=5,3,2" + window +
            value + " -> 5x3x2",
    });
  }
}

TEST_F(CommandTest, GroupsAndBothGroupedConvTransposeWeights) {
  const std::string window = " --strides 2 --pads_begin 0 --pads_end 0 --dilations 1 ";
  const std::string two = window + "--data_format=NCX --groups=2 ";
  ExpectFormulas({
      "Convolution src=1x4x5 weights=6x2x2" + two + "--weights_format OIX -> 1x6x2",
      "Convolution src=1x4x5 weights=2x2x6" + two + "--weights_format XIO -> 1x6x2",
      "Convolution src=1x5x4 weights=2x1x8 --groups 4" + window + "-> 1x2x8",
      "ConvolutionBackwardData diff_dst=1x6x2 weights=2x2x6 --dst_shape 1,4,5" + two + "-> 1x4x5",
      "ConvolutionBackwardWeights src=1x4x5 diff_dst=1x6x2 --weights_shape 2,2,6" + two +
          "-> 2x2x6",
      "ConvTransposeBackpropData output_delta=1x6x6 filter=2x4x3" + two + "-> 1x4x3",
      "ConvTransposeBackpropData output_delta=1x6x6 filter=3x4x2 --filter_format OIX" + two +
          "-> 1x4x3",
      "ConvTransposeBackpropFilters input_forward=1x4x3 output_delta=1x6x6 --filter_shape 2,4,3" +
          two + "-> 2x4x3",
  });
  // (IC, OC / G) and (IC / G, OC), in both formats.
  for (const auto& [shape, format] : std::vector<std::pair<std::string, std::string>>{
           {"4x3x2", "IOX"}, {"2x6x2", "IOX"}, {"2x3x4", "XOI"}, {"2x6x2", "XOI"}}) {
    const std::string rest = two + "--weights_format " + format;
    std::string list = shape;
    for (char& c : list) c = c == 'x' ? ',' : c;
    ExpectFormulas({
        "ConvTranspose src=1x4x3 weights=" + shape + " bias=6" + rest + " -> 1x6x6",
        "ConvTransposeBackwardData diff_dst=1x6x6 weights=" + shape + rest + " -> 1x4x3",
        "ConvTransposeBackwardWeights src=1x4x3 diff_dst=1x6x6 --weights_shape=" + list + rest +
            " -> " + shape,
    });
  }
}

TEST_F(CommandTest, Formats) {
  const std::string window = " --strides 1 --pads_begin 1 --pads_end 0 --dilations 1 ";
  ExpectFormulas({
      "Convolution src=2x5x3 weights=2x3x4 --data_format NXC --weights_format XIO" + window +
          "-> 2x5x4",
      "Convolution src=2x5x3 weights=4x3x2 --data_format=NXC --weights_format=OIX" + window +
          "-> 2x5x4",
      "Convolution src=2x3x5 weights=2x3x4 --data_format NCX --weights_format XIO" + window +
          "-> 2x4x5",
      "Convolution src=2x3x5 weights=4x3x2 --data_format=NCX --weights_format=OIX" + window +
          "-> 2x4x5",
      "ConvTranspose src=2x5x3 weights=2x4x3 --data_format NXC --weights_format XOI" + window +
          "-> 2x5x4",
      "ConvTranspose src=2x5x3 weights=3x4x2 --data_format NXC --weights_format IOX" + window +
          "-> 2x5x4",
      "ConvTranspose src=2x3x5 weights=2x4x3 --data_format NCX --weights_format XOI" + window +
          "-> 2x4x5",
      "ConvTransposeBackpropData output_delta=2x5x4 filter=2x3x4 --filter_format XIO" + window +
          "-> 2x5x3",
      "ConvTransposeBackpropData output_delta=2x5x4 filter=4x3x2 --filter_format OIX" + window +
          "-> 2x5x3",
      "ConvolutionBackpropData output_delta=2x5x4 filter=4x3x2 --filter_format OIX "
      "--output_shape 2,5,3" +
          window + "-> 2x5x3",
      "ConvolutionBackpropFilters input_forward=2x5x3 output_delta=2x5x4 --filter_format XIO "
      "--filter_shape 2,3,4" +
          window + "-> 2x3x4",
  });
}

TEST_F(CommandTest, OutputPadding) {
  const std::string window = " --strides 2 --pads_begin 0 --pads_end 1 --dilations 1";
  ExpectValues(
      "ConvTranspose src=1x4x2 weights=3x3x2" + window + " --output_padding @",
      {"0|1x8x3", "1|1x9x3", "2|1x10x3", "5|1x13x3", "''|1x8x3", "0,0,0,0,0,0,0,0,0,0,0,0|1x8x3"});
  ExpectFormulas({
      "ConvTransposeBackwardData diff_dst=1x11x3 weights=3x3x2 --output_padding=3" + window +
          " -> 1x4x2",
      "ConvTransposeBackwardWeights src=1x4x2 diff_dst=1x11x3 --output_padding=3 "
      "--weights_shape=3,3,2" +
          window + " -> 3x3x2",
      "ConvolutionBackwardData diff_dst=1x4x3 weights=3x2x3 --output_padding=3 "
      "--dst_shape=1,11,2" +
          window + " -> 1x11x2",
      "ConvolutionBackpropData output_delta=1x4x3 filter=3x2x3 --output_padding=1 "
      "--output_shape=1,9,2" +
          window + " -> 1x9x2",
      "ConvTransposeBackpropData output_delta=1x11x3 filter=3x2x3 --output_padding=3" + window +
          " -> 1x4x2",
      "ConvTransposeBackpropFilters input_forward=1x4x2 output_delta=1x9x3 --output_padding=1 "
      "--filter_shape=3,2,3" +
          window + " -> 3x2x3",
  });
}

TEST_F(CommandTest, ShapesAsAttributeAndAsTensor) {
  const std::string window = " --strides 2 --pads_begin 0 --pads_end 0 --dilations 1 ";
  // With stride 2 both a kernel of 3 and one of 4, a source of 9 and one of 10, are legal.
  for (const std::string type : {"s32:", "s64:"}) {
    ExpectFormulas({
        "ConvolutionBackwardWeights src=1x10x2 diff_dst=1x4x3 weights_shape=" + type + "4x2x3" +
            window + "-> 4x2x3",
        "ConvTransposeBackwardWeights src=1x4x2 diff_dst=1x10x3 weights_shape=" + type + "3x3x2" +
            window + "-> 3x3x2",
        "ConvolutionBackpropFilters input_forward=1x10x2 output_delta=1x4x3 filter_shape=" + type +
            "3x2x3" + window + "-> 3x2x3",
        "ConvTransposeBackpropFilters input_forward=1x4x2 output_delta=1x10x3 filter_shape=" +
            type + "4x2x3" + window + "-> 4x2x3",
        "ConvolutionBackwardData diff_dst=1x4x3 weights=3x2x3 dst_shape=" + type + "1x10x2" +
            window + "-> 1x10x2",
        "ConvolutionBackpropData output_delta=1x4x3 filter=3x2x3 output_shape=" + type + "1x9x2" +
            window + "-> 1x9x2",
        // The tensor goes before the attribute.
        "ConvolutionBackwardWeights src=1x10x2 diff_dst=1x4x3 weights_shape=" + type +
            "4x2x3 --weights_shape 3,2,3" + window + "-> 4x2x3",
    });
  }
  ExpectValues("ConvolutionBackwardData diff_dst=1x4x3 weights=3x2x3 --dst_shape @" + window,
               {"1,9,2|1x9x2", "1,10,2|1x10x2"});
}

TEST_F(CommandTest, BiasGradientIsTheSecondOutput) {
  const std::string window = " --strides 2 --pads_begin 0 --pads_end 0 --dilations 1 ";
  ExpectFormulas({
      "ConvolutionBackwardWeights src=2x9x2 diff_dst=2x4x3 diff_bias=? --weights_shape=3,2,3" +
          window + "-> 3x2x3",
      "ConvTransposeBackwardWeights src=2x4x2 diff_dst=2x9x3 diff_bias=? --weights_shape=3,3,2" +
          window + "-> 3x3x2",
      "ConvolutionBackpropFilters input_forward=2x9x2 output_delta=2x4x3 bias_delta=? "
      "--filter_shape=3,2,3" +
          window + "-> 3x2x3",
      "ConvTransposeBackpropFilters input_forward=2x4x2 output_delta=2x9x3 bias_delta=? "
      "--filter_shape=3,2,3" +
          window + "-> 3x2x3",
  });
}

TEST_F(CommandTest, EmptyBatch) {
  const std::string window = " --strides 1 --pads_begin 0 --pads_end 0 --dilations 1 ";
  ExpectFormulas({
      "Convolution src=0x5x2 weights=2x2x3" + window + "-> 0x4x3",
      "ConvolutionBackwardWeights src=0x5x2 diff_dst=0x4x3 --weights_shape 2,2,3" + window +
          "-> 2x2x3",
  });
}

// ---- Options, types and files ----

// A 1x1 window: the output is a product of matrices.
const char kPointwise[] = " --strides 1 --pads_begin 0 --pads_end 0 --dilations 1 --out out.npy";

TEST_F(CommandTest, Bf16RoundsToNearestEvenOnceOnReadingAndOnceOnWriting) {
  const double half = 0x1p-8;  // half a step of bf16 at 1
  Put("one.npy", NpyBytes(Tensor{kF32, {1, 1, 1}, {1}}));
  Put("x.npy", NpyBytes(Tensor{kF32,
                               {1, 6, 1},
                               {1 + half, 1 + 3 * half, 1 + half + 0x1p-20, -1 - 3 * half,
                                1 + half - 0x1p-20, 3.0}}));
  Succeeds(std::string("run Convolution src=x.npy weights=one.npy --dtype bf16") + kPointwise);
  EXPECT_EQ(ParseNpy(Get("out.npy")),
            (Tensor{kF32, {1, 6, 1}, {1, 1 + 4 * half, 1 + 2 * half, -1 - 4 * half, 1, 3}}));

  // Three times 1 + half: 3 where each is rounded first, else 3 + 3 half, which rounds up.
  Put("x.npy", NpyBytes(Tensor{kF32, {1, 1, 3}, {1 + half, 1 + half, 1 + half}}));
  Put("ones.npy", NpyBytes(Tensor{kF32, {1, 3, 1}, {1, 1, 1}}));
  Succeeds(std::string("run Convolution src=x.npy weights=ones.npy --dtype=bf16") + kPointwise);
  EXPECT_EQ(ParseNpy(Get("out.npy")), (Tensor{kF32, {1, 1, 1}, {3}}));

  // 256 + 1 and 258 + 1 lie halfway between numbers of bf16; 2^-9 thrice is lost only if the sum
  // is rounded after each addition.
  Put("x.npy", NpyBytes(Tensor{kF32, {1, 2, 1}, {256, 258}}));
  Put("one_bias.npy", NpyBytes(Tensor{kF32, {1}, {1}}));
  Succeeds(std::string("run Convolution src=x.npy weights=one.npy bias=one_bias.npy --dtype bf16") +
           kPointwise);
  EXPECT_EQ(ParseNpy(Get("out.npy")), (Tensor{kF32, {1, 2, 1}, {256, 260}}));
  Put("x.npy", NpyBytes(Tensor{kF32, {1, 1, 3}, {1, half, half}}));
  Succeeds(std::string("run Convolution src=x.npy weights=ones.npy --dtype bf16") + kPointwise);
  EXPECT_EQ(ParseNpy(Get("out.npy")), (Tensor{kF32, {1, 1, 1}, {1 + 2 * half}}));
}

TEST_F(CommandTest, SafetensorsWithOneTensorNeedsNoNameAndOthersAreKept) {
  Put("x.safetensors", SafetensorsBytes({{"any name", {kF32, {1, 2, 1}, {3, 4}}}}));
  const Tensor other{kBF16, {2}, {5, 6}};
  const Tensor two{kF32, {1, 1, 1}, {2}};
  Put("all.safetensors", SafetensorsBytes({{"w", two}, {"keep", other}}));
  const std::string line =
      "run Convolution src=x.safetensors weights=all.safetensors:w --strides 1 --pads_begin 0 "
      "--pads_end 0 --dilations 1 --out ";
  Succeeds(line + "all.safetensors:y");
  const Tensor expected{kF32, {1, 2, 1}, {6, 8}};
  EXPECT_EQ(ParseSafetensors(Get("all.safetensors")),
            (std::map<std::string, Tensor>{{"w", two}, {"keep", other}, {"y", expected}}));
  Succeeds(line + "fresh.safetensors");
  const auto fresh = ParseSafetensors(Get("fresh.safetensors"));
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh.begin()->second, expected);
}

TEST_F(CommandTest, BetaAddsToWhatTheOutputFileHolds) {
  const std::string line =
      "ConvolutionBackwardWeights src=2x9x2 diff_dst=2x4x3 diff_bias=? --weights_shape=3,2,3 "
      "--strides 2 --pads_begin 0 --pads_end 0 --dilations 1 -> 3x2x3";
  const Tensor weights = Evaluate(ParseRunLine(line)), bias = Evaluate(ParseRunLine(line), true);
  const auto sum = [](const Tensor& result, const Tensor& before, double beta) {
    Tensor all = result;
    for (size_t e = 0; e < all.values.size(); ++e) all.values[e] += beta * before.values[e];
    return all;
  };
  Tensor old = Integers({3, 2, 3}, 5), old_bias = Integers({3}, 6);
  const Words words = Prepare(ParseRunLine(line), {});
  for (const double beta : {1.0, -0.5, 2.0}) {
    SCOPED_TRACE(beta);
    Put("out.npy", NpyBytes(old));
    Put("bias_output.npy", NpyBytes(old_bias, true));
    Succeeds(words + Words{"--beta", std::to_string(beta)});
    EXPECT_EQ(ParseNpy(Get("out.npy")), sum(weights, old, beta));
    EXPECT_EQ(ParseNpy(Get("bias_output.npy")), sum(bias, old_bias, beta));
  }
  // In .npy, bf16 comes back from f32.
  Put("out.npy", NpyBytes(old));
  Put("bias_output.npy", NpyBytes(old_bias));
  Succeeds(words + Split("--beta=1 --dtype bf16"));
  EXPECT_EQ(ParseNpy(Get("out.npy")), sum(weights, old, 1));

  Storage storage{"bf16", kBF16, false, true, "", kBF16};
  RunLine no_bias = ParseRunLine(line);
  no_bias.bias_output.clear();
  old.type = kBF16;
  Put("out.safetensors", SafetensorsBytes({{"other", old_bias}, {"result", old}}));
  Succeeds(Prepare(no_bias, storage) + Split("--beta 1"));
  Tensor expected = sum(weights, old, 1);
  expected.type = kBF16;
  EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["result"], expected);
  EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["other"], old_bias);

  // Without beta the file's contents play no part.
  Put("out.npy", "no tensor at all");
  Succeeds(words);
  EXPECT_EQ(ParseNpy(Get("out.npy")), weights);
}

TEST_F(CommandTest, ThreadsWorkspaceAndKernelNeverChangeAByte) {
  // Reals whose sums depend on their order, and enough of them for several ranges of work.
  Tensor src{kF32, {2, 20, 20, 8}, {}}, diff_dst{kF32, {2, 18, 18, 8}, {}};
  for (int e = 0; e < 6400; ++e) src.values.push_back(std::sin(e) * std::exp(e % 13));
  for (int e = 0; e < 5184; ++e) diff_dst.values.push_back(std::cos(e) * std::exp(e % 17));
  Put("src.npy", NpyBytes(src));
  Put("diff_dst.npy", NpyBytes(diff_dst));
  const std::string line =
      "run ConvolutionBackwardWeights src=src.npy diff_dst=diff_dst.npy diff_bias=bias.npy "
      "--strides 1,1 --pads_begin 0,0 --pads_end 0,0 --dilations 1,1 --weights_shape 3,3,8,8 "
      "--out out.npy ";
  Succeeds(line);
  const std::string expected = Get("out.npy"), expected_bias = Get("bias.npy");
  EXPECT_EQ(ParseNpy(expected).extents, (Dims{3, 3, 8, 8}));
  for (const std::string options :
       {"--threads 1", "--threads=2", "--threads 7", "--threads 0", "--threads 1000000",
        "--workspace 0", "--workspace=-1", "--threads 2 --workspace 0"}) {
    SCOPED_TRACE(options);
    Remove("out.npy");
    Succeeds(line + options);
    EXPECT_TRUE(Get("out.npy") == expected);
    EXPECT_TRUE(Get("bias.npy") == expected_bias);
  }
  // The oracle has its own order of the sum; its integers are everybody's.
  for (const std::string options : {"--kernel oracle", "--kernel=oracle --threads 3"}) {
    RunLine integers = ParseRunLine(kTenNames[2]);
    Succeeds(Prepare(integers, {}) + Split(options));
    EXPECT_EQ(ParseNpy(Get("out.npy")), Evaluate(integers));
  }
}

TEST_F(CommandTest, WordsInAnyOrderAndTheOutputByItsName) {
  const RunLine line = ParseRunLine(kTenNames[0]);
  Prepare(line, {});
  Succeeds(
      "run --out=out.npy Convolution --dilations 1,2 bias=bias.npy --pads_end 0,1 "
      "weights=weights.npy "
      "--strides=2,1 src=src.npy --pads_begin 1,0");
  EXPECT_EQ(ParseNpy(Get("out.npy")), Evaluate(line));
  Succeeds(
      "run Convolution dst=named.npy src=src.npy weights=weights.npy bias=bias.npy --strides 2,1 "
      "--pads_begin 1,0 --pads_end 0,1 --dilations 1,2");
  EXPECT_EQ(ParseNpy(Get("named.npy")), Evaluate(line));
  // An input may be the output's file: it is read before it is replaced.
  Succeeds(
      "run Convolution src=src.npy weights=weights.npy bias=bias.npy --strides 2,1 "
      "--pads_begin 1,0 --pads_end 0,1 --dilations 1,2 --out src.npy");
  EXPECT_EQ(ParseNpy(Get("src.npy")), Evaluate(line));
}

}  // namespace
}  // namespace convgrad::tools
