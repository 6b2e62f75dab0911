// The limit of this machine's vector units, measured: what a share of peak is a share of.
#ifndef CONVGRAD_TOOLS_PEAK_H_
#define CONVGRAD_TOOLS_PEAK_H_

namespace convgrad::tools {

struct Peak {
  double flops = 0;  // per second
  int threads = 0;   // that it was measured on: no more than there are cores
};

// f32 multiply-adds in registers, counted as two operations each. Takes about 50 ms.
Peak MeasurePeak(int threads);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PEAK_H_
