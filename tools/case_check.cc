#include "tools/case_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "core/text.h"
#include "spec/schema.h"
#include "tools/case_memory.h"
#include "tools/formula.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tools {
namespace {

std::string Digits(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return digits;
}

// Of evaluating a formula for one element, beside its products and in their unit: about 200 ns.
constexpr int64_t kElementCost = 20;

// Half the distance between neighbouring numbers of `type` at `value`.
double HalfUlp(DataType type, double value) {
  const int fraction = type == DataType::kF32 ? 23 : type == DataType::kBF16 ? 7 : 10;
  const int least_exponent = type == DataType::kF16 ? -14 : -126;
  int exponent = least_exponent;
  if (value != 0) std::frexp(value, &exponent);  // value = [0.5, 1) * 2^exponent
  return std::ldexp(0.5, std::max(exponent - 1, least_exponent) - fraction);
}

// The kernel's own error, then one rounding. f64 sums that it is compared with have an error too,
// of `count` terms.
double Bound(DataType type, double value, double magnitude, double kernel_error, double count) {
  return HalfUlp(type, value) + (kernel_error + (count + 2) * 0x1p-53) * magnitude;
}

// From here on numbers are rounded to infinity: the largest one and half a unit more.
double OverflowOf(DataType type) {
  return type == DataType::kF16 ? 65520 : type == DataType::kBF16 ? 0x1.ffp127 : 0x1.ffffffp127;
}

bool SameBits(double a, double b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

// `magnitude` is the sum of the products' magnitudes. Where it is beyond f32, so may sums on the
// way be, and what becomes of them is no number; a result may be infinite where a number within the
// bound is rounded to infinity.
bool IsNear(DataType type, double value, double expected, double bound, double magnitude) {
  if (SameBits(value, expected)) return true;
  const double error = std::abs(value - expected);
  if (error <= bound && std::isfinite(error)) return true;
  if (std::isnan(magnitude)) return false;
  if (magnitude >= OverflowOf(DataType::kF32)) return !std::isfinite(value);
  if (!std::isinf(value) && !std::isinf(expected)) return false;
  const double number = std::isinf(value) ? expected : value;
  return std::signbit(value) == std::signbit(expected) &&
         std::abs(number) + bound >= OverflowOf(type);
}

class CaseChecker {
 public:
  CaseChecker(const Case& item, const CheckRequest& request) : item_(item), request_(request) {}

  CheckReport Run() {
    if (!MakePlans()) return report_;
    AllocateInputs();
    AllocateOutputs();
    for (bool integers : {true, false}) {
      Fill(integers);
      if (!RunOnce(*plan_, outputs_)) return report_;
      if (request_.tamper) request_.tamper(outputs_, integers);
      if (!AgreesWithFormula(integers)) return report_;
      if (!RunOnce(*oracle_, expected_)) return report_;
      const bool exact = integers || report_.kernel == "oracle";
      if (!(exact ? HasBitsOfOracle(integers) : IsNearOracle())) return report_;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].BlankElementsAndCheckGaps()) return FailForGaps(i);
    }
    report_.passed = true;
    return report_;
  }

  // The inputs are lent, and back at the end.
  CheckReport RunOn(std::vector<TensorBuffer>& inputs, bool whole_numbers) {
    if (!MakePlans()) return report_;
    std::swap(inputs_, inputs);
    AllocateOutputs();
    report_.passed = AgreesOnGivenInputs(whole_numbers);
    std::swap(inputs_, inputs);
    return report_;
  }

  std::vector<TensorBuffer> TakeOutputs() { return std::move(outputs_); }

 private:
  CheckReport Fail(std::string sentence) {
    report_.failure = std::move(sentence);
    return report_;
  }

  CheckReport FailForGaps(size_t output) {
    return Fail(Join("bytes between the elements of ", OutputName(output), " were written"));
  }

  bool MakePlans() {
    Result<Plan> plan = Plan::Make(item_.operation, item_.inputs, item_.outputs, request_.options);
    if (!plan.ok()) {
      report_.refused = true;
      Fail(plan.status().message());
      return false;
    }
    if (!FitsThisMachine(item_.inputs, item_.outputs)) {
      report_.refused = true;
      Fail(kDoesNotFit);
      return false;
    }
    report_.kernel = plan->kernel();
    report_.flops = plan->flops();
    report_.error = plan->error_bound();
    // On one thread, while that takes no time: it checks that threads do not show in the bits.
    constexpr double kLargeFlops = 2e8;
    const Options other{.threads = plan->flops() > kLargeFlops ? 0 : 1,
                        .kernel = "oracle",
                        .per_sample = request_.options.per_sample};
    Result<Plan> oracle = Plan::Make(item_.operation, item_.inputs, item_.outputs, other);
    if (!oracle.ok()) {
      Fail(Join("the oracle refused: ", oracle.status().message()));
      return false;
    }
    plan_ = *std::move(plan);
    oracle_ = *std::move(oracle);
    return true;
  }

  // Whole numbers whose sums f32 has have one result whatever the order; others lie in the bound.
  bool AgreesOnGivenInputs(bool whole_numbers) {
    constexpr double kShortSeconds = 0.02;  // then the first run is mostly touching memory
    for (int run = 0; run < 3 && (run == 0 || report_.seconds < kShortSeconds); ++run) {
      if (!RunOnce(*plan_, outputs_)) return false;
    }
    if (request_.tamper) request_.tamper(outputs_, whole_numbers);
    report_.sampled = report_.flops > request_.oracle_flops;
    if (!AgreesWithFormula(false)) return false;
    if (report_.sampled) return WroteNoGaps();
    if (!RunOnce(*oracle_, expected_) || !IsNearOracle()) return false;
    report_.exact = (whole_numbers && largest_sum_ < 0x1p24) || report_.kernel == "oracle";
    if (report_.exact && !HasBitsOfOracle(whole_numbers)) return false;
    return WroteNoGaps();
  }

  bool WroteNoGaps() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].stored() == outputs_[i].elements()) continue;
      if (TensorBuffer(outputs_[i]).BlankElementsAndCheckGaps()) continue;
      FailForGaps(i);
      return false;
    }
    return true;
  }

  std::string_view OutputName(size_t i) const {
    return SchemaOf(item_.operation.kind).outputs[i].name;
  }

  void AllocateInputs() {
    double inputs = 0;
    for (const TensorDesc& desc : item_.inputs) {
      inputs_.emplace_back(desc.given() ? TensorBuffer(desc) : TensorBuffer());
      inputs = std::max(inputs, static_cast<double>(inputs_.back().elements()));
    }
    // No element sums more products than the largest input has elements, or, in dgrad, than there
    // are weights: the larger input bounds both.
    range_ = ExactRange(inputs);
  }

  void AllocateOutputs() {
    for (int i = 0; i < plan_->num_outputs(); ++i) {
      outputs_.emplace_back(plan_->output(i));
      expected_.emplace_back(plan_->output(i));
      report_.elements += outputs_.back().elements();
    }
    workspace_.resize(static_cast<size_t>(plan_->workspace_bytes()));
  }

  void Fill(bool integers) {
    uint64_t seed = request_.seed * 1000 + (integers ? 0 : 500);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      TensorBuffer& input = inputs_[i];
      if (!item_.inputs[i].values.empty()) {
        FillShape(input, item_.inputs[i].values);
      } else if (integers) {
        FillIntegers(input, range_, ++seed);
      } else {
        FillReals(input, ++seed);
      }
    }
  }

  bool RunOnce(const Plan& plan, std::vector<TensorBuffer>& outputs) {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const TensorBuffer& buffer : inputs_) {
      in.push_back(buffer.desc().given() ? buffer.data() : nullptr);
    }
    for (TensorBuffer& buffer : outputs) {
      buffer.Blank();
      out.push_back(buffer.data());
    }
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const Status status = plan.Run(in, out, workspace_.empty() ? nullptr : workspace_.data());
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    if (&outputs == &outputs_) {
      report_.seconds =
          report_.seconds == 0 ? seconds.count() : std::min(report_.seconds, seconds.count());
    }
    if (!status.ok()) Fail(status.message());
    return status.ok();
  }

  // All elements, where the formulas may have seen a sample. The oracle has the same bits in every
  // run, every other kernel has them on integers.
  bool HasBitsOfOracle(bool integers) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const TensorBuffer& got = outputs_[i];
      if (got.SameBytes(expected_[i])) continue;
      for (int64_t e = 0; e < got.elements(); ++e) {
        const double value = got.At(e), expected = expected_[i].At(e);
        if (SameBits(value, expected)) continue;
        Fail(Join(OutputName(i), "[", JoinNumbers(got.IndexOf(e), ","), "] is ", Digits(value),
                  ", the oracle says ", Digits(expected), DataKind(integers)));
        return false;
      }
    }
    return true;
  }

  // All elements on reals. The sum of the magnitudes of an element's terms, which its error scales
  // with, is what the oracle makes of the inputs' magnitudes, in f32.
  bool IsNearOracle() {
    const auto as_f32 = [](TensorDesc desc) {
      if (desc.type == DataType::kBF16 || desc.type == DataType::kF16) desc.type = DataType::kF32;
      return desc;
    };
    std::vector<TensorDesc> inputs, outputs;
    std::vector<TensorBuffer> magnitudes;
    for (size_t i = 0; i < item_.inputs.size(); ++i) {
      inputs.push_back(as_f32(item_.inputs[i]));
      magnitudes.push_back(inputs_[i].Magnitudes());
    }
    for (const TensorBuffer& output : outputs_) outputs.push_back(as_f32(output.desc()));
    Result<Plan> plan = Plan::Make(item_.operation, inputs, outputs,
                                   {.kernel = "oracle", .per_sample = request_.options.per_sample});
    if (!plan.ok()) {
      Fail(Join("the oracle refused magnitudes: ", plan.status().message()));
      return false;
    }
    std::vector<TensorBuffer> sums;
    for (const TensorDesc& output : outputs) sums.emplace_back(output);
    std::swap(inputs_, magnitudes);
    const bool ran = RunOnce(*plan, sums);
    std::swap(inputs_, magnitudes);
    for (size_t i = 0; ran && i < outputs_.size(); ++i) {
      const TensorBuffer &got = outputs_[i], &oracle = expected_[i];
      for (int64_t e = 0; e < got.stored(); ++e) {
        const double value = got.StoredAt(e), expected = oracle.StoredAt(e);
        // Where nothing is stored, a pattern is: as a number of f32, next to nothing.
        largest_sum_ = std::max(largest_sum_, sums[i].StoredAt(e));
        if (SameBits(value, expected)) continue;  // so are gaps
        // The oracle has rounded too. Of infinity there is no half a unit.
        const double of_value = std::isfinite(value) ? value : expected;
        const double of_oracle = std::isfinite(expected) ? expected : value;
        const double bound =
            HalfUlp(got.desc().type, of_oracle) +
            Bound(got.desc().type, of_value, sums[i].StoredAt(e), report_.error, 0);
        const double error = std::abs(value - expected);
        // Magnitudes are of f32 here, and infinite where they are beyond it.
        const double sum = std::min(sums[i].StoredAt(e), std::numeric_limits<double>::max());
        if (!IsNear(got.desc().type, value, expected, bound, sum)) {
          const Dims index = got.IndexOfStored(e);
          if (index.empty()) continue;  // a gap, which is looked at later
          Fail(Join(OutputName(i), "[", JoinNumbers(index, ","), "] is ", Digits(value),
                    ", the oracle says ", Digits(expected), " within ", Digits(bound),
                    DataKind(false)));
          return false;
        }
        if (std::isfinite(error)) report_.worst = std::max(report_.worst, error / bound);
      }
    }
    return ran;
  }

  static std::string_view DataKind(bool integers) {
    return integers ? " (integer data)" : " (real data)";
  }

  // One for all images; of gradients for each image, one for each, that knows no other.
  Result<std::vector<Formula>> MakeFormulas() const {
    const bool per_sample = request_.options.per_sample;
    TensorDesc output = outputs_[0].desc();
    if (per_sample) output.extents.erase(output.extents.begin());
    std::vector<Formula> formulas;
    const int64_t count = per_sample ? inputs_[0].desc().extents[0] : 1;
    for (int64_t n = 0; n < count; ++n) {
      std::vector<ConstTensorView> views;
      for (const TensorBuffer& input : inputs_) {
        views.push_back(input.view());
        ConstTensorView& view = views.back();
        if (!per_sample || !IsFloat(view.desc.type)) continue;  // N is the first of NCX and NXC
        view.desc.extents[0] = 1;
        view.data = static_cast<const unsigned char*>(view.data) +
                    n * view.desc.strides[0] * SizeOf(view.desc.type);
      }
      Result<Formula> formula = Formula::Make(item_.operation, views, output);
      if (!formula.ok()) return formula.status();
      formulas.push_back(*std::move(formula));
    }
    return formulas;
  }

  bool AgreesWithFormula(bool integers) {
    const Result<std::vector<Formula>> formulas = MakeFormulas();
    if (!formulas.ok()) {
      Fail(Join("the formulas refused: ", formulas.status().message()));
      return false;
    }
    int64_t checked = 0;
    const auto at = [&](size_t output, int64_t element) {
      Dims index = outputs_[output].IndexOf(element);
      size_t n = 0;
      if (request_.options.per_sample) {
        n = static_cast<size_t>(index[0]);
        index.erase(index.begin());
      }
      return output == 0 ? (*formulas)[n].At(index) : (*formulas)[n].BiasAt(index[0]);
    };
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!AgreesAt(i, integers, at, checked)) return false;
    }
    report_.checked_elements = checked;
    return true;
  }

  template <class At>
  bool AgreesAt(size_t output, bool integers, const At& at, int64_t& checked) {
    const TensorBuffer& got = outputs_[output];
    const int64_t elements = got.elements();
    constexpr int64_t kBudgetWithoutOracle = 20;  // times the other
    const int64_t budget = request_.product_budget * (report_.sampled ? kBudgetWithoutOracle : 1);
    int64_t spent = 0;
    // Steps of 1 while the budget lasts: all elements. Else the step is a large odd number, so that
    // the visited elements spread over all axes.
    const bool all = report_.flops / 2 + static_cast<double>(kElementCost * elements) <=
                     static_cast<double>(budget);
    const int64_t step = all ? 1 : std::max<int64_t>(1, elements / 97) | 1;
    TensorBuffer rounded(TensorDesc{got.desc().type, {1}, {}, {}});
    for (int64_t i = 0, e = 0; i < elements; ++i, e = (e + step) % elements) {
      const int64_t element = !all && i == 1 ? elements - 1 : e;
      const Term term = at(output, element);
      const double value = got.At(element);
      const double bound = integers ? 0
                                    : Bound(got.desc().type, term.value, term.magnitude,
                                            report_.error, static_cast<double>(term.count));
      if (integers) rounded.Set(0, term.value);
      const double expected = integers ? rounded.At(0) : term.value;
      const double error = std::abs(value - expected);
      ++checked;
      if (integers ? !SameBits(value, expected)
                   : !IsNear(got.desc().type, value, expected, bound, term.magnitude)) {
        Fail(Join(OutputName(output), "[", JoinNumbers(got.IndexOf(element), ","), "] is ",
                  Digits(value), ", the formula says ", Digits(expected), " within ", Digits(bound),
                  DataKind(integers)));
        return false;
      }
      if (!integers && bound > 0 && std::isfinite(error))
        report_.worst = std::max(report_.worst, error / bound);
      spent += term.count + kElementCost;
      if (!all && spent > budget && i >= 1) break;
    }
    return true;
  }

  const Case& item_;
  const CheckRequest& request_;
  CheckReport report_;
  std::vector<TensorBuffer> inputs_, outputs_, expected_;
  std::vector<unsigned char> workspace_;
  int64_t range_ = 4;
  std::optional<Plan> plan_, oracle_;
  double largest_sum_ = 0;  // of the magnitudes of an element's terms
};

}  // namespace

CheckReport CheckCase(const Case& item, const CheckRequest& request) {
  return CaseChecker(item, request).Run();
}

CheckReport CheckOnInputs(const Case& item, const CheckRequest& request,
                          std::vector<TensorBuffer>& inputs, bool whole_numbers,
                          std::vector<TensorBuffer>* outputs) {
  CaseChecker checker(item, request);
  CheckReport report = checker.RunOn(inputs, whole_numbers);
  *outputs = checker.TakeOutputs();
  return report;
}

}  // namespace convgrad::tools
