#include "tests/random_case.h"

#include <algorithm>
#include <random>
#include <vector>

#include "convgrad/plan.h"
#include "spec/layout.h"
#include "spec/schema.h"

namespace convgrad::tests {
namespace {

using tools::Case;

constexpr DataType kTypes[] = {DataType::kF32, DataType::kBF16, DataType::kF16};
constexpr const char* kAutoPads[] = {"none", "SAME_UPPER", "same_lower", "Valid"};

Dims First(const std::array<int64_t, 3>& values, int spatial) {
  return Dims(values.begin(), values.begin() + spatial);
}

class Builder {
 public:
  explicit Builder(const Recipe& r)
      : r_(r),
        schema_(SchemaOf(static_cast<OpKind>(r.kind))),
        transposed_(schema_.family == Family::kConvTranspose) {}

  std::optional<Case> Run() {
    data_format_ = r_.nxc != 0 ? "NXC" : "NCX";
    weights_format_ =
        std::string(schema_.weights_format().values[r_.spatial_first_weights != 0 ? 0 : 1]);
    MakeShapes();
    if (!InferDst()) return std::nullopt;
    Case result;
    result.operation.kind = schema_.kind;
    SetAttributes(result.operation.attributes, schema_, true);
    for (const ArgumentSchema& argument : schema_.inputs) {
      result.inputs.push_back(Describe(argument, false));
    }
    for (const ArgumentSchema& argument : schema_.outputs) {
      result.outputs.push_back(Describe(argument, true));
    }
    ChooseShapeSource(result);
    if (!Plan::Make(result.operation, result.inputs, result.outputs).ok()) return std::nullopt;
    result.text = tools::ToText(result.operation, result.inputs, result.outputs);
    return result;
  }

 private:
  void MakeShapes() {
    const int64_t ic = r_.icg * r_.groups, oc = r_.ocg * r_.groups;
    src_ = Data(r_.batch, ic, First(r_.extent, r_.spatial));
    // The axis that counts all groups: O for Convolution, I or, as the documents say, O for
    // ConvTranspose; the first generation has only the first of the two.
    const bool on_o = !transposed_ || (r_.documents_grouping != 0 && !schema_.first_generation());
    const WeightsLayout layout = WeightsLayoutOf(weights_format_, r_.spatial);
    weights_.assign(static_cast<size_t>(r_.spatial) + 2, 0);
    weights_[static_cast<size_t>(layout.o)] = on_o ? oc : r_.ocg;
    weights_[static_cast<size_t>(layout.i)] = on_o ? r_.icg : ic;
    for (int a = 0; a < r_.spatial; ++a) {
      weights_[static_cast<size_t>(layout.x + a)] = r_.taps[static_cast<size_t>(a)];
    }
  }

  Dims Data(int64_t n, int64_t c, const Dims& pixels) const {
    Dims extents{n};
    if (data_format_ == "NCX") extents.push_back(c);
    extents.insert(extents.end(), pixels.begin(), pixels.end());
    if (data_format_ == "NXC") extents.push_back(c);
    return extents;
  }

  void SetAttributes(Attributes& attributes, const OperationSchema& schema,
                     bool with_padding) const {
    attributes.Set("strides", First(r_.stride, r_.spatial));
    attributes.Set("dilations", First(r_.dilation, r_.spatial));
    attributes.Set("pads_begin", First(r_.pad_begin, r_.spatial));
    attributes.Set("pads_end", First(r_.pad_end, r_.spatial));
    if (r_.auto_pad != 0) attributes.Set("auto_pad", kAutoPads[r_.auto_pad]);
    if (r_.groups != 1) attributes.Set("groups", r_.groups);
    attributes.Set("data_format", data_format_);
    attributes.Set(std::string(schema.weights_format().name), weights_format_);
    const Dims padding = First(r_.output_padding, r_.spatial);
    const bool any = std::any_of(padding.begin(), padding.end(), [](int64_t v) { return v != 0; });
    if (with_padding && any && transposed_) attributes.Set("output_padding", padding);
  }

  // The forward operation says what dst is; its own name for the weights' format differs.
  bool InferDst() {
    const OpKind forward = transposed_ ? OpKind::kConvTranspose : OpKind::kConvolution;
    Operation operation{forward, {}};
    SetAttributes(operation.attributes, SchemaOf(forward), true);
    TensorDesc weights{DataType::kF32, weights_, {}, {}};
    if (transposed_ && schema_.first_generation()) {
      // "-1" filters hold O before I, ConvTranspose weights I before O.
      const WeightsLayout layout = WeightsLayoutOf(weights_format_, r_.spatial);
      std::swap(weights.extents[static_cast<size_t>(layout.o)],
                weights.extents[static_cast<size_t>(layout.i)]);
      operation.attributes.Set("weights_format", weights_format_ == "XIO" ? "XOI" : "IOX");
    }
    const std::vector<TensorDesc> inputs = {{DataType::kF32, src_, {}, {}}, weights};
    Result<Plan> plan = Plan::Make(operation, inputs);
    if (!plan.ok()) return false;
    dst_ = plan->output().extents;
    const bool forward_kind = schema_.kind == forward;
    const int x = DataLayoutOf(data_format_, r_.spatial).x;
    for (int a = 0; a < r_.spatial && transposed_ && !forward_kind; ++a) {
      const size_t i = static_cast<size_t>(a);
      if (r_.output_padding[i] == 0) dst_[static_cast<size_t>(x) + i] += r_.rest[i] % r_.stride[i];
    }
    return true;
  }

  TensorDesc Describe(const ArgumentSchema& argument, bool output) const {
    TensorDesc desc;
    desc.type = kTypes[r_.type];
    const bool of_weights = schema_.outputs[0].role == Role::kWeights;
    if (output && of_weights && r_.wide_gradients != 0) desc.type = DataType::kF32;
    switch (argument.role) {
      case Role::kSrc:
        desc.extents = src_;
        break;
      case Role::kDst:
        desc.extents = dst_;
        break;
      case Role::kWeights:
        desc.extents = weights_;
        break;
      case Role::kBias:
        if (r_.bias == 0) return {};
        desc.extents = {r_.ocg * r_.groups};
        break;
      case Role::kShape:
        return {};
    }
    desc.strides = Strides(desc.extents, output);
    return desc;
  }

  Dims Strides(const Dims& extents, bool output) const {
    if (r_.layout == 0) return {};
    const size_t rank = extents.size();
    Dims strides(rank);
    int64_t stride = 1;
    for (size_t i = 0; i < rank; ++i) {
      const size_t a = r_.layout == 2 ? i : rank - 1 - i;
      strides[a] = stride;
      stride *= std::max<int64_t>(extents[a], 1) + (r_.layout == 1 ? 1 : 0);
    }
    if (r_.layout == 3) {
      for (size_t a = 0; a < rank; a += 2) strides[a] = -strides[a];
    }
    if (r_.layout == 1 && !output && rank > 1) strides[0] = 0;  // one image, seen N times
    return strides;
  }

  void ChooseShapeSource(Case& result) const {
    const AttributeSchema* attribute = schema_.shape_attribute();
    if (attribute == nullptr || r_.shape_tensor == 2) return;
    const Dims shape = result.outputs[0].extents;
    if (r_.shape_tensor == 0) {
      result.operation.attributes.Set(std::string(attribute->name), shape);
      return;
    }
    TensorDesc& tensor = result.inputs[2];
    tensor.type = DataType::kS64;
    tensor.extents = {static_cast<int64_t>(shape.size())};
    tensor.values = shape;
  }

  const Recipe& r_;
  const OperationSchema& schema_;
  const bool transposed_;
  std::string data_format_, weights_format_;
  Dims src_, weights_, dst_;
};

// Every number of a recipe with the smallest value it may have.
template <class Visit>
void ForEachField(Recipe& r, const Visit& visit) {
  for (int* field : {&r.auto_pad, &r.layout, &r.bias, &r.shape_tensor, &r.documents_grouping,
                     &r.spatial_first_weights, &r.nxc, &r.wide_gradients, &r.type}) {
    visit(*field, 0);
  }
  visit(r.spatial, 1);
  for (int64_t* field : {&r.batch, &r.groups, &r.icg, &r.ocg}) visit(*field, 1);
  for (auto* list : {&r.taps, &r.stride, &r.dilation, &r.extent}) {
    for (int64_t& field : *list) visit(field, 1);
  }
  for (auto* list : {&r.pad_begin, &r.pad_end, &r.output_padding, &r.rest}) {
    for (int64_t& field : *list) visit(field, 0);
  }
}

}  // namespace

Recipe RandomRecipe(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Recipe r;
  r.kind = below(10);
  r.spatial = 1 + below(3);
  r.type = below(3);
  r.auto_pad = below(3) == 0 ? below(4) : 0;
  r.nxc = below(2);
  r.spatial_first_weights = below(2);
  r.documents_grouping = below(2);
  r.bias = below(2);
  r.shape_tensor = below(3);
  r.layout = below(4);
  r.batch = below(8) == 0 ? 0 : 1 + below(3);
  r.groups = below(2) == 0 ? 1 : 1 + below(4);
  r.icg = 1 + below(4);
  r.ocg = 1 + below(4);
  const int largest = r.spatial == 3 ? 5 : r.spatial == 2 ? 8 : 16;
  for (size_t a = 0; a < 3; ++a) {
    r.extent[a] = 1 + below(largest);
    r.taps[a] = 1 + below(4);
    r.stride[a] = 1 + below(4);
    r.dilation[a] = 1 + below(3);
    r.pad_begin[a] = below(2) == 0 ? 0 : below(5);
    r.pad_end[a] = below(2) == 0 ? 0 : below(5);
    r.output_padding[a] = below(3) == 0 ? below(6) : 0;
    r.rest[a] = below(4);
  }
  r.wide_gradients = below(2);
  return r;
}

std::optional<Case> Build(const Recipe& recipe) { return Builder(recipe).Run(); }

Recipe Shrink(Recipe recipe, const std::function<bool(const Recipe&)>& fails) {
  bool smaller = true;
  while (smaller) {
    smaller = false;
    ForEachField(recipe, [&](auto& field, auto least) {
      const auto kept = field;
      using Number = std::remove_reference_t<decltype(field)>;
      // The least first, then half the way, then one less.
      for (Number candidate :
           {static_cast<Number>(least), static_cast<Number>(least + (kept - least) / 2),
            static_cast<Number>(kept - 1)}) {
        if (candidate >= kept || candidate < static_cast<Number>(least)) continue;
        field = candidate;
        if (fails(recipe)) {
          smaller = true;
          return;
        }
        field = kept;
      }
    });
  }
  return recipe;
}

}  // namespace convgrad::tests
