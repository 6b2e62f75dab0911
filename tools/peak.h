// The limit of this machine's vector units, measured: what a share of peak is a share of.
#ifndef CONVGRAD_TOOLS_PEAK_H_
#define CONVGRAD_TOOLS_PEAK_H_

namespace convgrad::tools {

// f32 multiply-adds in registers, on all cores that OpenMP would use, counted as two operations
// each. Takes about 50 ms.
double MeasurePeakFlops(int threads);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PEAK_H_
