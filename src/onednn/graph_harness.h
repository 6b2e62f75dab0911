// What follows `convgrad graph`, and the files of benchdnn's graph driver: options, graphs by name,
// and more files. An option holds for the graphs after it; a graph makes one case for each
// combination of alternatives. Opens harness files; the graphs are read by who runs them.
#ifndef CONVGRAD_ONEDNN_GRAPH_HARNESS_H_
#define CONVGRAD_ONEDNN_GRAPH_HARNESS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "onednn/graph_options.h"

namespace convgrad::onednn {

struct GraphCase {
  std::string path;  // of the graph: a file that is there, unless `missing` says otherwise
  GraphChoice choice;
  std::string origin;     // FILE:LINE of the harness that has it, empty: none
  std::string missing{};  // of a harness: why there is no such graph, a sentence
};

// - --case=FILE and FILE alone name a graph, --batch=FILE a harness.
// - A name that is not absolute is looked for beside the file that has it and those that include
//   that, in the current directory, and in the folders above the files: benchdnn's name graphs from
//   a folder above their own.
// - A graph of a harness that is not there is a case with its reason; elsewhere it is an error.
// - In a file, an option that cannot be read refuses the graphs after it (GraphChoice::refusal)
//   until it is set again or --reset; elsewhere it is an error.
// - option_tokens.h has the words of a file.
class GraphHarness {
 public:
  Status Accept(std::string_view word);

  const std::vector<GraphCase>& cases() const { return cases_; }

 private:
  struct Source {
    std::string path;
    int64_t line = 0;
  };

  Status AcceptWord(std::string_view word);
  Status AcceptGraph(std::string_view name);
  Status AcceptFile(std::string_view name);
  Status AcceptText(std::string_view text);
  Result<std::string> Find(std::string_view option, std::string_view name) const;
  std::string Origin() const;  // FILE:LINE of the innermost file, empty: none
  Status Located(Status status) const;

  GraphOptions options_;
  std::vector<GraphCase> cases_;
  std::vector<Source> sources_;  // the innermost last
  int files_ = 0;                // that were read
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_HARNESS_H_
