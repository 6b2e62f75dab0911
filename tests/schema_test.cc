// The operation table against the specification: the two tables of SPEC.md (sections 1 and 2) are
// written out here by hand, so that neither can change without the other. Step 2's data only; what
// the checks make of it is in error_test and infer_test.
#include "spec/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace convgrad {
namespace {

using enum OpKind;
using Names = std::vector<std::string>;

struct Argument {
  std::string name;
  Role role;
  bool required;
  bool extension = false;

  bool operator==(const Argument&) const = default;
};

struct Attribute {
  std::string name;
  AttributeType type;
  bool required;
  std::string default_text;
  int64_t least = 0;                         // numbers
  ListLength length = ListLength::kSpatial;  // lists
  bool empty_is_zeros = false;               // lists
  Names values = {};                         // strings
  bool any_case = false;                     // strings
};

struct Row {
  OpKind kind;
  std::string name;
  OpKind means;
  Family family;
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Attribute> own;  // beside those that all operations have
};

// Shape tensors and bias are the optional inputs of section 1; diff_bias is section 7's.
const Argument kSrc = {"src", Role::kSrc, true};
const Argument kDiffDst = {"diff_dst", Role::kDst, true};
const Argument kWeights = {"weights", Role::kWeights, true};
const Argument kBias = {"bias", Role::kBias, false};
const Argument kOutputDelta = {"output_delta", Role::kDst, true};
const Argument kInputForward = {"input_forward", Role::kSrc, true};
const Argument kFilter = {"filter", Role::kWeights, true};
const std::vector<Argument> kDiffWeights = {{"diff_weights", Role::kWeights, true},
                                            {"diff_bias", Role::kBias, false, true}};
const std::vector<Argument> kFilterDelta = {{"filter_delta", Role::kWeights, true},
                                            {"bias_delta", Role::kBias, false, true}};

Argument Shape(std::string name) { return {std::move(name), Role::kShape, false}; }

Attribute Format(std::string name, Names values) {
  const std::string first = values[0];  // section 2 lists the default first
  return {.name = std::move(name),
          .type = AttributeType::kString,
          .required = false,
          .default_text = first,
          .values = std::move(values)};
}

Attribute ShapeOf(std::string name) {
  return {.name = std::move(name),
          .type = AttributeType::kS64List,
          .required = false,
          .default_text = "",
          .length = ListLength::kTensor};
}

const Attribute kOutputPadding = {.name = "output_padding",
                                  .type = AttributeType::kS64List,
                                  .required = false,
                                  .default_text = "zeros",
                                  .empty_is_zeros = true};

Attribute RequiredList(std::string name, int64_t least, bool empty_is_zeros) {
  return {.name = std::move(name),
          .type = AttributeType::kS64List,
          .required = true,
          .default_text = "",
          .least = least,
          .empty_is_zeros = empty_is_zeros};
}

// The rows of section 2 that say "all".
std::vector<Attribute> AttributesOfAll() {
  return {RequiredList("strides", 1, false),
          RequiredList("pads_begin", 0, true),
          RequiredList("pads_end", 0, true),
          RequiredList("dilations", 1, false),
          {.name = "auto_pad",
           .type = AttributeType::kString,
           .required = false,
           .default_text = "none",
           .values = {"none", "same_upper", "same_lower", "valid"},
           .any_case = true},
          {.name = "groups",
           .type = AttributeType::kS64,
           .required = false,
           .default_text = "1",
           .least = 1},
          Format("data_format", {"NXC", "NCX"})};
}

std::vector<Row> SecondGeneration() {
  const Attribute conv = Format("weights_format", {"XIO", "OIX"});
  const Attribute transposed = Format("weights_format", {"XOI", "IOX"});
  constexpr Family c = Family::kConvolution, t = Family::kConvTranspose;
  const std::vector<Argument> dst = {{"dst", Role::kDst, true}};
  const std::vector<Argument> diff_src = {{"diff_src", Role::kSrc, true}};
  return {
      {kConvolution, "Convolution", kConvolution, c, {kSrc, kWeights, kBias}, dst, {conv}},
      {kConvolutionBackwardData,
       "ConvolutionBackwardData",
       kConvolutionBackwardData,
       c,
       {kDiffDst, kWeights, Shape("dst_shape")},
       diff_src,
       {conv, kOutputPadding, ShapeOf("dst_shape")}},
      {kConvolutionBackwardWeights,
       "ConvolutionBackwardWeights",
       kConvolutionBackwardWeights,
       c,
       {kSrc, kDiffDst, Shape("weights_shape")},
       kDiffWeights,
       {conv, ShapeOf("weights_shape")}},
      {kConvTranspose,
       "ConvTranspose",
       kConvTranspose,
       t,
       {kSrc, kWeights, kBias},
       dst,
       {transposed, kOutputPadding}},
      {kConvTransposeBackwardData,
       "ConvTransposeBackwardData",
       kConvTransposeBackwardData,
       t,
       {kDiffDst, kWeights},
       diff_src,
       {transposed, kOutputPadding}},
      {kConvTransposeBackwardWeights,
       "ConvTransposeBackwardWeights",
       kConvTransposeBackwardWeights,
       t,
       {kSrc, kDiffDst, Shape("weights_shape")},
       kDiffWeights,
       {transposed, kOutputPadding, ShapeOf("weights_shape")}},
  };
}

std::vector<Row> FirstGeneration() {
  const Attribute format = Format("filter_format", {"XIO", "OIX"});
  constexpr Family c = Family::kConvolution, t = Family::kConvTranspose;
  const std::vector<Argument> input_delta = {{"input_delta", Role::kSrc, true}};
  return {
      {kConvolutionBackpropData,
       "ConvolutionBackpropData",
       kConvolutionBackwardData,
       c,
       {kOutputDelta, kFilter, Shape("output_shape")},
       input_delta,
       {format, kOutputPadding, ShapeOf("output_shape")}},
      {kConvolutionBackpropFilters,
       "ConvolutionBackpropFilters",
       kConvolutionBackwardWeights,
       c,
       {kInputForward, kOutputDelta, Shape("filter_shape")},
       kFilterDelta,
       {format, ShapeOf("filter_shape")}},
      {kConvTransposeBackpropData,
       "ConvTransposeBackpropData",
       kConvTransposeBackwardData,
       t,
       {kOutputDelta, kFilter},
       input_delta,
       {format, kOutputPadding}},
      {kConvTransposeBackpropFilters,
       "ConvTransposeBackpropFilters",
       kConvTransposeBackwardWeights,
       t,
       {kInputForward, kOutputDelta, Shape("filter_shape")},
       kFilterDelta,
       {format, kOutputPadding, ShapeOf("filter_shape")}},
  };
}

std::vector<Row> Specification() {
  std::vector<Row> rows = SecondGeneration();
  for (Row& row : FirstGeneration()) rows.push_back(std::move(row));
  return rows;
}

std::vector<Argument> Plain(std::span<const ArgumentSchema> schema) {
  std::vector<Argument> arguments;
  for (const ArgumentSchema& a : schema) {
    arguments.push_back({std::string(a.name), a.role, a.required, a.extension});
  }
  return arguments;
}

void ExpectArguments(const std::vector<Argument>& got, const std::vector<Argument>& want,
                     const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(got[i] == want[i])
        << what << " " << i << " is " << got[i].name << " (role " << static_cast<int>(got[i].role)
        << ", required " << got[i].required << ", extension " << got[i].extension
        << "), the specification has " << want[i].name;
  }
}

TEST(Schema, HasTheTenOperations) {
  const std::vector<Row> rows = Specification();
  ASSERT_EQ(Operations().size(), rows.size());
  for (const Row& row : rows) {
    const OperationSchema& schema = SchemaOf(row.kind);
    EXPECT_EQ(schema.name, row.name);
    EXPECT_EQ(schema.kind, row.kind) << row.name;
    EXPECT_EQ(schema.means, row.means) << row.name;
    EXPECT_EQ(schema.family, row.family) << row.name;
    EXPECT_EQ(schema.first_generation(), row.kind != row.means) << row.name;
  }
}

TEST(Schema, HasTheArgumentsInOrder) {
  for (const Row& row : Specification()) {
    const OperationSchema& schema = SchemaOf(row.kind);
    ExpectArguments(Plain(schema.inputs), row.inputs, row.name + " input");
    ExpectArguments(Plain(schema.outputs), row.outputs, row.name + " output");
  }
}

// The order of attributes has no meaning; the set of their names has.
TEST(Schema, HasTheAttributesOfEachOperationAndNoOther) {
  for (const Row& row : Specification()) {
    std::multiset<std::string> got, want;
    for (const AttributeSchema* a : SchemaOf(row.kind).attributes) got.emplace(a->name);
    for (const Attribute& a : AttributesOfAll()) want.insert(a.name);
    for (const Attribute& a : row.own) want.insert(a.name);
    EXPECT_EQ(got, want) << row.name;
  }
}

void ExpectAttribute(const OperationSchema& operation, const Attribute& want) {
  const AttributeSchema* got = operation.Find(want.name);
  ASSERT_NE(got, nullptr) << operation.name << " " << want.name;
  const std::string what = std::string(operation.name) + " " + want.name;
  EXPECT_EQ(got->name, want.name) << what;
  EXPECT_EQ(got->type, want.type) << what;
  EXPECT_EQ(got->required, want.required) << what;
  EXPECT_EQ(got->default_text, want.default_text) << what;
  EXPECT_EQ(got->least, want.least) << what;
  EXPECT_EQ(got->length, want.length) << what;
  EXPECT_EQ(got->empty_is_zeros, want.empty_is_zeros) << what;
  EXPECT_EQ(Names(got->values.begin(), got->values.end()), want.values) << what;
  EXPECT_EQ(got->any_case, want.any_case) << what;
  EXPECT_FALSE(got->meaning.empty()) << what;  // `ops` and the documentation print it
}

TEST(Schema, DescribesEveryAttribute) {
  for (const Row& row : Specification()) {
    for (const Attribute& a : AttributesOfAll()) ExpectAttribute(SchemaOf(row.kind), a);
    for (const Attribute& a : row.own) ExpectAttribute(SchemaOf(row.kind), a);
  }
}

TEST(Schema, FindsNothingUnderAnotherName) {
  for (const Row& row : Specification()) {
    const OperationSchema& schema = SchemaOf(row.kind);
    for (const char* name : {"", "Strides", "pads", "stride", "bias", "strides "}) {
      EXPECT_EQ(schema.Find(name), nullptr) << row.name << " '" << name << "'";
    }
    const bool first = row.kind != row.means;
    EXPECT_EQ(schema.Find("weights_format") == nullptr, first) << row.name;
    EXPECT_EQ(schema.Find("filter_format") != nullptr, first) << row.name;
  }
}

TEST(Schema, KnowsTheFormatAndShapeAttributes) {
  for (const Row& row : Specification()) {
    const OperationSchema& schema = SchemaOf(row.kind);
    EXPECT_EQ(schema.weights_format().name,
              row.kind == row.means ? "weights_format" : "filter_format");
    std::string shape;
    for (const Attribute& a : row.own) {
      if (a.length == ListLength::kTensor) shape = a.name;
    }
    const AttributeSchema* got = schema.shape_attribute();
    EXPECT_EQ(got == nullptr ? "" : got->name, shape) << row.name;
    // An operation that takes a shape takes it as a tensor too, under the same name.
    const std::string tensor = row.inputs.size() == 3 && row.inputs[2].role == Role::kShape
                                   ? row.inputs[2].name
                                   : std::string();
    EXPECT_EQ(tensor, shape) << row.name;
  }
}

TEST(Schema, NamesTheTypesAsTheDocumentsDo) {
  EXPECT_EQ(NameOf(AttributeType::kS64), "s64");
  EXPECT_EQ(NameOf(AttributeType::kS64List), "s64[]");
  EXPECT_EQ(NameOf(AttributeType::kString), "string");
}

TEST(OpKindNames, GoThereAndBack) {
  std::set<std::string_view> names;
  for (const Row& row : Specification()) {
    EXPECT_EQ(NameOf(row.kind), row.name);
    const Result<OpKind> kind = ParseOpKind(row.name);
    ASSERT_TRUE(kind.ok()) << kind.status().message();
    EXPECT_EQ(*kind, row.kind) << row.name;
    names.insert(NameOf(row.kind));
  }
  EXPECT_EQ(names.size(), 10u);
}

TEST(OpKindNames, TakeAVersionOnlyInTheFirstGeneration) {
  for (const Row& row : Specification()) {
    const std::string versioned = row.name + "-1";
    const Result<OpKind> kind = ParseOpKind(versioned);
    if (row.kind == row.means) {
      EXPECT_FALSE(kind.ok()) << versioned;
    } else {
      ASSERT_TRUE(kind.ok()) << kind.status().message();
      EXPECT_EQ(*kind, row.kind) << versioned;
    }
  }
}

TEST(OpKindNames, RefuseEverythingElse) {
  const char* const unknown[] = {"",
                                 "-1",
                                 "convolution",
                                 "CONVOLUTION",
                                 "Convolution ",
                                 " Convolution",
                                 "Conv",
                                 "Convolutions",
                                 "ConvTransposeBackpropFilters-2",
                                 "ConvTransposeBackpropFilters-",
                                 "ConvTransposeBackpropFilters-1-1",
                                 "ConvTransposeBackpropFilters-11",
                                 "ConvTransposeBackpropWeights",
                                 "ConvolutionBackwardFilters",
                                 "MatMul"};
  for (const std::string name : unknown) {
    const Result<OpKind> kind = ParseOpKind(name);
    ASSERT_FALSE(kind.ok()) << name;
    EXPECT_EQ(kind.status().code(), StatusCode::kInvalidArgument);
    std::string sentence = "operation '" + name + "' is unknown, expected one of ";
    for (const Row& row : Specification()) {
      sentence += (row.kind == kConvolution ? "" : ", ") + row.name;
    }
    EXPECT_EQ(kind.status().message(), sentence);
  }
}

}  // namespace
}  // namespace convgrad
