// The limits of this machine, measured: what a share of peak is a share of. The vector units in
// registers only, and memory by copying arrays that no cache holds.
#ifndef CONVGRAD_TOOLS_PEAK_H_
#define CONVGRAD_TOOLS_PEAK_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/types.h"

namespace convgrad::tools {

struct Peak {
  DataType type = DataType::kF32;
  std::string instruction;
  double flops = 0;  // per second
  int threads = 0;   // that it was measured on: no more than there are cores
};

// Multiply-adds of `type` into f32 sums, counted as two operations each. Takes about 50 ms.
Peak MeasurePeak(DataType type, int threads);

// The same in a millisecond, on threads and clocks that are awake: operations per second.
double SamplePeak(DataType type, int threads);

struct CopyRate {
  double bytes = 0;         // read plus written, per second
  int threads = 0;          // as in Peak
  int64_t array_bytes = 0;  // of each of the two arrays
};

// Takes 0.1 to 0.5 s, the most for the first touch of the arrays.
CopyRate MeasureCopyRate(int threads);

// As many as a measurement uses at most.
int CoresOfMachine();

// Measures each limit once, when it is first asked for.
class Limits {
 public:
  const Peak& PeakOf(DataType type, int threads);
  const CopyRate& CopyRateOf(int threads);

 private:
  std::map<std::pair<DataType, int>, Peak> peaks_;
  std::map<int, CopyRate> copy_rates_;
};

// One line: the peaks of the types on so many threads.
std::string DescribePeaks(const std::vector<DataType>& types, int threads, Limits& limits);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PEAK_H_
