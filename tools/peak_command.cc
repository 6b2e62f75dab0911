#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/text.h"
#include "tools/commands.h"
#include "tools/peak.h"
#include "tools/progress.h"

namespace convgrad::tools {
namespace {

struct OneAndAll {
  Peak one, all;
};

void PrintTable(const std::vector<OneAndAll>& peaks, const CopyRate& one, const CopyRate& all) {
  std::printf("%-6s%-22s%12s%12s\n", "", "", "one core",
              Join(all.threads, all.threads == 1 ? " core" : " cores").c_str());
  for (const OneAndAll& peak : peaks) {
    std::printf("%-6s%-22s%12.1f%12.1f  GFLOP/s\n", std::string(NameOf(peak.one.type)).c_str(),
                peak.one.instruction.c_str(), peak.one.flops * 1e-9, peak.all.flops * 1e-9);
  }
  std::printf("%-6s%-22s%12.1f%12.1f  GB/s, read and written\n", "copy",
              Join("arrays of ", one.array_bytes >> 20, " MiB").c_str(), one.bytes * 1e-9,
              all.bytes * 1e-9);
}

void PrintJson(const std::vector<OneAndAll>& peaks, const CopyRate& one, const CopyRate& all) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const OneAndAll& peak : peaks) {
    rows.push_back({{"dtype", NameOf(peak.one.type)},
                    {"instruction", peak.one.instruction},
                    {"one_core_gflops", peak.one.flops * 1e-9},
                    {"all_cores_gflops", peak.all.flops * 1e-9}});
  }
  const Json report = {{"cores", all.threads},
                       {"peaks", rows},
                       {"copy",
                        {{"array_bytes", one.array_bytes},
                         {"one_core_gbytes", one.bytes * 1e-9},
                         {"all_cores_gbytes", all.bytes * 1e-9}}}};
  std::printf("%s\n", report.dump(2).c_str());
}

}  // namespace

int PrintPeaks(bool json) {
  Progress progress("peak");
  const int cores = CoresOfMachine();
  Limits limits;
  std::vector<OneAndAll> peaks;
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    peaks.push_back({limits.PeakOf(type, 1), limits.PeakOf(type, cores)});
  }
  const CopyRate& one = limits.CopyRateOf(1);
  const CopyRate& all = limits.CopyRateOf(cores);
  progress.Clear();
  (json ? PrintJson : PrintTable)(peaks, one, all);
  return 0;
}

}  // namespace convgrad::tools
