// What the tests of the command share: a child process with its output and its end, tensor files
// written and read byte by byte, and a folder of its own for each test. Knows the file formats and
// the words of a command line, but none of the library's or the command's code.
#ifndef CONVGRAD_TESTS_COMMAND_LINE_H_
#define CONVGRAD_TESTS_COMMAND_LINE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/types.h"
#include "tools/formula.h"

namespace convgrad::tools {

using Words = std::vector<std::string>;

// Separated by blanks; '' is an empty word.
inline Words Split(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word == "''" ? "" : word);
  return words;
}

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// ---- Child processes ----

// Anonymous files and not pipes: a child that prints much never waits for its reader.
class CapturedStream {
 public:
  CapturedStream() : file_(std::tmpfile()) {}
  ~CapturedStream() {
    if (file_ != nullptr) std::fclose(file_);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  int descriptor() const { return fileno(file_); }
  std::string Text() const {
    std::string text;
    char part[4096];
    for (ssize_t got;
         (got = pread(descriptor(), part, sizeof part, static_cast<off_t>(text.size()))) > 0;) {
      text.append(part, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  std::FILE* file_;
};

inline pid_t StartChild(const Words& command, const std::string& directory, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  // A test runner in the background ignores SIGINT, and the child would inherit that.
  signal(SIGINT, SIG_DFL);
  alarm(120);  // survives exec: a command that hangs ends its test
  const int nothing = open("/dev/null", O_RDONLY);
  if (chdir(directory.c_str()) == 0 && dup2(nothing, 0) == 0 && dup2(out, 1) == 1 &&
      dup2(err, 2) == 2) {
    execv(argv[0], argv.data());
  }
  _exit(127);
}

struct Outcome {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out, err;
};

inline Outcome WaitForChild(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

inline Outcome Launch(const Words& command, const std::string& directory) {
  const CapturedStream out, err;
  Outcome outcome =
      WaitForChild(StartChild(command, directory, out.descriptor(), err.descriptor()));
  outcome.out = out.Text();
  outcome.err = err.Text();
  return outcome;
}

// ---- Tensors and their files ----

struct Tensor {
  DataType type = DataType::kF32;
  Dims extents;
  std::vector<double> values;  // last axis fastest

  bool operator==(const Tensor&) const = default;
};

inline void PrintTo(const Tensor& tensor, std::ostream* stream) {
  *stream << NameOf(tensor.type) << " " << testing::PrintToString(tensor.extents) << " "
          << testing::PrintToString(tensor.values);
}

inline int64_t NumElements(const Dims& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

inline Dims IndexOf(int64_t element, const Dims& extents) {
  Dims index(extents.size());
  for (size_t a = extents.size(); a-- > 0; element /= extents[a]) index[a] = element % extents[a];
  return index;
}

// From -2 to 2: sums of a few dozen products are exact in bf16, too, which has 8 bits.
inline Tensor Integers(const Dims& extents, uint32_t seed, DataType type = DataType::kF32) {
  Tensor tensor{type, extents, {}};
  for (int64_t e = 0; e < NumElements(extents); ++e) {
    seed = seed * 1664525u + 1013904223u;
    tensor.values.push_back(static_cast<int>((seed >> 24) % 5) - 2);
  }
  return tensor;
}

inline std::string LittleEndian(uint64_t value, int64_t bytes) {
  std::string text;
  for (int64_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// Zero and normal numbers that f16 has.
inline uint16_t F16Bits(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  const int bits = ((exponent + 14) << 10) + static_cast<int>(fraction * 2048) - 1024;
  return static_cast<uint16_t>(bits | (value < 0 ? 0x8000 : 0));
}

inline std::string ElementBytes(DataType type, double value) {
  uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(value));  // s32, s64
  if (type == DataType::kF32) bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == DataType::kBF16) bits = std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
  if (type == DataType::kF16) bits = F16Bits(value);
  return LittleEndian(bits, SizeOf(type));
}

inline double ElementAt(DataType type, const std::string& bytes, size_t element) {
  uint64_t bits = 0;
  const size_t size = static_cast<size_t>(SizeOf(type));
  std::memcpy(&bits, bytes.data() + element * size, size);
  if (type == DataType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (type == DataType::kBF16) return WidenBf16(static_cast<uint16_t>(bits));
  return WidenF16(static_cast<uint16_t>(bits));
}

inline std::string DataBytes(const Tensor& tensor) {
  std::string bytes;
  for (const double value : tensor.values) bytes += ElementBytes(tensor.type, value);
  return bytes;
}

inline Tensor FromBytes(DataType type, const Dims& extents, const std::string& bytes) {
  Tensor tensor{type, extents, {}};
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), NumElements(extents) * SizeOf(type));
  for (size_t e = 0; (e + 1) * static_cast<size_t>(SizeOf(type)) <= bytes.size(); ++e) {
    tensor.values.push_back(ElementAt(type, bytes, e));
  }
  return tensor;
}

inline std::string NpyBytes(const std::string& descr, bool fortran_order, const Dims& extents,
                            const std::string& data) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': ";
  dict += fortran_order ? "True, 'shape': (" : "False, 'shape': (";
  for (const int64_t extent : extents) dict += std::to_string(extent) + ",";
  dict += "), }";
  dict.append(127 - (10 + dict.size()) % 64, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + LittleEndian(dict.size() + 1, 2) + dict + '\n' +
         data;
}

inline std::string NpyBytes(const Tensor& tensor, bool fortran_order = false) {
  const std::string descr = tensor.type == DataType::kF16   ? "<f2"
                            : tensor.type == DataType::kS32 ? "<i4"
                            : tensor.type == DataType::kS64 ? "<i8"
                                                            : "<f4";
  if (!fortran_order) return NpyBytes(descr, false, tensor.extents, DataBytes(tensor));
  std::string data(static_cast<size_t>(NumElements(tensor.extents) * SizeOf(tensor.type)), '\0');
  for (size_t e = 0; e < tensor.values.size(); ++e) {
    const Dims index = IndexOf(static_cast<int64_t>(e), tensor.extents);
    int64_t at = 0;
    for (size_t a = index.size(); a-- > 0;) at = at * tensor.extents[a] + index[a];
    const std::string bytes = ElementBytes(tensor.type, tensor.values[e]);
    data.replace(static_cast<size_t>(at) * bytes.size(), bytes.size(), bytes);
  }
  return NpyBytes(descr, true, tensor.extents, data);
}

inline Tensor ParseNpy(const std::string& file) {
  if (file.size() < 10 || file.substr(0, 8) != std::string("\x93NUMPY\x01\x00", 8)) {
    ADD_FAILURE() << "no .npy file: " << file.size() << " bytes";
    return {};
  }
  const size_t length = static_cast<uint8_t>(file[8]) + 256u * static_cast<uint8_t>(file[9]);
  const std::string dict = file.substr(10, length);
  EXPECT_NE(dict.find("'fortran_order': False"), std::string::npos) << dict;
  const bool f16 = dict.find("'descr': '<f2'") != std::string::npos;
  EXPECT_TRUE(f16 || dict.find("'descr': '<f4'") != std::string::npos) << dict;
  Dims extents;
  std::istringstream shape(dict.substr(dict.find('(') + 1));
  for (int64_t extent; shape >> extent; shape.ignore(1)) extents.push_back(extent);
  return FromBytes(f16 ? DataType::kF16 : DataType::kF32, extents, file.substr(10 + length));
}

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

inline std::string SafetensorsBytes(const NamedTensors& tensors) {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data += DataBytes(tensor);
    const char* dtype = tensor.type == DataType::kBF16  ? "BF16"
                        : tensor.type == DataType::kF16 ? "F16"
                        : tensor.type == DataType::kS32 ? "I32"
                        : tensor.type == DataType::kS64 ? "I64"
                                                        : "F32";
    header[name] = {
        {"dtype", dtype}, {"shape", tensor.extents}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  return LittleEndian(text.size(), 8) + text + data;
}

inline std::map<std::string, Tensor> ParseSafetensors(const std::string& file) {
  std::map<std::string, Tensor> tensors;
  uint64_t length = 0;
  if (file.size() >= 8) std::memcpy(&length, file.data(), 8);
  if (file.size() < 8 || file.size() - 8 < length) {
    ADD_FAILURE() << "no .safetensors file: " << file.size() << " bytes";
    return tensors;
  }
  const nlohmann::json header = nlohmann::json::parse(file.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    const std::string dtype = entry["dtype"];
    const DataType type = dtype == "F32"    ? DataType::kF32
                          : dtype == "BF16" ? DataType::kBF16
                                            : DataType::kF16;
    EXPECT_TRUE(type != DataType::kF16 || dtype == "F16") << dtype;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    tensors[name] = FromBytes(type, entry["shape"], file.substr(8 + length + begin, end - begin));
  }
  return tensors;
}

// ---- The tests' own folder ----

class CommandFixture : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "convgrad_command.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Put(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  std::string Get(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Remove(const std::string& name) const { std::filesystem::remove_all(Path(name)); }

  // Names and bytes of all files: equal before and after means that nothing was created, changed
  // or left behind.
  std::map<std::string, std::string> Snapshot() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      const std::string name = entry.path().string().substr(directory_.size() + 1);
      files[name] = entry.is_regular_file() ? Get(name) : "";
    }
    return files;
  }

  Outcome Convgrad(const Words& words) const {
    return Launch(Words{CONVGRAD_COMMAND} + words, directory_);
  }
  Outcome Convgrad(const std::string& line) const { return Convgrad(Split(line)); }

  // Exit code 0 and not a word on standard error.
  Outcome Succeeds(const Words& words) const {
    Outcome outcome = Convgrad(words);
    EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal;
    EXPECT_EQ(outcome.err, "");
    return outcome;
  }
  Outcome Succeeds(const std::string& line) const { return Succeeds(Split(line)); }

  // Bad input: one line on standard error that says `sentence`, exit code 2, nothing else changed.
  void ExpectRefused(const Words& words, const std::string& sentence) const {
    SCOPED_TRACE(testing::PrintToString(words));
    const auto before = Snapshot();
    const Outcome outcome = Convgrad(words);
    EXPECT_EQ(outcome.exit_code, 2) << "signal " << outcome.signal;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("convgrad: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err << "lacks " << sentence;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1)
        << "more than a line: " << outcome.err;
    EXPECT_TRUE(before == Snapshot()) << "a file was created, changed or removed";
  }
  void ExpectRefused(const std::string& line, const std::string& sentence) const {
    ExpectRefused(Split(line), sentence);
  }

  std::string directory_;
};

}  // namespace convgrad::tools

#endif  // CONVGRAD_TESTS_COMMAND_LINE_H_
