// The direct kernel has the very bits of the contraction, for any number of threads, workspace,
// layout and type; is what the planner takes for groups of few channels; and touches no more memory
// than its plan says. CONVGRAD_SEED chooses other random problems, CONVGRAD_CASES how many.
#include "cpu/direct.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>

#include "cpu/engine.h"
#include "tests/direct_shapes.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tests/random_case.h"
#include "tests/random_problem.h"

namespace convgrad::tests {
namespace {

using tools::Case;
using tools::TensorBuffer;

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;
constexpr int kThreads[] = {1, 2, 3, 7};
constexpr int64_t kLimits[] = {0, Options::kNoLimit, 100'000};
constexpr float kBetas[] = {0, 1, -2};
constexpr const char* kNoRoom = "do not fit into the workspace";

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool HasWideBlocks() { return LanesOfBlock(PickedVectorUnit(DataType::kF32).lanes) > 16; }

enum class Data {
  kReals,
  kZeros,     // most of them, of both signs
  kInfinite,  // a few infinities and NaNs, most of them at a border
};

// What is run: the inputs, and what the outputs hold before.
class Subject {
 public:
  Subject(const Case& item, Data data, uint64_t seed, bool per_sample = false)
      : item_(item), per_sample_(per_sample) {
    std::mt19937_64 random(seed);
    for (const TensorDesc& desc : item.inputs) {
      inputs_.push_back(HasData(desc) ? TensorBuffer(desc) : TensorBuffer());
      if (!HasData(desc)) continue;
      tools::FillReals(inputs_.back(), random());
      if (data == Data::kZeros) Clear(inputs_.back(), random);
      // One input alone, or all of them.
      if (data == Data::kInfinite && (seed % 4 == 3 || inputs_.size() == seed % 4 + 1)) {
        Spoil(inputs_.back(), random);
      }
    }
  }

  // Nothing if the kernel refuses the problem.
  std::optional<std::vector<TensorBuffer>> Run(Options options) const {
    options.per_sample = per_sample_;
    const std::span<const TensorDesc> outputs = item_.outputs;
    const Result<Plan> plan = Plan::Make(item_.operation, item_.inputs,
                                         per_sample_ ? outputs.first(0) : outputs, options);
    if (!plan.ok()) {
      refusal_ = plan.status().message();
      return std::nullopt;
    }
    std::vector<TensorBuffer> written;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      from.push_back(HasData(item_.inputs[i]) ? inputs_[i].data() : nullptr);
    }
    for (int i = 0; i < plan->num_outputs(); ++i) {
      written.emplace_back(plan->output(i));
      tools::FillReals(written.back(), 100 + static_cast<uint64_t>(i));
    }
    for (TensorBuffer& output : written) to.push_back(output.data());
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    const Status status = plan->Run(from, to, workspace.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return written;
  }

  // Why the last one did not run.
  const std::string& refusal() const { return refusal_; }

 private:
  static bool HasData(const TensorDesc& desc) { return desc.given() && desc.values.empty(); }

  static void Clear(TensorBuffer& tensor, std::mt19937_64& random) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (random() % 4 != 0) tensor.Set(i, random() % 2 == 0 ? 0.0 : -0.0);
    }
  }

  static void Spoil(TensorBuffer& tensor, std::mt19937_64& random) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3 && tensor.elements() > 0; ++i) {
      int64_t flat = 0;
      for (const int64_t extent : tensor.desc().extents) {
        const int64_t places[] = {0, extent - 1, Between(random, 0, extent - 1)};
        flat = flat * extent + places[random() % 3];
      }
      tensor.Set(flat, std::array{kInfinity, -kInfinity, std::nan("")}[random() % 3]);
    }
  }

  const Case& item_;
  const bool per_sample_;
  std::vector<TensorBuffer> inputs_;
  mutable std::string refusal_;
};

// Bits of NaNs may differ.
std::optional<std::string> Difference(const TensorBuffer& got, const TensorBuffer& expected) {
  if (got.SameBytes(expected)) return std::nullopt;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double a = got.At(i), b = expected.At(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b)) continue;
    std::string at;
    for (const int64_t place : got.IndexOf(i))
      at += (at.empty() ? "" : ",") + std::to_string(place);
    char text[200];
    std::snprintf(text, sizeof text, "[%s] is %.9g, contract has %.9g", at.c_str(), a, b);
    return text;
  }
  TensorBuffer rest = got;
  if (rest.BlankElementsAndCheckGaps()) return std::nullopt;  // NaNs
  return "bytes between the elements were written";
}

struct Tally {
  int compared = 0, refused = 0, limited = 0;
  int64_t nans = 0, numbers = 0;
};

// All settings, or some of them in turn.
std::optional<std::string> FailureOf(const Case& item, Data data, uint64_t seed, bool all,
                                     Tally& tally, bool per_sample = false) {
  const Subject subject(item, data, seed, per_sample);
  const float beta = kBetas[seed % 3];
  Options options{.threads = 1, .beta = beta, .kernel = "direct"};
  if (!subject.Run(options)) {
    ++tally.refused;
    return std::nullopt;
  }
  options.kernel = "contract";
  const std::optional<std::vector<TensorBuffer>> expected = subject.Run(options);
  if (!expected) return "contract refuses it";
  for (int64_t i = 0; i < (*expected)[0].elements() && data == Data::kInfinite; ++i) {
    ++(std::isnan((*expected)[0].At(i)) ? tally.nans : tally.numbers);
  }
  options.kernel = "direct";
  for (uint64_t turn = 0; turn < 12; turn += all ? 1 : 5) {
    const uint64_t place = seed + turn;  // five has no divisor in common with twelve
    options.threads = kThreads[place % 4];
    options.workspace_limit = kLimits[place / 4 % 3];
    std::optional<std::vector<TensorBuffer>> got = subject.Run(options);
    if (!got && options.workspace_limit >= 0) {  // a kernel that only workspace has room for
      if (subject.refusal().find(kNoRoom) == std::string::npos) return subject.refusal();
      ++tally.limited;
      options.kernel = "";
      got = subject.Run(options);
      options.kernel = "direct";
    } else {
      ++tally.compared;
    }
    if (!got) return "direct refuses some numbers of threads only";
    for (size_t i = 0; i < got->size(); ++i) {
      const std::optional<std::string> difference = Difference((*got)[i], (*expected)[i]);
      if (!difference) continue;
      return "output " + std::to_string(i) + *difference + ", " + std::to_string(options.threads) +
             " threads, limit " + std::to_string(options.workspace_limit) + ", beta " +
             std::to_string(beta) + ", data " + std::to_string(static_cast<int>(data)) +
             "\n  convgrad verify --kernel direct " + item.text;
    }
  }
  return std::nullopt;
}

Recipe RandomGroups(uint64_t seed) {
  Recipe r = RandomRecipe(seed);
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  r.icg = one_of({1, 1, 1, 2, 3, 4, 4, 8, Between(random, 1, 16), 16});
  r.ocg = one_of({1, r.icg, r.icg, 2, 3, 4, 8, Between(random, 1, 16), 16});
  r.groups = Between(random, 2, std::max<int64_t>(2, 40 / std::max(r.icg, r.ocg)));
  if (random() % 8 == 0) r.groups = 1;
  for (size_t a = 0; a < 3; ++a) {
    if (random() % 6 == 0) r.taps[a] = Between(random, 5, r.spatial == 3 ? 5 : 9);
    if (random() % 8 == 0) r.dilation[a] = one_of({4, 7, 16, 64});
    if (random() % 8 == 0) r.extent[a] = Between(random, 9, r.spatial == 3 ? 12 : 40);
    if (random() % 4 == 0) r.pad_begin[a] = (r.taps[a] - 1) * r.dilation[a];
    if (random() % 4 == 0) r.pad_end[a] = (r.taps[a] - 1) * r.dilation[a] / 2;
  }
  return r;
}

void ExpectRandomGroups(Data data, uint64_t wanted) {
  const uint64_t first = Environment("CONVGRAD_SEED", 1);
  wanted = Environment("CONVGRAD_CASES", wanted);
  Tally tally;
  uint64_t built = 0;
  for (uint64_t seed = first; built < wanted; ++seed) {
    ASSERT_LT(seed - first, 20 * wanted + 100) << "too few recipes are legal";
    const std::optional<Case> item = Build(RandomGroups(seed));
    if (!item) continue;
    ++built;
    if (!FailureOf(*item, data, seed, true, tally)) continue;
    const auto failure = [&](const Recipe& r) -> std::optional<std::string> {
      const std::optional<Case> smaller = Build(r);
      return smaller ? FailureOf(*smaller, data, seed, true, tally) : std::nullopt;
    };
    const Recipe least =
        Shrink(RandomGroups(seed), [&](const Recipe& r) { return failure(r).has_value(); });
    FAIL() << *failure(least) << "\n  found with CONVGRAD_SEED=" << seed;
  }
  EXPECT_GT(tally.compared, 10 * static_cast<int>(wanted));
  if (data != Data::kInfinite) return;
  EXPECT_GT(tally.nans, 0);
  EXPECT_GT(tally.numbers, tally.nans);
}

TEST(Direct, HasTheBitsOfContract) { ExpectRandomGroups(Data::kReals, kSanitized ? 100 : 1000); }
TEST(Direct, HasTheZerosOfContract) { ExpectRandomGroups(Data::kZeros, kSanitized ? 60 : 400); }
TEST(Direct, HasTheNaNsOfContract) { ExpectRandomGroups(Data::kInfinite, kSanitized ? 100 : 800); }

// Vectors of other lengths have other blocks, and groups of fours only where four fit.
TEST(Direct, HasTheBitsOfContractOnEveryInstructionSet) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ExpectRandomGroups(Data::kReals, kSanitized ? 30 : 200);
    ExpectRandomGroups(Data::kInfinite, kSanitized ? 30 : 200);
    if (HasFatalFailure()) return;
  }
}

Recipe RecipeOf(const Shape& s) {
  Recipe r;
  r.spatial = static_cast<int>(s.extent.size());
  r.shape_tensor = 2;
  r.batch = s.batch;
  r.groups = s.groups;
  r.icg = s.icg;
  r.ocg = s.ocg;
  for (size_t a = 0; a < s.extent.size(); ++a) {
    r.extent[a] = s.extent[a];
    r.taps[a] = s.taps[a];
    r.stride[a] = s.stride[a];
    r.dilation[a] = s.dilation[a];
    r.pad_begin[a] = r.pad_end[a] = s.pad[a];
  }
  return r;
}

// Six names, both layouts, three types; everything else in turn.
void ExpectShape(const Shape& shape, Tally& tally) {
  static uint64_t turn = 0;
  Recipe r = RecipeOf(shape);
  for (const OpKind kind : kSixNames) {
    for (int i = 0; i < 6; ++i) {
      turn += 1;
      // Of ConvTranspose, the same passes by other names, a third; sanitized, a seventh of all.
      if (kSanitized ? turn % 7 != 0 : IsTranspose(kind) && turn % 3 != 0) continue;
      r.kind = static_cast<int>(kind);
      r.nxc = i % 2;
      r.type = i / 2;
      const uint64_t draw = turn * 0x9e3779b97f4a7c15u >> 32;
      r.spatial_first_weights = draw % 2;
      r.bias = draw / 2 % 2;
      r.wide_gradients = draw / 4 % 2;
      r.layout = draw / 8 % 4 == 0 ? static_cast<int>(draw / 32 % 4) : 0;
      const Data data = draw / 128 % 4 == 0   ? Data::kZeros
                        : draw / 128 % 4 == 1 ? Data::kInfinite
                                              : Data::kReals;
      const std::optional<Case> item = Build(r);
      if (!item && IsTranspose(kind)) continue;  // it has no pixels
      ASSERT_TRUE(item);
      const std::optional<std::string> failure = FailureOf(*item, data, draw / 512, false, tally);
      ASSERT_FALSE(failure) << *failure;
    }
  }
}

TEST(Direct, HasTheBitsOfContractInEveryShape) {
  Tally tally;
  for (const Shape& shape : kShapes) {
    ExpectShape(shape, tally);
    if (HasFatalFailure()) return;
  }
  // Blocks of wide vectors take twice the memory, and fewer shapes fit.
  EXPECT_GT(tally.compared, (HasWideBlocks() ? 20 : 40) * tally.refused);
  EXPECT_GT(tally.limited, 0);
  EXPECT_GT(tally.compared, 10 * tally.limited);
  EXPECT_GT(tally.nans, 0);
}

// Every remainder of a block of lanes.
TEST(Direct, HasTheBitsOfContractForAnyNumberOfChannels) {
  Tally tally;
  for (int64_t groups = 2; groups <= 40; ++groups) {
    ExpectShape({1 + 4 * (groups % 2), groups, 1, 1, {6, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
                tally);
    ExpectShape({1, groups, 2, 1, {5, 6}, {2, 3}, {1, 1}, {1, 1}, {1, 1}}, tally);
    ExpectShape({1, groups, 1, 1, {11 + groups / 4 % 8}, {2 + groups % 7}, {1}, {1}, {1}}, tally);
    if (groups <= 20) ExpectShape({1, groups, 4, 4, {5}, {3}, {1}, {1}, {1}}, tally);
    if (groups <= 13) ExpectShape({2, groups, 3, 3, {7}, {3}, {2}, {1}, {1}}, tally);
    if (HasFatalFailure()) return;
  }
  // One line of taps, of one piece or two, and every remainder of its tiles.
  for (int64_t taps = 2; taps <= 5; ++taps) {
    for (int64_t width = 12; width < 16; ++width) {
      ExpectShape({1, 36, 1, 1, {width}, {taps}, {1}, {1}, {1}}, tally);
      if (HasFatalFailure()) return;
    }
  }
  // So many channels that the CPU fetches their rows, and weight gradients carry positions, too; in
  // lines of which some are padding, and longer than a chunk.
  for (int64_t taps = 2; taps <= 5; ++taps) {
    ExpectShape({1, 2048 + 4 * taps, 1, 1, {7 + taps}, {taps}, {1}, {1}, {taps - 1}}, tally);
    ExpectShape({1, 4100, 1, 1, {2, 9}, {1, taps}, {1, 1}, {1, 1}, {1, 1}}, tally);
    ExpectShape({2, 2052, 1, 1, {435 + taps}, {taps}, {1}, {1}, {0}}, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.refused, 0);
}

TEST(Direct, HasTheBitsOfContractForEachImage) {
  Tally tally;
  for (uint64_t seed = 0; seed < (kSanitized ? 300 : 2000); ++seed) {
    Recipe r = RandomGroups(seed);
    if (!WritesWeights(static_cast<OpKind>(r.kind))) continue;
    r.layout = 0;
    r.shape_tensor = 0;
    r.wide_gradients = 0;
    const std::optional<Case> item = Build(r);
    if (!item) continue;
    const std::optional<std::string> failure =
        FailureOf(*item, Data::kReals, seed, false, tally, true);
    ASSERT_FALSE(failure) << *failure << " for each image";
  }
  EXPECT_GT(tally.compared, kSanitized ? 30 : 300);
}

std::string KernelOf(int64_t groups, int64_t icg, int64_t ocg, OpKind kind, DataType type,
                     bool last, int64_t images = 2) {
  const BitsProblem problem{"",       images, groups, groups * icg, groups * ocg,
                            {28, 28}, {3, 3}, {1, 1}, {1, 1},       {1, 1}};
  const Result<Plan> plan =
      BitsCase(problem, kind, type, {last, last}, true).MakePlan({.threads = 2});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return "";
  const std::string kernel(plan->kernel());
  EXPECT_NE(plan->Explain().find(kernel + " runs: the smallest expected time"), std::string::npos)
      << plan->Explain();
  const bool tells = plan->Explain().find(" in a task; vectors along ") != std::string::npos;
  EXPECT_EQ(tells, kernel == "direct") << plan->Explain();
  return kernel;
}

// 3x3, depthwise: without a copy where channels are next to each other, or where pixels are and no
// sum is over them; not where 16 bits are widened first. Groups of two are along pixels on vectors
// of 16 lanes, and no others.
void ExpectTextOfLines(OpKind kind, DataType type, bool last, int64_t channels) {
  const BitsProblem problem{"", 2, 64 / channels, 64, 64, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  const Result<Plan> plan = BitsCase(problem, kind, type, {last, last}, true)
                                .MakePlan({.threads = 2, .kernel = "direct"});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::string text = plan->Explain();
  const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
  const bool depthwise = channels == 1, bits16 = type != DataType::kF32;
  const bool along_pixels =
      !last && !WritesWeights(kind) && (depthwise || PickedVectorUnit(type).lanes == 16);
  const bool loaded = last && depthwise;
  EXPECT_EQ(says(", in place: no line is copied"), loaded || (along_pixels && !bits16)) << text;
  EXPECT_EQ(says(", widened to f32 when a line is copied"), bits16 && !loaded) << text;
  EXPECT_EQ(says(" channels in a task; vectors along pixels"), along_pixels && depthwise) << text;
  EXPECT_EQ(says(" groups in a task; vectors along pixels"), along_pixels && !depthwise) << text;
}

// 3x3, depthwise: without a copy where channels are next to each other, or where pixels are and no
// sum is over them; not where 16 bits are widened first. Groups of two along pixels on vectors of
// 16 lanes.
TEST(Direct, SaysWhetherLinesAreCopied) {
  for (const OpKind kind : kSixNames) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      for (const bool last : {false, true}) {
        for (const int64_t channels : {1, 2}) ExpectTextOfLines(kind, type, last, channels);
      }
    }
  }
}

TEST(Direct, IsChosenForGroupsOfFewChannels) {
  for (const OpKind kind : kSixNames) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      for (const bool last : {false, true}) {
        const std::string what =
            std::string(NameOf(kind)) + " " + std::string(NameOf(type)) + (last ? " NXC" : " NCX");
        EXPECT_EQ(KernelOf(64, 1, 1, kind, type, last), "direct") << what;
        EXPECT_EQ(KernelOf(16, 4, 4, kind, type, last), "direct") << what;
        // Of fprop and dgrad, or the flat kernel on such vectors: no contraction.
        EXPECT_NE(KernelOf(4, 16, 16, kind, type, last), "contract") << what;
        // One group of as many channels fills a tile, and vectors of 16 lanes.
        const VectorUnit unit = PickedVectorUnit(type);
        const bool fills = unit.lanes == 16 && unit.terms_each == 1;
        EXPECT_EQ(KernelOf(1, 16, 16, kind, type, last) == "contract", !fills) << what;
        // Images can be groups, but not where they are summed: then there is one lane of a vector.
        EXPECT_EQ(KernelOf(1, 1, 1, kind, type, last, 16),
                  WritesWeights(kind) && unit.terms_each > 1 ? "contract" : "direct")
            << what;
        // AMX has no use for two channels, which run as those of f32 do.
        if (unit.k_unit > 1 && !WritesWeights(kind)) {
          EXPECT_EQ(KernelOf(1, 2, 2, kind, type, last),
                    KernelOf(1, 2, 2, kind, DataType::kF32, last))
              << what;
        }
        EXPECT_NE(KernelOf(4, 17, 17, kind, type, last), "direct") << what;
        EXPECT_NE(KernelOf(4, 4, 17, kind, type, last), "direct") << what;
      }
    }
  }
}

TEST(Direct, SaysWhyItCannotRunAProblem) {
  const auto reason = [](int64_t groups, int64_t each) {
    const BitsProblem problem{"",     1,      groups, groups * each, groups * each,
                              {9, 9}, {3, 3}, {1, 1}, {1, 1},        {1, 1}};
    return BitsCase(problem, OpKind::kConvolution, DataType::kF32, {}, false)
        .MakePlan({.kernel = "direct"})
        .status()
        .message();
  };
  EXPECT_NE(reason(1, 17).find("there is one group"), std::string::npos) << reason(1, 17);
  EXPECT_NE(reason(2, 17).find("more than 16 channels"), std::string::npos) << reason(2, 17);
}

// Guard pages around a workspace of the size that the plan says, less the one byte that cannot
// matter: it then begins as far from the next cache line as can be, and its last float is right
// before the guard.
void ExpectGuardedWorkspace(BitsCase& item, const Options& options,
                            const std::vector<char>& expected) {
  const Result<Plan> plan = item.MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  if (options.workspace_limit >= 0) {
    ASSERT_LE(plan->workspace_bytes(), options.workspace_limit);
  }
  const size_t bytes = static_cast<size_t>(plan->workspace_bytes());
  if (bytes > 0) {
    BitsCase copy = item;
    const GuardedMemory workspace(bytes - 1, true);
    ASSERT_TRUE(plan->Run(copy.InputData(), copy.OutputData(), workspace.data()).ok());
    ASSERT_TRUE(copy.OutputBytes() == expected);
  }
  // And around every tensor.
  for (const bool at_end : {false, true}) {
    ASSERT_TRUE(RunGuarded(item, options, at_end) == expected);
  }
}

TEST(Direct, TouchesNoMoreWorkspaceThanItsPlanSays) {
  int turn = 0, needing = 0, refused = 0, limited = 0;
  for (const Shape& s : kShapes) {
    const BitsProblem problem{"",       s.batch, s.groups, s.groups * s.icg, s.groups * s.ocg,
                              s.extent, s.taps,  s.stride, s.dilation,       s.pad};
    for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights}) {
      if (s.groups == 1 && WritesWeights(kind)) continue;  // of images
      ++turn;
      const DataType type = std::array{DataType::kF32, DataType::kBF16,
                                       DataType::kF16}[static_cast<size_t>(turn / 2 % 3)];
      BitsCase item(problem, kind, type, {turn % 2 == 0, turn / 2 % 2 == 0}, turn % 3 != 0);
      Options options{.threads = 1, .beta = kBetas[turn / 3 % 3], .kernel = "direct"};
      if (!item.MakePlan(options).ok()) {
        ++refused;
        continue;
      }
      options.kernel = "contract";
      BitsCase reference = item;
      ASSERT_NE(reference.Run(options), 0u);
      const std::vector<char> expected = reference.OutputBytes();
      options.kernel = "direct";
      for (const int64_t limit : kLimits) {
        options.threads = kThreads[turn % 4];
        options.workspace_limit = limit;
        if (const Result<Plan> plan = item.MakePlan(options); limit >= 0 && !plan.ok()) {
          ASSERT_NE(plan.status().message().find(kNoRoom), std::string::npos);
          ++limited;
          continue;
        }
        needing += item.MakePlan(options)->workspace_bytes() > 0;
        SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()) + ", " +
                     std::to_string(options.threads) + " threads, limit " + std::to_string(limit));
        ExpectGuardedWorkspace(item, options, expected);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(needing, 50);
  EXPECT_GT(turn, (HasWideBlocks() ? 1 : 10) * limited);
  // Blocks of wide vectors take twice the memory, and fewer shapes fit.
  EXPECT_GT(turn, (HasWideBlocks() ? 5 : 13) * refused);
}

}  // namespace
}  // namespace convgrad::tests
