// peak and bench end to end, through the command and in one process with the tests: sane limits,
// consistent numbers, refusals, and peers that compute what convgrad computes.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/peer.h"
#include "tests/command_line.h"
#include "tools/bench_case.h"
#include "tools/multiply_add_loop.h"
#include "tools/peak.h"
#include "tools/problem_words.h"

namespace convgrad::tools {
namespace {

using Json = nlohmann::json;

// ---- Limits ----

class PeakTest : public testing::TestWithParam<DataType> {};

TEST_P(PeakTest, AllCoresAreNoSlowerThanHalfOfOne) {
  const Peak one = MeasurePeak(GetParam(), 1);
  const Peak all = MeasurePeak(GetParam(), CoresOfMachine());
  EXPECT_EQ(one.threads, 1);
  EXPECT_GT(one.flops, 0);
  EXPECT_FALSE(one.instruction.empty());
  EXPECT_EQ(one.instruction, all.instruction);
  EXPECT_GE(all.flops, 0.5 * one.flops);
}

// What a loop claims to have done, it did: with factors of 1 each round adds the products of a sum
// to it, and all sums together are half the operations.
TEST_P(PeakTest, LoopsDoTheWorkThatTheyCount) {
  const MultiplyAddLoop loop = LoopFor(GetParam());
  constexpr int kRounds = 3;
  constexpr int kSums = 24;
  const bool narrow = loop.instruction.find("bf16") != std::string::npos ||
                      loop.instruction.starts_with("bfmmla") ||
                      loop.instruction.starts_with("fmlal");
  float one = 1;
  if (narrow) {
    const uint16_t half = GetParam() == DataType::kBF16 ? 0x3f80 : 0x3c00;
    const uint32_t both = half * 0x10001u;
    std::memcpy(&one, &both, sizeof one);
  }
  // The factors follow the sums, whose number depends on the instruction set: first all is 1, then
  // what stayed 1 were factors or is not used.
  std::vector<float> floats(kMultiplyAddFloats, one);
  loop.run(0, floats.data());
  EXPECT_TRUE(std::all_of(floats.begin(), floats.end(),
                          [&](float f) { return std::memcmp(&f, &one, sizeof f) == 0; }));
  loop.run(kRounds, floats.data());
  double sum = 0;
  for (float value : floats) {
    if (std::memcmp(&value, &one, sizeof value) != 0) sum += double{value} - double{one};
  }
  EXPECT_NEAR(sum, kRounds * loop.flops / 2, 1e-5 * kRounds * loop.flops) << loop.instruction;
  // 32 products a vector, or 16 x 16 x 32 a tile of AMX, of which six are sums.
  EXPECT_LE(loop.flops,
            loop.instruction.starts_with("tdp") ? 2.0 * 16 * 16 * 32 * 6 : 2.0 * 32 * kSums);
}

INSTANTIATE_TEST_SUITE_P(Types, PeakTest,
                         testing::Values(DataType::kF32, DataType::kBF16, DataType::kF16),
                         [](const auto& type) { return std::string(NameOf(type.param)); });

TEST(Peak, CopyRateIsThere) {
  const CopyRate one = MeasureCopyRate(1);
  EXPECT_EQ(one.threads, 1);
  EXPECT_GT(one.bytes, 1e8);
  EXPECT_GE(one.array_bytes, 1 << 20);
}

TEST(Peak, LimitsAreMeasuredOnce) {
  Limits limits;
  const Peak* first = &limits.PeakOf(DataType::kF32, 1);
  EXPECT_EQ(first, &limits.PeakOf(DataType::kF32, 1));
  // More threads than cores are no more than all cores.
  EXPECT_EQ(&limits.PeakOf(DataType::kF32, CoresOfMachine()),
            &limits.PeakOf(DataType::kF32, 100000));
}

// ---- The commands ----

class BenchCommandTest : public CommandFixture {
 protected:
  Json Bench(const std::string& words) const {
    Succeeds("bench --seconds 0.01 --json=out.json " + words);
    return Json::parse(Get("out.json"));
  }
};

TEST_F(BenchCommandTest, PeakPrintsATableAndJson) {
  const Json report = Json::parse(Succeeds("peak --json").out);
  ASSERT_EQ(report["peaks"].size(), 3u);
  for (const Json& row : report["peaks"]) {
    EXPECT_GT(row["one_core_gflops"], 0.0);
    EXPECT_GE(row["all_cores_gflops"].get<double>(), 0.5 * row["one_core_gflops"].get<double>());
  }
  EXPECT_GT(report["copy"]["one_core_gbytes"], 0.0);
  EXPECT_GE(report["cores"], 1);
  const std::string table = Succeeds("peak").out;
  for (const char* word : {"f32", "bf16", "f16", "copy", "one core", "GFLOP/s", "GB/s"}) {
    EXPECT_NE(table.find(word), std::string::npos) << table;
  }
}

TEST_F(BenchCommandTest, JsonIsConsistent) {
  const Json rows = Bench(
      "--threads=1,2 --dir=FWD_D,BWD_W --stag=abx,axb --dtag=abx "
      "mb2_ic8oc16_ih14kh3ph1");
  ASSERT_EQ(rows.size(), 8u);
  Limits limits;
  for (const Json& row : rows) {
    const double ms = row["ms"], gflops = row["gflops"];
    EXPECT_GT(ms, 0);
    EXPECT_NEAR(gflops, row["flops"].get<double>() / ms * 1e-6, 1e-6 * gflops);
    // 14 * 3 - 2 taps of each axis are inside.
    EXPECT_EQ(row["flops"], 2.0 * 2 * 8 * 16 * 40 * 40);
    EXPECT_EQ(row["padded_flops"], 2.0 * 2 * 8 * 16 * 42 * 42);
    EXPECT_NEAR(row["padded_peak_pct"].get<double>() / row["peak_pct"].get<double>(),
                42.0 * 42 / (40 * 40), 1e-9);
    EXPECT_GT(row["peak_pct"], 0.0);
    EXPECT_GT(row["floor_ratio"], 0.0);
    // The peak of the problem's own time: clocks and other programs make it another.
    const double peak = row["peak_gflops"];
    EXPECT_NEAR(row["peak_pct"].get<double>(), 100 * gflops / peak, 1e-6);
    const double machine = 1e-9 * limits.PeakOf(DataType::kF32, row["threads"]).flops;
    EXPECT_GT(peak, 0.1 * machine);
    EXPECT_LT(peak, 3 * machine);
    // The floor is at least the time at the peak.
    EXPECT_LE(row["floor_ratio"].get<double>(), 100.001 / row["peak_pct"].get<double>());
    EXPECT_GE(row["workspace_bytes"], 0);
    EXPECT_GE(row["repetitions"], 3);
    EXPECT_GE(row["preemptions_per_second"], 0.0);
    EXPECT_EQ(row["dtype"], "f32");
    EXPECT_TRUE(row["peers"].is_object());
    EXPECT_FALSE(row["kernel"].get<std::string>().empty());
    const std::string problem = row["problem"];
    const bool first = problem.find("--stag=abx") != std::string::npos;
    EXPECT_EQ(row["data_format"], first ? "NCX" : "strided") << problem;
    EXPECT_EQ(row["op"], problem.find("FWD_D") != std::string::npos ? "Convolution"
                                                                    : "ConvolutionBackwardWeights");
  }
  EXPECT_EQ(rows[0]["threads"], 1);
}

TEST_F(BenchCommandTest, TakesOperationsAndStatesTheFormat) {
  const Json rows = Bench(
      "--threads 1 --repetitions 2 ConvTranspose src=1x5x5x2 weights=3x3x3x2 --strides=2,2 "
      "--pads_begin=1,1 --pads_end=1,1 --dilations=1,1 --weights_format=XOI");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["op"], "ConvTranspose");
  EXPECT_EQ(rows[0]["data_format"], "NXC");
  EXPECT_EQ(rows[0]["repetitions"], 2);
}

TEST_F(BenchCommandTest, EndsWithALineForEachGroup) {
  const std::string out =
      Succeeds(
          "bench --seconds 0.01 --threads=1 --dt=f32,bf16 --dir=FWD_D ic4oc4_ih8kh3 "
          "ic4oc4_ih9kh3")
          .out;
  for (const char* line :
       {"\nf32, 1 thread: 2 problems, geomean ", "\nbf16, 1 thread: 2 problems"}) {
    EXPECT_NE(out.find(line), std::string::npos) << out;
  }
  EXPECT_EQ(out.find("padding"), std::string::npos) << out;
}

TEST_F(BenchCommandTest, CountsPaddingBesideTheProductsInside) {
  const std::string out =
      Succeeds("bench --seconds 0.01 --threads=1 --dir=FWD_D ic4oc4_ih8kh3ph1").out;
  EXPECT_NE(out.find("\n  padding  counted as products: geomean "), std::string::npos) << out;
}

TEST_F(BenchCommandTest, RandomProblemsEndWithTheSlowestAndReplay) {
  const std::string out =
      Succeeds("bench --random 12 --seed 8 --threads 1 --workspace 0 --repetitions 1 --json=a.json")
          .out;
  for (const char* text : {"\n--random 12 --seed 8\nslowest by time / floor, ",
                           " timings of more than 10 MFLOP\nx floor", " of 12 timings\nx floor"}) {
    EXPECT_NE(out.find(text), std::string::npos) << out;
  }
  const Json rows = Json::parse(Get("a.json"));
  ASSERT_EQ(rows.size(), 12u);
  const size_t all = out.find(" of 12 timings");
  double worst = 0, f32_peak = 0;
  std::string problem;
  for (const Json& row : rows) {
    if (row["dtype"] == "f32") f32_peak = std::max(f32_peak, row["peak_gflops"].get<double>());
  }
  ASSERT_GT(f32_peak, 0);
  for (const Json& row : rows) {
    EXPECT_EQ(row["workspace_bytes"], 0);
    EXPECT_GT(row["f32_floor_ratio"], 0.0);
    // The floor of the faster type is lower, but by what its own peak fell since f32's was
    // measured.
    const double fell = std::min(1.0, row["peak_gflops"].get<double>() / f32_peak);
    EXPECT_GE(row["floor_ratio"].get<double>(), 0.5 * fell * row["f32_floor_ratio"].get<double>());
    if (row["dtype"] == "f32") {
      EXPECT_EQ(row["floor_ratio"], row["f32_floor_ratio"]);
    }
    if (row["floor_ratio"] > worst) {
      worst = row["floor_ratio"];
      problem = row["problem"];
    }
  }
  // The slowest comes first, with a line that bench takes.
  const size_t first = out.find("--", all), end = out.find('\n', first);
  EXPECT_EQ(out.substr(first, end - first), problem) << out;
  const Json again = Bench("--threads 1 --repetitions 1 " + problem);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0]["problem"], problem);
  // --match leaves out others.
  const Json some = Bench("--random 12 --seed 8 --threads 1 --repetitions 1 --match=random:dense");
  EXPECT_GT(some.size(), 0u);
  EXPECT_LT(some.size(), 12u);
}

TEST_F(BenchCommandTest, RefusesBadInputBeforeAnyWork) {
  const std::string problem = " ic4oc4_ih8kh3";
  ExpectRefused("bench", "no problem is given");
  ExpectRefused("bench ic4oc4_ih1kh3", "ic4oc4_ih1kh3");
  ExpectRefused("bench --threads=1,x" + problem, "'x' is no number of threads in '1,x'");
  ExpectRefused("bench --threads=-1" + problem, "'-1' is no number of threads");
  ExpectRefused("bench --threads ''" + problem, "the value is empty");
  ExpectRefused("bench --peer mkl" + problem, "peer 'mkl' is unknown, expected onednn or blas");
  ExpectRefused("bench --repetitions -1" + problem, "--repetitions must be at least 0");
  ExpectRefused("bench --seconds 0" + problem, "--seconds more than 0");
  ExpectRefused("bench --seconds nan" + problem, "--seconds more than 0");
  ExpectRefused("bench --kernel zip" + problem, "kernel 'zip' is unknown");
  ExpectRefused("bench --json=none/out.json" + problem,
                "none/out.json: the file cannot be written");
  ExpectRefused("bench --json=." + problem, "this is a directory, expected a file");
  ExpectRefused("bench --random 0", "--random is 0, expected 1 to 100000 problems");
  ExpectRefused("bench --random x", "expected a whole number");
  ExpectRefused("bench --random 2" + problem, "beside it only --match=REGEX may be given");
  ExpectRefused("bench --random 2 --dt=bf16", "not '--dt=bf16'");
  ExpectRefused("bench --seed 2" + problem, "--random");
  ExpectRefused("peak 3", "3");
}

TEST_F(BenchCommandTest, NamesThePackageOfAPeerThatIsNotBuilt) {
  for (const bench::PeerInfo& peer : bench::Peers()) {
    if (peer.make != nullptr) continue;
    const std::string name(peer.name), package(peer.package);
    ExpectRefused("bench --peer " + name + " ic4oc4_ih8kh3",
                  "peer '" + name + "' is not in this build: install " + package + " and rebuild");
  }
}

// ---- Peers ----

class BenchPeerTest : public testing::TestWithParam<std::string> {
 protected:
  bench::PeerInfo Find() const {
    for (const bench::PeerInfo& peer : bench::Peers()) {
      if (peer.name == GetParam()) return peer;
    }
    return {};
  }
  static std::vector<Case> Cases(const std::string& words) {
    Result<std::vector<Case>> cases = ParseCases(Split(words));
    EXPECT_TRUE(cases.ok()) << cases.status().message();
    return cases.ok() ? *cases : std::vector<Case>();
  }
  static BenchSettings Settings(const bench::PeerInfo& peer, int threads) {
    BenchSettings settings;
    settings.options.threads = threads;
    settings.repetitions = 1;
    settings.seconds = 0.01;
    settings.peers = {peer};
    return settings;
  }
};

TEST_P(BenchPeerTest, AgreesWithConvgrad) {
  const bench::PeerInfo peer = Find();
  if (peer.make == nullptr) GTEST_SKIP() << peer.package << " is not installed";
  int timed = 0;
  for (const char* words :
       {"--dir=FWD_D,FWD_B,BWD_D,BWD_W,BWD_WB --stag=abx,axb --dtag=abx,axb "
        "g2mb3_ic4oc6_ih9kh3sh2ph1 "
        "mb2_ic5oc3_ih6kh1ph0 mb1_ic4ih1_oc3oh1_kh1_ph0 ic3oc4_iw9kw3dw1pw2 "
        "ic2oc3_id4ih5iw6kd2kh3kw2",
        "--deconv --dir=FWD_D,FWD_B,BWD_D,BWD_W,BWD_WB --stag=abx,axb --dtag=abx,axb "
        "g2mb2_ic4ih5oc6oh10kh4sh2ph1 mb3_ic3iw6oc2ow11kw3sw2pw1"}) {
    for (const Case& item : Cases(words)) {
      for (int threads : {1, 2}) {
        const BenchRow row = BenchCase(item, Settings(peer, threads));
        ASSERT_EQ(row.peers.size(), 1u);
        EXPECT_TRUE(row.peers[0].timing) << item.text << ": " << row.peers[0].note;
        timed += row.peers[0].timing ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(timed, 2 * 7 * 5 * 4);
}

INSTANTIATE_TEST_SUITE_P(All, BenchPeerTest, testing::Values("onednn", "blas"),
                         [](const auto& peer) { return peer.param; });

// Writes what it is told, or has nothing to offer.
class WrongPeer : public bench::Peer {
 public:
  explicit WrongPeer(void* out) : out_(static_cast<float*>(out)) {}
  void Run() override { *out_ = 12345; }

 private:
  float* out_;
};

TEST(BenchCase, SaysThatAPeerIsWrongAndDoesNotTimeIt) {
  const bench::PeerInfo wrong{
      "wrong", "none", [](const bench::PeerRequest& request, std::string*) {
        return std::unique_ptr<bench::Peer>(new WrongPeer(request.operands.out));
      }};
  const bench::PeerInfo none{"none", "none", [](const bench::PeerRequest&, std::string* why) {
                               *why = "not today";
                               return std::unique_ptr<bench::Peer>();
                             }};
  Result<std::vector<Case>> cases = ParseCases({"--dir=FWD_D", "ic4oc4_ih8kh3"});
  ASSERT_TRUE(cases.ok());
  BenchSettings settings;
  settings.options.threads = 1;
  settings.repetitions = 1;
  settings.peers = {wrong, none};
  const BenchRow row = BenchCase((*cases)[0], settings);
  ASSERT_EQ(row.peers.size(), 2u);
  EXPECT_TRUE(row.peers[0].wrong);
  EXPECT_FALSE(row.peers[0].timing);
  EXPECT_NE(row.peers[0].note.find("is 12345, convgrad says "), std::string::npos);
  EXPECT_FALSE(row.peers[1].wrong);
  EXPECT_FALSE(row.peers[1].timing);
  EXPECT_EQ(row.peers[1].note, "not today");
  EXPECT_EQ(row.timing.repetitions, 1);
}

TEST(BenchCase, SummarizesByMedianAndPercentiles) {
  const Timing timing = Summarize({5, 1, 3, 2, 4, 6, 8, 7, 9, 11, 10});
  EXPECT_DOUBLE_EQ(timing.seconds, 6);
  EXPECT_DOUBLE_EQ(timing.spread, (10.0 - 2.0) / 6);
  EXPECT_EQ(timing.repetitions, 11);
  EXPECT_DOUBLE_EQ(Summarize({2, 4}).seconds, 3);
  EXPECT_EQ(Summarize({}).repetitions, 0);
}

}  // namespace
}  // namespace convgrad::tools
