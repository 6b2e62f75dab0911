// Lists in options, and the list of numbers of threads that bench and replay run with.
#ifndef CONVGRAD_TOOLS_THREAD_LIST_H_
#define CONVGRAD_TOOLS_THREAD_LIST_H_

#include <string>
#include <vector>

#include "convgrad/status.h"

namespace convgrad::tools {

// "a,b" is {"a", "b"}; an empty text is one empty part.
std::vector<std::string> SplitAtCommas(const std::string& list);

// 1,2,0 with two cores is {1, 2}: 0 stands for all of them, and none occurs twice.
Result<std::vector<int>> ParseThreads(const std::string& list);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_THREAD_LIST_H_
