// convgrad graph: serialized graphs from files, changed by options, run and checked one operation
// at a time, or written back.
#include <cstdio>
#include <fstream>

#include "core/text.h"
#include "onednn/graph_harness.h"
#include "onednn/graph_overrides.h"
#include "onednn/json_tree.h"
#include "onednn/one_line.h"
#include "onednn/serialized_graph.h"
#include "onednn/text_start.h"
#include "tools/commands.h"
#include "tools/graph_run.h"
#include "tools/problem_words.h"
#include "tools/progress.h"
#include "tools/refusals.h"
#include "tools/temporary_file.h"
#include "tools/text_file.h"

namespace convgrad::tools {
namespace {

using onednn::GraphCase;
using onednn::GraphOp;
using onednn::SerializedGraph;

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Status WithPrefix(const std::string& prefix, const Status& status) {
  return {status.code(), Join(prefix, ": ", status.message())};
}

// One byte more than a graph may have shows that it has too many.
Result<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char part[1 << 16];
  while (text.size() <= onednn::kMostJsonBytes && file.read(part, sizeof part).gcount() > 0) {
    text.append(part, static_cast<size_t>(file.gcount()));
  }
  if (text.size() <= onednn::kMostJsonBytes && !file.eof()) {
    return Invalid(Join(path, " cannot be read"));
  }
  return text;
}

// Without the files that it came from, what makes the case again.
std::string Replay(const GraphCase& item) {
  return Join(item.choice.text, item.choice.text.empty() ? "" : " ", item.path);
}

Result<SerializedGraph> Load(const GraphCase& item) {
  if (!item.missing.empty()) return Invalid(item.missing);
  Result<std::string> text = ReadText(item.path);
  if (!text.ok()) return text.status();
  if (const std::string encoding = onednn::EncodingOf(*text, item.path); !encoding.empty()) {
    return Invalid(Join(item.path, ": a graph must be JSON text: ", encoding));
  }
  Result<SerializedGraph> graph = onednn::ReadSerializedGraph(*text);
  if (!graph.ok()) return WithPrefix(item.path, graph.status());
  return graph;
}

std::string NameOf(const GraphOp& op) {
  return Join("operation ", op.id, " ", onednn::QuotedStart(op.name), " ", op.kind);
}

class GraphReporter {
 public:
  explicit GraphReporter(const GraphRequest& request) : request_(request) {}

  void Open(const GraphCase& item, const SerializedGraph& graph) {
    std::printf("graph %s", onednn::OneLine(item.path).c_str());
    if (!item.choice.text.empty()) std::printf(" %s", onednn::OneLine(item.choice.text).c_str());
    if (!graph.version.empty())
      std::printf(", version %s", onednn::OneLine(graph.version.substr(0, 40)).c_str());
    std::printf(", %zu operation%s\n", graph.ops.size(), graph.ops.size() == 1 ? "" : "s");
    replay_ = Replay(item);
  }

  void Print(const OpReport& report) {
    const std::string name = onednn::OneLine(NameOf(*report.op));
    if (report.verdict == Verdict::kSkipped) {
      Skip(Join(name, ": ", report.reason));
      return;
    }
    if (report.verdict == Verdict::kRefused) {
      ++refused_;
      std::printf("%s\n", onednn::OneLine(RefusalText(report.reason, name)).c_str());
      return;
    }
    if (report.verdict == Verdict::kPassed) {
      ++passed_;
      PrintPassed(name, report);
    } else {
      ++failed_;
      std::printf("FAIL %s %s: %s\n     replay: convgrad graph %s%s\n", name.c_str(),
                  report.shapes.c_str(), onednn::OneLine(report.reason).c_str(), Flags().c_str(),
                  onednn::OneLine(replay_).c_str());
    }
    for (const std::string& note : report.notes)
      std::printf("     %s\n", onednn::OneLine(note).c_str());
    std::fflush(stdout);
  }

  void Skip(const std::string& sentence) {
    ++skipped_;
    std::printf("SKIP %s\n", onednn::OneLine(sentence).c_str());
  }

  // A graph of a harness that cannot be read: the others go on.
  void FailGraph(const std::string& sentence) {
    ++failed_;
    std::printf("FAIL %s\n", onednn::OneLine(sentence).c_str());
    std::fflush(stdout);
  }

  Result<int> Close() const {
    std::printf("%s%d passed, %d failed, ", passed_ + failed_ == 0 ? "nothing ran: " : "", passed_,
                failed_);
    if (refused_ > 0) std::printf("%d refused, ", refused_);
    std::printf("%d skipped\n", skipped_);
    return ExitCode(failed_ == 0 ? 0 : 1, request_.options.kernel, refused_, passed_ + refused_,
                    "operation");
  }

 private:
  static void PrintPassed(const std::string& name, const OpReport& report) {
    const CheckReport& check = report.check;
    char agreement[128] = "same bits";
    if (!check.exact) {
      std::snprintf(agreement, sizeof agreement, "error %.1f%% of bound", 100 * check.worst);
    }
    if (check.sampled) {
      std::snprintf(agreement, sizeof agreement, "error %.1f%% of bound at %lld of %lld elements",
                    100 * check.worst, static_cast<long long>(check.checked_elements),
                    static_cast<long long>(check.elements));
    }
    std::printf("PASS %10.3f ms %8.2f GFLOP/s  %-8s %s  %s %s\n", check.seconds * 1e3,
                check.seconds > 0 ? check.flops / check.seconds * 1e-9 : 0, check.kernel.c_str(),
                agreement, name.c_str(), report.shapes.c_str());
  }

  std::string Flags() const {
    std::string flags;
    if (request_.seed != 1) flags += Join("--seed ", request_.seed, " ");
    if (request_.options.threads != 0) flags += Join("--threads ", request_.options.threads, " ");
    if (request_.options.workspace_limit >= 0) {
      flags += Join("--workspace ", request_.options.workspace_limit, " ");
    }
    if (!request_.options.kernel.empty()) flags += Join("--kernel ", request_.options.kernel, " ");
    if (request_.reals) flags += "--reals ";
    return flags;
  }

  const GraphRequest& request_;
  std::string replay_;
  int passed_ = 0, failed_ = 0, skipped_ = 0, refused_ = 0;
};

// The words, without --dump and --dump=FILE.
struct ParsedWords {
  std::vector<GraphCase> cases;
  bool dump = false;
  std::string dump_file;  // empty: standard output
};

Result<ParsedWords> Parse(const std::vector<std::string>& words) {
  constexpr std::string_view kDump = "--dump=";
  ParsedWords parsed;
  onednn::GraphHarness harness;
  std::string unused;  // the last option, if no graph follows it
  for (const std::string& word : words) {
    if (word == "--dump" || word.starts_with(kDump)) {
      parsed.dump = true;
      parsed.dump_file = word == "--dump" ? "" : word.substr(kDump.size());
      if (parsed.dump_file == "-" || parsed.dump_file == "/dev/stdout") parsed.dump_file.clear();
      if (word == kDump) return Invalid("--dump= must have a file, as in --dump=FILE");
      continue;
    }
    const size_t before = harness.cases().size();
    if (Status status = harness.Accept(word); !status.ok()) return status;
    unused = harness.cases().size() > before || word.starts_with("--batch=") ? "" : word;
  }
  parsed.cases = harness.cases();
  if (parsed.cases.empty()) {
    return Invalid("no graph is given, expected a file such as graph.json, or --batch=FILE");
  }
  if (!unused.empty()) {
    return Invalid(
        Join("option '", unused, "' comes after the last graph, it holds for the graphs after it"));
  }
  if (!parsed.dump_file.empty() && parsed.cases.size() > 1) {
    return Invalid(Join("--dump=FILE writes one graph, and there are ", parsed.cases.size()));
  }
  return parsed;
}

Result<int> Dump(const ParsedWords& parsed) {
  std::string text;
  for (const GraphCase& item : parsed.cases) {
    if (!item.choice.refusal.empty()) return Invalid(item.choice.refusal);
    Result<SerializedGraph> graph = Load(item);
    if (!graph.ok()) return graph.status();
    Result<SerializedGraph> rewritten = onednn::Rewrite(*graph, item.choice.overrides);
    if (!rewritten.ok()) return WithPrefix(item.path, rewritten.status());
    text += onednn::WriteSerializedGraph(*rewritten);
  }
  if (parsed.dump_file.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  const Result<Target> target = FindTarget(parsed.dump_file);
  if (!target.ok()) return target.status();
  if (Status s = WriteTextFile(*target, text); !s.ok()) return s;
  return 0;
}

}  // namespace

Result<int> RunGraphs(const GraphRequest& request) {
  const Result<ParsedWords> parsed = Parse(request.words);
  if (!parsed.ok()) return parsed.status();
  if (parsed->dump) return Dump(*parsed);
  if (Status status = CheckCases({}, request.options); !status.ok()) return status;
  GraphReporter reporter(request);
  Progress progress("graph");
  GraphRunRequest run;
  run.options = request.options;
  run.seed = request.seed;
  run.reals = request.reals;
  run.tamper = request.tamper;
  run.report = [&](const OpReport& report) {
    progress.Clear();
    reporter.Print(report);
  };
  for (const GraphCase& item : parsed->cases) {
    progress.Set(Join("graph ", Replay(item)));
    if (!item.choice.refusal.empty()) {
      progress.Clear();
      reporter.Skip(Join(Replay(item), ": ", item.choice.refusal));
      continue;
    }
    const Result<SerializedGraph> graph = Load(item);
    // Of a harness file, what cannot be read has failed, and what cannot run is left out and
    // counted; of the command's own words, both are errors.
    const bool from_harness = !item.origin.empty();
    if (!graph.ok() && !from_harness) return graph.status();
    if (!graph.ok()) {
      progress.Clear();
      reporter.FailGraph(graph.status().message());
      continue;
    }
    const Result<SerializedGraph> rewritten = onednn::Rewrite(*graph, item.choice.overrides);
    if (!rewritten.ok() && !from_harness) return WithPrefix(item.path, rewritten.status());
    if (!rewritten.ok()) {
      progress.Clear();
      reporter.Skip(Join(Replay(item), ": ", rewritten.status().message()));
      continue;
    }
    progress.Clear();
    run.skip_illegal = from_harness;
    run.opened = [&] { reporter.Open(item, *rewritten); };
    const auto tensors = RunGraph(rewritten->ops, run);
    if (tensors.ok()) continue;
    const Status status = WithPrefix(item.path, tensors.status());
    if (!from_harness) return status;
    progress.Clear();
    reporter.FailGraph(status.message());
  }
  return reporter.Close();
}

}  // namespace convgrad::tools
