// The options of benchdnn's graph driver that change a graph: state that holds for the graphs after
// them, each with one or more alternatives separated by commas. Reads options and lists the
// choices; knows no files.
#ifndef CONVGRAD_ONEDNN_GRAPH_OPTIONS_H_
#define CONVGRAD_ONEDNN_GRAPH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "onednn/graph_overrides.h"

namespace convgrad::onednn {

// One combination of alternatives, and the options that make it again.
struct GraphChoice {
  GraphOverrides overrides;
  std::string text;  // "--in-shapes=0:2x8x4x4 --mb=3", empty: the graph as it is
  // Not empty: an option that convgrad cannot read is part of it, where that is and what is wrong.
  std::string refusal{};
};

class GraphOptions {
 public:
  // --in-shapes, --op-attrs, --op-kind, --tensor-property, --dt and --mb with a value; --reset; and
  // what benchdnn has beside them (--mode, --engine, -v1, --expected-n-partitions...), which
  // changes no result and is passed over.
  static bool IsOption(std::string_view token);

  // `token` is an option, else an error. On an error nothing has changed.
  Status Set(std::string_view token);

  // The same for a token of a file at `origin`, FILE:LINE: what cannot be read stays, as refused
  // alternatives, until the option is set again. An option that is unknown stays until --reset.
  void SetOrRefuse(std::string_view token, const std::string& origin);

  // How many choices there are; saturates far above any sensible number.
  int64_t NumChoices() const;
  // Every combination, the last option of the list above changing first.
  std::vector<GraphChoice> Choices() const;

 private:
  Status SetAlternatives(std::string_view token, const std::string* origin);

  // The alternatives of each option, in the order of kKeys in the .cc file.
  std::vector<std::vector<GraphChoice>> alternatives_;
  std::string unknown_;  // a refusal, of the first option that is none
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_OPTIONS_H_
