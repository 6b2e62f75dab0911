// The convgrad command: options to requests. What a subcommand does is in <name>_command.cc.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <new>

#include "convgrad/version.h"
#include "core/text.h"
#include "onednn/one_line.h"
#include "spec/schema.h"
#include "tools/commands.h"
#include "tools/temporary_file.h"

namespace convgrad::tools {
namespace {

constexpr int kBadInput = 2;

constexpr const char* kAbout =
    R"(convgrad: the convolution family of a training step, exactly as specified.

Convolution, ConvTranspose and their gradients with respect to data and weights, on tensors in files;
checks against the specification's formulas; what runs and why.)";

constexpr const char* kMainExamples = R"(
Examples:
  convgrad run ConvolutionBackwardWeights src=x.npy diff_dst=dy.npy --strides 1,1 --pads_begin 1,1 \
    --pads_end 1,1 --dilations 1,1 --weights_shape 64,32,3,3 --weights_format OIX --data_format NCX \
    --out dw.npy
  convgrad verify --dir=BWD_W --dt=bf16 mb8_ic64oc64_ih56kh3ph1
  convgrad verify --batch=problems/smoke.txt
  convgrad explain --deconv --dir=BWD_D ic16ih28oc32kh4sh2ph1
  convgrad graph problems/graphs/training_step.json
  convgrad ops
  convgrad peak
  convgrad bench --threads=1,2 --batch=problems/layers.txt
  convgrad replay train.log

convgrad COMMAND --help tells more about a command.
Exit codes: 0 done; 1 a check failed; 2 bad input, or --kernel names one that cannot run a problem (one
line on standard error says what); 130 after Ctrl-C, 143 after SIGTERM, 141 when the reader of its output has gone.)";

constexpr const char* kRunExamples = R"(
Arguments are named as in the specification ('convgrad ops' lists them); lists have commas. Files are
.npy (f32, f16; s32, s64 for shapes) or .safetensors (F32, F16, BF16; I32, I64), the latter also as
file.safetensors:tensor. The output file appears only when the result is complete; in a .safetensors
file other tensors are kept, and a tensor without a name is called "tensor". It may be the file of an
input, which is replaced when everything has been read and computed. An output may also be
named as an argument: diff_weights=dw.npy, and diff_bias=db.npy for the gradient of the bias.
ConvolutionBackward and ConvTransposeBackward compute any of the gradients of the forward operation,
those of diff_src, diff_weights and diff_bias that have a file, from src, weights and diff_dst.

Examples:
  convgrad run Convolution src=x.npy weights=w.npy bias=b.npy --strides 2,2 --pads_begin 3,3 \
    --pads_end 3,3 --dilations 1,1 --data_format NCX --weights_format OIX --out y.npy
  convgrad run ConvTransposeBackwardWeights src=x.npy diff_dst=dy.npy --strides 2,2 \
    --pads_begin 1,1 --pads_end 1,1 --dilations 1,1 --weights_shape 32,64,3,3 \
    --weights_format IOX --data_format NCX --out dw.npy
  convgrad run ConvolutionBackwardWeights src=m.safetensors:x diff_dst=m.safetensors:dy \
    diff_bias=db.npy --strides 1 --pads_begin 0 --pads_end 0 --dilations 1 \
    --weights_shape 4,8,16 --dtype bf16 --out_dtype f32 --beta 1 --out grads.safetensors:dw
  convgrad run ConvolutionBackwardWeights src=x.npy diff_dst=dy.npy --strides 1 --pads_begin 0 \
    --pads_end 0 --dilations 1 --weights_shape 4,8,16 --per_sample --out dw_of_each_image.npy
  convgrad run ConvolutionBackward src=x.npy weights=w.npy diff_dst=dy.npy --strides 1 \
    --pads_begin 0 --pads_end 0 --dilations 1 diff_src=dx.npy diff_weights=dw.npy diff_bias=db.npy)";

constexpr const char* kVerifyExamples = R"(
Problems are given in benchdnn's grammar, or as one operation with extents. Each runs on integer data,
which must agree bit for bit, and on random reals, which must lie within a computed bound.

  --conv | --deconv      Convolution or ConvTranspose (default --conv)
  --dir=D                FWD_D FWD_B FWD_I BWD_D BWD_W BWD_WB (default FWD_B)
  --dt=T                 f32 bf16 f16 (default f32); bf16:f32:bf16 or f16:f32:f16 with BWD_W, BWD_WB
                         for an f32 gradient of weights
  --stag --wtag --dtag   layouts of src, weights, dst: any abx axb xba acdb ...
  --strides=S:W:D        strides of src, weights, dst instead, such as 1204224x1x7168x64::
  --mb=N                 batch instead of the problem's own
  --batch=FILE           problems from a file; a backslash joins a word and the next one, also of the
                         next line, unless that begins with --
  --match=REGEX          only problems that match
  --reset                back to the defaults, without --match
Commas separate alternatives: --dir=BWD_D,BWD_W --dt=f32,bf16. An option holds for the problems after it.

Examples:
  convgrad verify --dir=BWD_D,BWD_W --stag=abx,axb --dtag=abx g2mb2_ic8oc16_ih14kh3sh2ph1
  convgrad verify --deconv --dir=BWD_W --batch=problems/edge.txt
  convgrad verify --lenient --batch=benchdnn/inputs/conv/test_conv_ci
  convgrad verify --per_sample --dir=BWD_WB mb8_ic64oc64_ih56kh3ph1
  convgrad verify ConvTranspose src=1x2x5x5 weights=2x3x3x3 --strides=2,2 --pads_begin=1,1 \
    --pads_end=1,1 --dilations=1,1 --data_format=NCX --weights_format=IOX --dtype=f16)";

constexpr const char* kExplainExamples = R"(
Takes what verify takes, and the canonical problem line that it prints itself.

Examples:
  convgrad explain --dir=BWD_W mb8_ic64oc64_ih56kh3ph1
  convgrad explain Convolution src=8x56x56x64 weights=3x3x64x64 --strides 1,1 --pads_begin 1,1 \
    --pads_end 1,1 --dilations 1,1)";

constexpr const char* kGraphExamples = R"(
A graph is a JSON file that oneDNN dumps (any version from 0.6 to 3.14) or a person writes. Inputs are
filled with small integers, the operations that convgrad has run in the order of their edges, what one
writes is what the next reads, and each is checked against the oracle: bit for bit while f32 has all
sums, else within a computed bound. Operations of other kinds are skipped; what they would write is
filled. docs/serialized_graphs.md has the schema. Options of benchdnn's graph driver:

  --case=FILE            a graph; FILE alone is the same
  --batch=FILE           options and graphs from a file
  --in-shapes=ID:SHAPE[*TAG|*STRIDES]+...   of inputs and outputs: 0:2x64x56x56*acdb+1:64x64x3x3
  --op-attrs=ID:NAME:VALUE*NAME:VALUE+...   of operations: 0:strides:2x2*groups:4
  --dt=T or --dt=ID:T+...                   f32 bf16 f16 of all floating-point tensors, or by tensor
  --mb=N                                    batch instead of the graph's own
  --op-kind=ID:KIND+...  --tensor-property=ID:PROPERTY+...
  --reset                back to the graph as it is
  --dump[=FILE]          write the graph, as the options change it, and do not run it
Commas separate alternatives, an empty one is the graph as it is. An option holds for the graphs after
it. Those of benchdnn that change no result (--mode, --engine, -v1) are passed over.

Examples:
  convgrad graph problems/graphs/training_step.json
  convgrad graph --mb=1,4 --dt=f32,bf16 problems/graphs/conv_2d.json
  convgrad graph --in-shapes=0:2x3x9x9*acdb --op-attrs=0:strides:2x2 problems/graphs/conv_2d.json
  convgrad graph --batch=problems/graphs/harness
  convgrad graph --in-shapes=0:4x3x16x16 problems/graphs/unknown_shapes.json --dump=larger.json)";

constexpr const char* kOpsExamples = R"(
Examples:
  convgrad ops
  convgrad ops --json > operations.json
  convgrad ops --markdown)";

constexpr const char* kBenchExamples = R"(
Takes what verify takes. Each problem is run warm, in samples of at least a millisecond, and in turns
with its peers. A line of the table has

  ms, spread    the median of the samples, and (90th - 10th percentile) / median
  % peak        of what 'convgrad peak' measures for the type on so many threads, measured again in
                turns with the problem: clocks change
  x floor       time / the least that the peak and the speed of copying the tensors once allow
  onednn, blas  the peer's time / convgrad's: above 1 convgrad takes less. A dash: the library does
                not offer the operation on these tensors. A peer must first give convgrad's result.

and the closing lines geometric means and the worst problem for each type and number of threads.

--random N times problems of all operations, ranks, types and layouts that nobody chose: depthwise,
small groups, few channels, strides beyond the kernel, dilations, long kernels, uneven pads, tiny and
large images, 0.1 to 500 MFLOP. A seed has the same problems on every machine. --match=REGEX leaves
out others. It ends with the ten that take the most time over their floor, of those above 10 MFLOP
and of all: each with its line, which bench takes again, and with its time over the floor that the
f32 peak makes ("x f32's"), for types that the CPU multiplies faster.

Examples:
  convgrad bench --dir=BWD_D,BWD_W mb8_ic64oc64_ih56kh3ph1
  convgrad bench --threads=1,2 --peer onednn,blas --json=layers.json --batch=problems/layers.txt
  convgrad bench --seconds 0.2 --kernel contract --dt=bf16 --batch=problems/resnet50.txt
  convgrad bench --random 300 --seed 7 --threads=1 --match=depthwise)";

constexpr const char* kReplayExamples = R"(
LOG is what a program printed with ONEDNN_VERBOSE=1, of oneDNN 1.x to 3.x, also among other output; -
is standard input. Calls of one pass on tensors of the same types, layouts and extents are one line of
the table, which has

  calls, log ms  how often the log has them, and the time that it says they took together
  ms/call        that time / calls
  convgrad       the median of convgrad's time for one, as bench measures it
  ratio          the log's time / convgrad's: above 1 convgrad takes less
  saved ms       the difference, for all of the calls

Blocked layouts have no equal here: such a tensor is run in the plain layout of the same order, and
the line below says so. Post-ops are left out. Other primitives, and types that convgrad does not have,
are counted at the end. Compare on the machine of the log; it runs on as many threads as the log says,
or on all where it does not say or there are fewer.

Examples:
  ONEDNN_VERBOSE=1 python train.py > train.log && convgrad replay train.log
  convgrad replay --threads=1,2 --verify --json=replay.json train.log
  zcat train.log.gz | convgrad replay -)";

constexpr const char* kPeakExamples = R"(
Multiply-adds in registers, into f32 sums, by the CPU's own instruction for each type; and copying of
arrays four times as large as the largest cache. The best of many short stretches, in about a second.
verify and bench measure the same where they state a share of the peak.

Examples:
  convgrad peak
  convgrad peak --json > peak.json)";

std::string AttributeOptions() {
  std::string text = "\nAttributes:\n";
  std::vector<const AttributeSchema*> seen;
  for (const OperationSchema& schema : Operations()) {
    for (const AttributeSchema* attribute : schema.attributes) {
      // weights_format stands there twice: its values depend on the family.
      if (std::find(seen.begin(), seen.end(), attribute) != seen.end()) continue;
      seen.push_back(attribute);
      text += Join("  --", attribute->name, std::string(17 - attribute->name.size(), ' '),
                   NameOf(attribute->type), attribute->required ? "  required; " : "  ",
                   attribute->meaning);
      if (!attribute->values.empty()) text += Join(": ", JoinWords(attribute->values, ", "));
      if (!attribute->default_text.empty())
        text += Join(" (default ", attribute->default_text, ")");
      text += "\n";
    }
  }
  return text;
}

// CLI11 reads an empty value, such as an unset shell variable makes, as 0 or as the default; and
// what it says of a wrong number states no rule.
std::string IsText(const std::string& value) {
  return value.empty() ? "the value is empty, expected a text" : "";
}

template <class Number>
std::string IsNumber(const std::string& value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (!value.empty() && error == std::errc() && end == value.data() + value.size()) return "";
  return Join("the value is '", value, "', expected a ",
              std::is_integral_v<Number> ? Join("whole number of ", 8 * sizeof(Number), " bits")
                                         : std::string("number"));
}

void AddLimits(CLI::App* command, Options& options) {
  command
      ->add_option("--workspace", options.workspace_limit,
                   "most bytes of workspace; -1: no limit. Never changes the result")
      ->check(IsNumber<int64_t>);
  std::vector<std::string_view> names;
  for (const KernelInfo& kernel : Kernels()) names.push_back(kernel.name);
  command
      ->add_option("--kernel", options.kernel,
                   Join("a kernel by its name: ", JoinWords(names, ", ")))
      ->check(IsText);
}

void AddSampling(CLI::App* command, int& repetitions) {
  command
      ->add_option("--repetitions", repetitions,
                   "samples of each; 0: as many as fit into --seconds, at least 3 (default)")
      ->check(IsNumber<int>);
}

void AddPlanOptions(CLI::App* command, Options& options) {
  AddLimits(command, options);
  command->add_flag("--per_sample", options.per_sample,
                    "BackwardWeights: a gradient for each image, (N, weights...) and (N, OC)");
}

void AddLenient(CLI::App* command, bool& lenient) {
  command->add_flag("--lenient", lenient,
                    "ignore options that problem lines do not have, skip types, directions and "
                    "layouts that convgrad does not have, and say which");
}

void AddOptions(CLI::App* command, Options& options) {
  command
      ->add_option("--threads", options.threads,
                   "threads, at most 64; 0: all. Never changes the result")
      ->check(IsNumber<int>);
  AddPlanOptions(command, options);
}

// CLI11 does not know what follows the options.
class UsageFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    const std::string& name = app->get_name();
    if (name == "run") {
      return "Usage: convgrad run OPERATION name=FILE... --attribute VALUE... --out FILE\n";
    }
    if (name == "verify" || name == "explain") {
      return Join("Usage: convgrad ", name, " [OPTIONS] PROBLEM...\n");
    }
    if (name == "bench") {
      return "Usage: convgrad bench [OPTIONS] PROBLEM...\n"
             "       convgrad bench [OPTIONS] --random N [--seed S] [--match=REGEX]\n";
    }
    if (name == "replay") return "Usage: convgrad replay [OPTIONS] LOG\n";
    if (name == "graph") return "Usage: convgrad graph [OPTIONS] FILE.json...\n";
    if (name == "peak") return "Usage: convgrad peak [--json]\n";
    return name == "ops" ? "Usage: convgrad ops [--json | --markdown]\n"
                         : "Usage: convgrad COMMAND ...\n";
  }
};

// One line, whatever names and values it quotes.
int Report(const Status& status) {
  std::fprintf(stderr, "convgrad: %s\n", onednn::OneLine(status.message()).c_str());
  return kBadInput;
}

int Report(const Result<int>& result) { return result.ok() ? *result : Report(result.status()); }

struct Requests {
  RunRequest run;
  VerifyRequest verify;
  ExplainRequest explain;
  GraphRequest graph;
  BenchRequest bench;
  ReplayRequest replay;
  bool json = false;
  bool markdown = false;
};

void DescribeRun(CLI::App& app, RunRequest& request) {
  CLI::App* run = app.add_subcommand("run", "computes one operation on tensors in files");
  run->allow_extras();
  run->add_option("--out", request.out, "the output's file")->check(IsText);
  run->add_option(
         "--dtype", request.dtype,
         "f32, bf16 or f16: converts the inputs on reading, to nearest even. bf16 written to "
         ".npy is widened to f32")
      ->check(IsText);
  run->add_option(
         "--out_dtype", request.out_dtype,
         "type of the outputs; default: that of the inputs. f32 keeps the sums of a weight "
         "gradient of bf16 or f16, also with --beta")
      ->check(IsText);
  run->add_option("--beta", request.options.beta,
                  "out = beta * what the output file holds + result; the file must exist")
      ->check(IsNumber<float>);
  AddOptions(run, request.options);
  run->footer(AttributeOptions() + kRunExamples);
}

void DescribeBench(CLI::App& app, BenchRequest& request) {
  request.known_peers = bench::Peers();
  CLI::App* command = app.add_subcommand("bench", "times problems, also beside other libraries");
  command->allow_extras();
  command
      ->add_option("--threads", request.threads,
                   "a list such as 1,2, each at most 64; 0: all (default)")
      ->check(IsText);
  AddPlanOptions(command, request.options);
  AddLenient(command, request.lenient);
  command
      ->add_option("--peer", request.peers,
                   "onednn, blas: libraries to time in turns with convgrad; may be repeated")
      ->allow_extra_args(false)  // the words after it are problems
      ->check(IsText);
  command->add_option("--json", request.json, "a file for the results")->check(IsText);
  auto* random = command
                     ->add_option("--random", request.random,
                                  "so many random problems instead, and the slowest at the end")
                     ->check(IsNumber<int>);
  command->add_option("--seed", request.seed, "of the random problems (default 1)")
      ->check(IsNumber<uint64_t>)
      ->needs(random);
  AddSampling(command, request.repetitions);
  command
      ->add_option("--seconds", request.seconds,
                   "for each problem and number of threads (default 1; with --random 0.05)")
      ->check(IsNumber<double>);
  command->footer(kBenchExamples);
}

void DescribeReplay(CLI::App& app, ReplayRequest& request) {
  CLI::App* command =
      app.add_subcommand("replay", "times the convolutions of a oneDNN verbose log on convgrad");
  command->add_option("LOG", request.log, "a file, or - for standard input")
      ->required()
      ->check(IsText);
  command
      ->add_option("--threads", request.threads,
                   "a list such as 1,2, each at most 64; 0: all (default: as many as the log says)")
      ->check(IsText);
  AddLimits(command, request.options);
  command->add_flag("--verify", request.verify, "checks each problem, as verify does");
  command->add_option("--seed", request.seed, "of the data of --verify (default 1)")
      ->check(IsNumber<uint64_t>);
  command->add_option("--json", request.json, "a file for the results")->check(IsText);
  AddSampling(command, request.repetitions);
  command
      ->add_option("--seconds", request.seconds,
                   "for each problem and number of threads (default 0.2)")
      ->check(IsNumber<double>);
  command->footer(kReplayExamples);
}

void DescribeGraph(CLI::App& app, GraphRequest& request) {
  CLI::App* graph = app.add_subcommand("graph", "runs and checks serialized graphs of oneDNN");
  graph->allow_extras();
  graph->add_option("--seed", request.seed, "of the data (default 1)")->check(IsNumber<uint64_t>);
  graph->add_flag("--reals", request.reals,
                  "fill with reals in [-1, 1], and compare with the bound");
  graph
      ->add_option("--threads", request.options.threads,
                   "threads, at most 64; 0: all. Never changes the result")
      ->check(IsNumber<int>);
  AddLimits(graph, request.options);
  graph->footer(kGraphExamples);
}

void Describe(CLI::App& app, Requests& requests) {
  app.formatter(std::make_shared<UsageFormatter>());
  app.require_subcommand(1);
  app.footer(kMainExamples);
  app.set_version_flag("--version", Join("convgrad ", CONVGRAD_VERSION_STRING));
  DescribeRun(app, requests.run);

  CLI::App* verify = app.add_subcommand("verify", "checks problems against the specification");
  verify->allow_extras();
  verify->add_option("--seed", requests.verify.seed, "of the data (default 1)")
      ->check(IsNumber<uint64_t>);
  AddOptions(verify, requests.verify.options);
  AddLenient(verify, requests.verify.lenient);
  verify->footer(kVerifyExamples);

  CLI::App* explain = app.add_subcommand("explain", "says which kernel runs a problem, and why");
  explain->allow_extras();
  AddOptions(explain, requests.explain.options);
  AddLenient(explain, requests.explain.lenient);
  explain->footer(kExplainExamples);

  DescribeGraph(app, requests.graph);
  DescribeBench(app, requests.bench);
  DescribeReplay(app, requests.replay);

  CLI::App* ops = app.add_subcommand("ops", "lists the operations, their arguments and attributes");
  ops->footer(kOpsExamples);
  auto* json = ops->add_flag("--json", requests.json, "as JSON");
  ops->add_flag("--markdown", requests.markdown, "as the tables of docs/spec.md")->excludes(json);

  CLI::App* peak = app.add_subcommand("peak", "measures the limits of this machine");
  peak->add_flag("--json", requests.json, "as JSON");
  peak->footer(kPeakExamples);
}

// CLI11 only says that a subcommand is required.
Status CheckFirstWord(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  for (const std::string& known : names) {
    if (word == known) return {};
  }
  if (word == "-h" || word == "--help" || word == "--version") return {};
  return {StatusCode::kInvalidArgument,
          Join(word.empty() ? std::string("no command is given") : Join("'", word, "' is unknown"),
               ", expected ", JoinWords(names, ", "), ", --help or --version")};
}

// CLI11 gives the next word to an option without its value, as an unset shell variable makes one.
// Problem lines and graphs have options of their own, for which nothing is the default.
Status CheckValues(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = nullptr;
  for (const CLI::App* known : app.get_subcommands({})) {
    if (argc > 1 && known->get_name() == argv[1]) command = known;
  }
  for (int i = 2; command != nullptr && i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--") || word.find('=') + 1 != word.size()) continue;
    const std::string name(word.substr(0, word.size() - 1));
    const CLI::Option* option = command->get_option_no_throw(name);
    if (option == nullptr) continue;
    const bool flag = option->get_items_expected_max() == 0;
    return {StatusCode::kInvalidArgument,
            flag
                ? Join("'", word, "' has a value, and ", name, " takes none")
                : Join("'", word, "' has no value, expected ", name, "=VALUE or ", name, " VALUE")};
  }
  return {};
}

int Main(int argc, char** argv) {
  RemoveTemporariesOnSignals();
  CLI::App app{kAbout, "convgrad"};
  Requests requests;
  Describe(app, requests);
  if (Status status = CheckFirstWord(app, argc > 1 ? argv[1] : ""); !status.ok()) {
    return Report(status);
  }
  if (Status status = CheckValues(app, argc, argv); !status.ok()) return Report(status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return Report(Status(StatusCode::kInvalidArgument, error.what()));
  }
  const CLI::App* command = app.get_subcommands().front();
  const std::string name = command->get_name();
  if (name == "ops") {
    return ListOperations(requests.json       ? OpsFormat::kJson
                          : requests.markdown ? OpsFormat::kMarkdown
                                              : OpsFormat::kText);
  }
  if (name == "peak") return PrintPeaks(requests.json);
  if (name == "replay") return Report(ReplayLog(requests.replay));
  requests.run.words = requests.verify.words = requests.explain.words = requests.graph.words =
      requests.bench.words = command->remaining();
  if (name == "run") return Report(RunOperation(requests.run));
  if (name == "verify") return Report(VerifyProblems(requests.verify));
  if (name == "graph") return Report(RunGraphs(requests.graph));
  if (name == "bench") return Report(BenchProblems(requests.bench));
  return Report(ExplainProblems(requests.explain));
}

}  // namespace
}  // namespace convgrad::tools

int main(int argc, char** argv) {
  try {
    const int code = convgrad::tools::Main(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fputs("convgrad: standard output could not be written\n", stderr);
    return 2;
  } catch (const std::bad_alloc&) {
    std::fputs("convgrad: out of memory: the tensors do not fit in this machine\n", stderr);
    return 2;
  }
}
