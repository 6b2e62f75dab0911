#include "tools/bench_case.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "core/text.h"
#include "core/touched_bytes.h"
#include "spec/canonicalize.h"
#include "spec/check.h"
#include "tools/case_memory.h"
#include "tools/peak.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tools {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A sample is a stretch of at least this time, so that the clock and a thread's waking do not show.
constexpr double kSampleSeconds = 1e-3;
// Runs shorter than this are preceded by one that is not timed: it wakes the contestant's threads
// and brings its data back after the others' runs.
constexpr double kShortSeconds = 20e-3;

// How often a thread of this process lost its core to another while it had work.
int64_t Preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double CountPaddedFlops(const Problem& p) {
  if (p.bias.alone) return 0;
  double count = static_cast<double>(p.batch) * static_cast<double>(p.groups) *
                 static_cast<double>(p.ci) * static_cast<double>(p.co);
  for (const Axis& axis : p.axes) {
    count *= static_cast<double>(axis.out) * static_cast<double>(axis.taps);
  }
  return 2 * count;
}

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::function<void()> rest = [] {};
  double once = 0;  // seconds of a run
  std::vector<double> samples;
  double sampled = 0;  // seconds
  int64_t preemptions = 0;

  // A second run, unless the first has taken all the time that there is.
  void TimeOnce(double budget) {
    for (int i = 0; i < 2 && once <= budget; ++i) {
      const Clock::time_point begin = Clock::now();
      run();
      once = std::max(SecondsSince(begin), 1e-9);
    }
    rest();
  }

  void Sample(bool alone) {
    if (!alone && once < kShortSeconds) run();
    const int runs = static_cast<int>(std::ceil(std::clamp(kSampleSeconds / once, 1.0, 1000.0)));
    const int64_t before = Preemptions();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < runs; ++i) run();
    const double seconds = SecondsSince(begin);
    samples.push_back(seconds / runs);
    sampled += seconds;
    preemptions += Preemptions() - before;
    rest();
  }
};

// Of at least one value: the one that `share` of them are below, between two of them if need be.
double QuantileOf(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(place), above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

bool LiesAs(const PixelStrides& strides, const Problem& p, bool x, bool channels_last) {
  const int64_t channels = p.groups * (x ? p.ci : p.co);
  int64_t pixels = channels_last ? channels : 1;
  bool same = channels == 1 || !channels_last || strides.c == 1;
  for (size_t a = kAxes; a-- > 0;) {
    const int64_t extent = x ? p.axes[a].in : p.axes[a].out;
    same = same && (extent == 1 || strides.s[a] == pixels);
    pixels *= extent;
  }
  if (!channels_last) {
    same = same && (channels == 1 || strides.c == pixels);
    pixels *= channels;
  }
  return same && (p.batch == 1 || strides.n == pixels);
}

std::string DataFormatOf(const Problem& p, const std::string& given) {
  const bool last = LiesAs(p.x, p, true, true) && LiesAs(p.y, p, false, true);
  const bool first = LiesAs(p.x, p, true, false) && LiesAs(p.y, p, false, false);
  if (last && first) return given;  // one channel, or one pixel: the same memory
  return last ? "NXC" : first ? "NCX" : "strided";
}

class CaseTimer {
 public:
  CaseTimer(const Case& item, const BenchSettings& settings) : item_(item), settings_(settings) {}

  BenchRow Run() {
    row_.problem = item_.text;
    row_.op = NameOf(item_.operation.kind);
    row_.type = item_.inputs[0].type;
    row_.threads = settings_.options.threads;
    Result<CheckedOperation> checked =
        Check(item_.operation, item_.inputs, item_.outputs, {settings_.options.per_sample});
    Result<Plan> plan = Plan::Make(item_.operation, item_.inputs, item_.outputs, settings_.options);
    if (!checked.ok() || !plan.ok()) {
      row_.refusal = (checked.ok() ? plan.status() : checked.status()).message();
      return row_;
    }
    if (!FitsThisMachine(item_.inputs, item_.outputs)) {
      row_.refusal = kDoesNotFit;
      return row_;
    }
    const Problem problem = Canonicalize(*checked);
    row_.data_format = DataFormatOf(problem, checked->attributes.data_format);
    row_.kernel = plan->kernel();
    row_.workspace_bytes = plan->workspace_bytes();
    row_.flops = plan->flops();
    row_.padded_flops = CountPaddedFlops(problem);
    row_.bytes = CountTouchedBytes(problem);
    row_.out_type = problem.out_type;
    row_.per_sample = problem.per_sample.present;
    Allocate(*plan);
    AddConvgrad(*plan);
    for (const bench::PeerInfo& peer : settings_.peers) AddPeer(peer, *checked, problem);
    TimeAll();
    return row_;
  }

 private:
  // Integers whose sums are exact in f32 in any order.
  void Allocate(const Plan& plan) {
    double largest = 0;
    for (const TensorDesc& desc : item_.inputs) {
      inputs_.emplace_back(desc.given() ? TensorBuffer(desc) : TensorBuffer());
      largest = std::max(largest, static_cast<double>(inputs_.back().elements()));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Dims& values = item_.inputs[i].values;
      if (!values.empty()) {
        std::memcpy(inputs_[i].data(), values.data(), values.size() * sizeof(values[0]));
      } else if (IsFloat(inputs_[i].desc().type)) {
        FillIntegers(inputs_[i], ExactRange(largest), i + 1);
      }
      in_.push_back(item_.inputs[i].given() ? inputs_[i].data() : nullptr);
    }
    for (int i = 0; i < plan.num_outputs(); ++i) {
      outputs_.emplace_back(plan.output(i));
      expected_.emplace_back(plan.output(i));
    }
    // After the last push_back: the buffers stay where they are.
    for (TensorBuffer& output : outputs_) out_.push_back(output.data());
    workspace_.resize(static_cast<size_t>(plan.workspace_bytes()));
  }

  void AddConvgrad(const Plan& plan) {
    Contestant convgrad;
    convgrad.name = "convgrad";
    convgrad.run = [this, plan] {
      // Cannot fail: the pointers are there and the shapes were checked.
      (void)plan.Run(in_, out_, workspace_.empty() ? nullptr : workspace_.data());
    };
    convgrad.TimeOnce(budget_);
    for (size_t i = 0; i < outputs_.size(); ++i) expected_[i] = outputs_[i];
    contestants_.push_back(std::move(convgrad));
  }

  void AddPeer(const bench::PeerInfo& info, const CheckedOperation& checked,
               const Problem& problem) {
    PeerTiming entry;
    entry.name = info.name;
    const bench::PeerRequest request{problem, checked.schema->family == Family::kConvTranspose,
                                     checked.spatial, CanonicalOperands(checked, in_, out_),
                                     row_.threads};
    std::shared_ptr<bench::Peer> peer;
    if (problem.per_sample.present) {
      entry.note = "no gradients for each image";
    } else {
      peer = info.make(request, &entry.note);
    }
    if (peer != nullptr) {
      entry.implementation = peer->implementation();
      Contestant contestant;
      contestant.name = entry.name;
      contestant.run = [peer] { peer->Run(); };
      contestant.rest = [peer] { peer->Rest(); };
      for (TensorBuffer& output : outputs_) output.Blank();
      contestant.TimeOnce(budget_);
      entry.note = Difference();
      entry.wrong = !entry.note.empty();
      if (!entry.wrong) contestants_.push_back(std::move(contestant));
    }
    row_.peers.push_back(std::move(entry));
  }

  // On these data a plain sum agrees to the last bit; 8 units in the last place of the largest
  // element leave room for a peer that transforms them, as Winograd's algorithm does.
  std::string Difference() const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const TensorBuffer &got = outputs_[i], &expected = expected_[i];
      if (got.SameBytes(expected)) continue;
      double largest = 0;
      for (int64_t e = 0; e < expected.elements(); ++e) {
        largest = std::max(largest, std::abs(expected.At(e)));
      }
      const DataType type = got.desc().type;
      const double epsilon = type == DataType::kF32    ? 0x1p-23
                             : type == DataType::kBF16 ? 0x1p-7
                                                       : 0x1p-10;
      for (int64_t e = 0; e < got.elements(); ++e) {
        if (std::abs(got.At(e) - expected.At(e)) <= 8 * epsilon * largest) continue;
        char text[80];
        std::snprintf(text, sizeof text, "is %.9g, convgrad says %.9g", got.At(e), expected.At(e));
        return Join("output ", i, " at [", JoinNumbers(got.IndexOf(e), ","), "] ", text);
      }
    }
    return "";
  }

  // In turns, so that whatever else the machine does meets all of them alike. A contestant whose
  // one run takes all the time that there is keeps that as its only sample.
  void TimeAll() {
    for (Contestant& contestant : contestants_) {
      if (contestant.once > budget_) contestant.samples = {contestant.once};
    }
    bool alone = contestants_.size() == 1;  // nothing else has run since the last sample
    std::vector<double> peaks;
    double peak_seconds = 0;
    const Clock::time_point begin = Clock::now();
    const bool counted = settings_.repetitions > 0;
    const int most = counted ? settings_.repetitions : kMostRepetitions;
    for (int round = 0; round < most; ++round) {
      if (!counted && round >= kLeastRepetitions && SecondsSince(begin) >= settings_.seconds) break;
      for (Contestant& contestant : contestants_) {
        if (contestant.once <= budget_ || counted) contestant.Sample(alone);
      }
      alone = contestants_.size() == 1;
      // Clocks go with the work of the last seconds, by a fifth on some machines: the peak is that
      // of now. For a twentieth of the time.
      if (peak_seconds > 0.05 * SecondsSince(begin)) continue;
      const Clock::time_point before = Clock::now();
      peaks.push_back(SamplePeak(row_.type, row_.threads));
      peak_seconds += SecondsSince(before);
      alone = false;
    }
    row_.peak_flops = QuantileOf(peaks, 0.5);
    row_.timing = Summarize(contestants_[0].samples);
    double seconds = 0, preemptions = 0;
    for (const Contestant& contestant : contestants_) {
      seconds += contestant.sampled;
      preemptions += static_cast<double>(contestant.preemptions);
    }
    row_.preemptions = seconds > 0 ? preemptions / seconds : 0;
    for (PeerTiming& peer : row_.peers) {
      for (const Contestant& contestant : contestants_) {
        if (contestant.name == peer.name) peer.timing = Summarize(contestant.samples);
      }
    }
  }

  const Case& item_;
  const BenchSettings& settings_;
  // A run that takes longer is not repeated. Not less than a tenth of a second: a short one that
  // was held up by something else must not be the only sample.
  const double budget_ = std::max(settings_.seconds, 0.1);
  BenchRow row_;
  std::vector<TensorBuffer> inputs_, outputs_, expected_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<unsigned char> workspace_;
  std::vector<Contestant> contestants_;
};

}  // namespace

Timing Summarize(const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  const double median = QuantileOf(seconds, 0.5);
  return {median, (QuantileOf(seconds, 0.9) - QuantileOf(seconds, 0.1)) / median,
          static_cast<int>(seconds.size())};
}

BenchRow BenchCase(const Case& item, const BenchSettings& settings) {
  return CaseTimer(item, settings).Run();
}

}  // namespace convgrad::tools
