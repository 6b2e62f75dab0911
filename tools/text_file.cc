#include "tools/text_file.h"

namespace convgrad::tools {

Result<Target> PrepareTextFile(const std::string& path) {
  Result<Target> target = FindTarget(path);
  if (!target.ok()) return target;
  TemporaryFile trial(*target);
  if (Status status = trial.Create(); !status.ok()) return status;
  return target;
}

Status WriteTextFile(const Target& target, const std::string& text) {
  TemporaryFile file(target);
  if (Status status = file.Create(); !status.ok()) return status;
  if (Status status = file.Append(text.data(), static_cast<int64_t>(text.size())); !status.ok()) {
    return status;
  }
  return file.Commit();
}

}  // namespace convgrad::tools
