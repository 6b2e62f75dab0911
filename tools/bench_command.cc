#include <algorithm>
#include <cstdio>

#include "core/text.h"
#include "tools/bench_report.h"
#include "tools/commands.h"
#include "tools/problem_words.h"
#include "tools/progress.h"
#include "tools/random_line.h"
#include "tools/refusals.h"
#include "tools/text_file.h"
#include "tools/thread_list.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Result<std::vector<bench::PeerInfo>> FindPeers(const BenchRequest& request) {
  std::vector<bench::PeerInfo> peers;
  std::vector<std::string_view> names;
  for (const bench::PeerInfo& known : request.known_peers) names.push_back(known.name);
  for (const std::string& list : request.peers) {
    for (const std::string& name : SplitAtCommas(list)) {
      const auto known = std::find(names.begin(), names.end(), name);
      if (known == names.end()) {
        return Invalid(Join("peer '", name, "' is unknown, expected ", JoinWords(names, " or ")));
      }
      const bench::PeerInfo& peer = request.known_peers[static_cast<size_t>(known - names.begin())];
      if (peer.make == nullptr) {
        return Invalid(
            Join("peer '", name, "' is not in this build: install ", peer.package, " and rebuild"));
      }
      const auto same = [&](const bench::PeerInfo& other) { return other.name == name; };
      if (std::none_of(peers.begin(), peers.end(), same)) peers.push_back(peer);
    }
  }
  return peers;
}

// Those of the words, or random ones of which --match may leave some out.
Result<std::vector<Case>> MakeCases(const BenchRequest& request, PassedOver* passed_over) {
  if (!request.random) {
    return ParseCases(request.words, request.options.per_sample,
                      request.lenient ? passed_over : nullptr);
  }
  constexpr int kMost = 100000;
  if (*request.random < 1 || *request.random > kMost) {
    return Invalid(Join("--random is ", *request.random, ", expected 1 to ", kMost, " problems"));
  }
  std::vector<std::string> words = request.words;
  for (const std::string& word : words) {
    if (!word.starts_with("--match=")) {
      return Invalid(Join("--random makes its own problems: beside it only --match=REGEX may be ",
                          "given, not '", word, "'"));
    }
  }
  for (const std::string& line : RandomLines(request.seed, *request.random)) {
    for (std::string_view word : SplitWords(line)) words.emplace_back(word);
  }
  return ParseCases(words, request.options.per_sample);
}

}  // namespace

Result<int> BenchProblems(const BenchRequest& request) {
  PassedOver passed_over;
  Result<std::vector<Case>> cases = MakeCases(request, &passed_over);
  if (!cases.ok()) return cases.status();
  if (Status status = CheckCases(*cases, request.options); !status.ok()) return status;
  Result<std::vector<int>> threads = ParseThreads(request.threads);
  if (!threads.ok()) return threads.status();
  Result<std::vector<bench::PeerInfo>> peers = FindPeers(request);
  if (!peers.ok()) return peers.status();
  const double seconds = request.seconds.value_or(request.random ? 0.05 : 1);
  if (request.repetitions < 0 || !(seconds > 0)) {
    return Invalid("--repetitions must be at least 0 and --seconds more than 0");
  }
  Result<Target> target = request.json.empty() ? Target() : PrepareTextFile(request.json);
  if (!target.ok()) return target.status();

  std::fputs(passed_over.ToText().c_str(), stdout);
  Progress progress("bench: measures the machine's limits");
  Limits limits;
  const std::vector<DataType> types = TypesOf(*cases);
  for (int count : cases->empty() ? std::vector<int>() : *threads) {
    const std::string line = DescribePeaks(types, count, limits);
    const CopyRate& copy = limits.CopyRateOf(count);
    progress.Clear();
    std::printf("%s, copy %.1f GB/s\n", line.c_str(), copy.bytes * 1e-9);
  }
  std::vector<std::string> names;
  for (const bench::PeerInfo& peer : *peers) names.emplace_back(peer.name);
  if (!cases->empty()) std::fputs(TableHead(names).c_str(), stdout);
  std::fflush(stdout);

  std::vector<BenchRow> rows;
  for (const Case& item : *cases) {
    for (int count : *threads) {
      progress.Set(Join("bench ", rows.size() + 1, " of ", cases->size() * threads->size(), ": ",
                        item.text));
      BenchSettings settings{request.options, request.repetitions, seconds, *peers};
      settings.options.threads = count;
      rows.push_back(BenchCase(item, settings));
      progress.Clear();
      std::fputs(TableLine(rows.back(), limits).c_str(), stdout);
      std::fflush(stdout);
    }
  }
  if (rows.empty()) std::printf("nothing ran\n");
  if (!rows.empty()) std::printf("\n%s", Summary(rows).c_str());
  if (request.lenient) {
    const int64_t skipped = passed_over.problems.total();
    std::printf("%s %s skipped\n", Counted(skipped, "problem").c_str(),
                skipped == 1 ? "was" : "were");
  }
  if (request.random) {
    std::printf("\n--random %d --seed %llu\n%s", *request.random,
                static_cast<unsigned long long>(request.seed), Slowest(rows, limits).c_str());
  }
  if (!request.json.empty()) {
    if (Status status = WriteTextFile(*target, ToJson(rows, limits)); !status.ok()) return status;
  }
  const auto wrong = [](const BenchRow& row) {
    return std::any_of(row.peers.begin(), row.peers.end(),
                       [](const PeerTiming& peer) { return peer.wrong; });
  };
  const auto refused = std::count_if(rows.begin(), rows.end(),
                                     [](const BenchRow& row) { return !row.refusal.empty(); });
  return ExitCode(std::any_of(rows.begin(), rows.end(), wrong) ? 1 : 0, request.options.kernel,
                  refused, static_cast<int64_t>(rows.size()), "timing");
}

}  // namespace convgrad::tools
