// Tensor files from bytes made by hand, and what writing leaves behind when it fails.
#include "tools/tensor_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tools/temporary_file.h"

namespace convgrad::tools {
namespace {

namespace fs = std::filesystem;
using enum DataType;
using enum StatusCode;

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string Npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  return file + LittleEndian(dict.size(), version == 1 ? 2 : 4) + dict + data;
}

std::string Npy(const std::string& descr, const std::string& fortran_order,
                const std::string& shape, const std::string& data) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': " + fortran_order +
                     ", 'shape': " + shape + ", }";
  dict.append(117 - dict.size(), ' ');
  return Npy(dict + '\n', data);
}

std::string Safetensors(const std::string& json, const std::string& data = "") {
  return LittleEndian(json.size(), 8) + json + data;
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  int begin, int end) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

class TensorFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tensor_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string Put(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

  static std::string Get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  // The message names the file, is one line, and says `expected`.
  static void ExpectError(const Status& status, const std::string& path,
                          const std::string& expected, StatusCode code = kInvalidArgument) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(expected), std::string::npos)
        << status.message() << "\nlacks: " << expected;
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }

  void ExpectReadError(const std::string& name, const std::string& bytes,
                       const std::string& expected, StatusCode code = kInvalidArgument) const {
    const std::string path = Put(name, bytes);
    ExpectError(ReadTensor(path).status(), path, expected, code);
  }

  void ExpectRead(const std::string& where, DataType type, const Dims& extents, const Dims& strides,
                  const std::string& bytes) const {
    Result<HostTensor> tensor = ReadTensor(where);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->desc.type, type);
    EXPECT_EQ(tensor->desc.extents, extents);
    EXPECT_EQ(tensor->desc.strides, strides);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % static_cast<size_t>(SizeOf(type)), 0u);
    ASSERT_EQ(tensor->elements() * SizeOf(type), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(std::string(static_cast<const char*>(tensor->data()), bytes.size()), bytes);
  }

  const std::vector<float> six_ = {1, 2, 3, 4, 5, 6};
  const std::string six_bytes_ = BytesOf(six_);
  const TensorDesc six_desc_{kF32, {2, 3}, {}, {}};
  std::string directory_;
};

// ---- .npy ----

TEST_F(TensorFileTest, ReadsEveryNpyType) {
  const auto put = [this](const std::string& descr, const std::string& shape,
                          const std::string& data, bool fortran_order = false) {
    return Put("a.npy", Npy(descr, fortran_order ? "True" : "False", shape, data));
  };
  ExpectRead(put("<f4", "(2, 3)", six_bytes_), kF32, {2, 3}, {3, 1}, six_bytes_);
  ExpectRead(put("<f2", "(3,)", "abcdef"), kF16, {3}, {1}, "abcdef");
  ExpectRead(put("=i4", "(2,)", "abcdefgh"), kS32, {2}, {1}, "abcdefgh");
  ExpectRead(put("|i8", "(1,)", "abcdefgh"), kS64, {1}, {1}, "abcdefgh");
  ExpectRead(put("i8", "()", "abcdefgh"), kS64, {}, {}, "abcdefgh");
  ExpectRead(put("<f4", "(0, 7)", ""), kF32, {0, 7}, {7, 1}, "");
  // Fortran order is strides, the bytes are those of the file.
  ExpectRead(put("<f4", "(2, 3, 1)", six_bytes_, true), kF32, {2, 3, 1}, {1, 2, 6}, six_bytes_);
  // Big-endian.
  const std::string two("\x40\x00\x00\x00\xc0\x00\x00\x00", 8);
  ExpectRead(put(">f4", "(2,)", two), kF32, {2}, {1}, BytesOf<float>({2, -2}));
  ExpectRead(put(">f2", "(2, 2)", "badcfehg", true), kF16, {2, 2}, {1, 2}, "abcdefgh");
  ExpectRead(put(">i4", "(1,)", "dcba"), kS32, {1}, {1}, "abcd");
  ExpectRead(put(">i8", "()", "hgfedcba"), kS64, {}, {}, "abcdefgh");
}

TEST_F(TensorFileTest, ReadsAnyDictSpelling) {
  const std::string data = six_bytes_ + "after the data";
  for (const std::string dict :
       {"{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "\t{ 'shape' : ( 2 , 3 , ) ,\n 'descr' : \"<f4\" , 'fortran_order' : False , } \r\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }"}) {
    for (const int version : {1, 2, 3}) {
      const std::string path = Put("a.npy", Npy(dict, data, version));
      ExpectRead(path, kF32, {2, 3}, {3, 1}, six_bytes_);
    }
  }
}

TEST_F(TensorFileTest, NamesNpyHeaderErrors) {
  const std::string good = Npy("<f4", "False", "(2, 3)", six_bytes_);
  const auto expect = [this](const std::string& file, const std::string& problem) {
    ExpectReadError("a.npy", file, problem);
  };
  expect("", "the file is empty");
  expect("PK\x03\x04", "does not start with the bytes \\x93NUMPY");
  expect(good.substr(0, 4), "ends within its header, after 4 bytes");
  expect(good.substr(0, 9), "ends within its header, after 9 bytes");
  expect(good.substr(0, 100), "header claims 118 bytes, but the file holds 90");
  expect(good.substr(0, good.size() - 1), "24 bytes of data, but the file holds 23");
  expect(Npy("{}", "", 4), "version is 4.0, accepted are 1.0, 2.0 and 3.0");
  expect(Npy("[1]", ""), "has '[1]' at its byte 0, expected '{'");
  expect(Npy("{", ""), "has the end of the header at its byte 1");
  expect(Npy("{}", ""), "lacks the key 'descr'");
  expect(Npy("{'descr':'<f4'}", ""), "lacks the key 'fortran_order'");
  expect(Npy("{'descr':'<f4','fortran_order':True}", ""), "lacks the key 'shape'");
  expect(Npy("{'descr':'<f4','descr':'<f4'}", ""), "the key 'descr' twice");
  expect(Npy("{'color\n':1}", ""), "the key 'color?', expected only");
  expect(Npy("{'descr' '<f4'}", ""), "expected ':'");
  expect(Npy("{'descr': '<f4}", ""), "closing quote");
  expect(Npy("{'descr': 4}", ""), "expected a dtype in quotes");
  expect(Npy("{'descr':'<f4' 'shape':()}", ""), "expected ',' or '}'");
  expect(Npy("{'fortran_order':0}", ""), "expected True or False");
  expect(Npy("{'shape':[2]}", ""), "expected '(' as the start of shape");
  expect(Npy("{'shape':(2 3)}", ""), "expected ',' or ')' in shape");
  expect(Npy("{'shape':(,)}", ""), "expected an extent");
  expect(Npy("<f4", "True", "()", "").replace(127, 1, "!"), "nothing after '}'");
}

TEST_F(TensorFileTest, NamesNpyTypeAndShapeErrors) {
  const std::string data(64, 'x');
  const auto expect = [&](const std::string& descr, const std::string& shape,
                          const std::string& problem, StatusCode code) {
    ExpectReadError("a.npy", Npy(descr, "False", shape, data), problem, code);
  };
  for (const std::string descr : {"<f8", "<i2", "|u1", "|b1", "|O", "<", ""}) {
    expect(descr, "(2,)", "the dtype is '" + descr + "', accepted are <f4, <f2, <i4 and <i8",
           kInvalidType);
  }
  expect("|V2", "(2,)", "bf16 data as .safetensors", kInvalidType);
  ExpectReadError("a.npy", Npy("{'descr': [('x', '<f4')]}", data), "structured, '[('x'",
                  kInvalidType);
  expect("<f4", "(-1,)", "negative extent, '-1", kInvalidShape);
  expect("<f4", "(9223372036854775808,)", "9223372036854775808", kInvalidShape);
  expect("<f4", "(4294967296, 4294967296)", "63 bits", kInvalidShape);
  expect("<f4", "(0, 4294967296, 4294967296)", "63 bits", kInvalidShape);
  std::string many = "{'shape': (";
  for (int i = 0; i < 65; ++i) many += "1,";
  ExpectReadError("a.npy", Npy(many + ")}", data), "more than 64 extents", kInvalidShape);
}

TEST_F(TensorFileTest, WritesTheBytesOfNumpySave) {
  const auto written = [this](DataType type, const Dims& extents) {
    EXPECT_TRUE(WriteTensor(Path("a.npy"), six_.data(), {type, extents, {}, {}}).ok());
    return Get(Path("a.npy"));
  };
  EXPECT_EQ(written(kF32, {2, 3}), Npy("<f4", "False", "(2, 3)", six_bytes_));
  EXPECT_EQ(written(kS32, {6}), Npy("<i4", "False", "(6,)", six_bytes_));
  EXPECT_EQ(written(kS64, {}), Npy("<i8", "False", "()", six_bytes_.substr(0, 8)));
  EXPECT_EQ(written(kF16, {0, 3}), Npy("<f2", "False", "(0, 3)", ""));
  EXPECT_EQ(Files(), 1u);
}

// ---- .safetensors ----

TEST_F(TensorFileTest, ReadsSafetensors) {
  const std::string json = R"({ "__metadata__": {"format": "pt"}, )" +
                           Entry("w", "F32", "[2, 3]", 4, 28) + ", " +
                           Entry("b", "BF16", "[2]", 0, 4) + "}   ";
  const std::string path = Put("a.safetensors", Safetensors(json, "abcd" + six_bytes_));
  ExpectRead(path + ":w", kF32, {2, 3}, {3, 1}, six_bytes_);
  ExpectRead(path + ":b", kBF16, {2}, {1}, "abcd");
}

TEST_F(TensorFileTest, ReadsTheOnlyTensorOfAnyNameAndType) {
  const auto put = [this](const std::string& entry, const std::string& data) {
    return Put("a.safetensors", Safetensors("{" + entry + "}", data));
  };
  const std::string name = R"(\u0000a\n:\u00e9\"/)";
  ExpectRead(put(Entry(name, "I64", "[]", 0, 8), "abcdefgh"), kS64, {}, {}, "abcdefgh");
  ExpectRead(put(Entry("x", "F16", "[0]", 0, 0), ""), kF16, {0}, {1}, "");
  ExpectRead(put(Entry("a\\n:", "I32", "[1]", 0, 4), "abcd") + ":a\n:", kS32, {1}, {1}, "abcd");
}

TEST_F(TensorFileTest, AlignsMisalignedSafetensors) {
  std::string json = "{" + Entry("x", "F32", "[6]", 1, 25) + "}";
  for (int pad = 0; pad < 8; ++pad, json += ' ') {
    const std::string path = Put("a.safetensors", Safetensors(json, "_" + six_bytes_));
    ExpectRead(path, kF32, {6}, {1}, six_bytes_);
  }
}

TEST_F(TensorFileTest, NamesSafetensorsHeaderErrors) {
  const auto expect = [this](const std::string& json, const std::string& problem) {
    ExpectReadError("a.safetensors", Safetensors(json, "abcdefgh"), problem);
  };
  ExpectReadError("a.safetensors", "", "the file is empty");
  ExpectReadError("a.safetensors", "abc", "has 3 bytes, expected at least the 8");
  ExpectReadError("a.safetensors", LittleEndian(100'000'001, 8), "more than the 100000000");
  ExpectReadError("a.safetensors", std::string(8, '\xff'), "18446744073709551615");
  ExpectReadError("a.safetensors", LittleEndian(9, 8) + "{}",
                  "claims 9 bytes, but the file holds 2");
  expect("", "not JSON");
  expect("{", "not JSON: error at its byte");
  expect("{\"\xff\":1}", "not JSON");
  expect("{} x", "not JSON");
  expect("[]", "the header is an array, expected a JSON object");
  expect(std::string(100000, '['), "the header is an array");
  expect(R"({"x":)" + std::string(100000, '['), "tensor \"x\" is an array, expected an object");
  expect(R"({"x":1})", "tensor \"x\" is the number 1, expected an object");
  expect(R"({"x":{"dtype":[]}})", "has an array as dtype, expected a string");
  expect(R"({"x":{"shape":null}})", "has null as shape, expected an array");
  expect(R"({"x":{"shape":[-1]}})", "the number -1 in shape, expected integers of at least 0");
  expect(R"({"x":{"shape":[1.5]}})", "the number 1.5 in shape");
  expect(R"({"x":{"shape":[[1]]}})", "an array in shape");
  expect(R"({"x":{"shape":[9223372036854775808]}})", "does not fit into 63 bits");
  expect(R"({"x":{"color":1}})", "the key \"color\", expected only");
  expect(R"({"x":{"dtype":"F32","dtype":"F32"}})", "the key \"dtype\" twice");
  expect(R"({"x":{"dtype":"F32","shape":[1]}})", "lacks one of the keys");
  expect(R"({"x":{"dtype":"F32","shape":[],"data_offsets":[0]}})", "has 1 data_offsets");
  expect(R"({"__metadata__":{"a":1}})", "__metadata__ has the number 1 as \"a\"");
  expect(R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ occurs twice");
}

TEST_F(TensorFileTest, NamesSafetensorsEntryErrors) {
  const auto expect = [this](const std::string& entries, const std::string& problem,
                             StatusCode code = kInvalidArgument) {
    ExpectReadError("a.safetensors", Safetensors("{" + entries + "}", "abcdefgh"), problem, code);
  };
  expect(Entry("x", "F32", "[1]", 8, 4), "data_offsets [8, 4], expected begin <= end");
  expect(Entry("x", "F32", "[1]", 8, 12), "[8, 12], but the file holds 8 bytes of data");
  expect(Entry("x", "F32", "[3]", 0, 8), "its dtype and shape need 12 bytes", kInvalidShape);
  expect(Entry("x", "F32", "[4294967296,4294967296]", 0, 8), "more than 2^63", kInvalidShape);
  expect(Entry("x", "F32", "[1]", 0, 4) + "," + Entry("x", "F32", "[1]", 4, 8),
         "tensor \"x\" occurs twice");
  expect(Entry("x", "F32", "[1]", 0, 4) + "," + Entry("y", "F32", "[1]", 3, 7),
         "tensor \"y\" starts at byte 3, within tensor \"x\"");
}

TEST_F(TensorFileTest, NamesTheTensorsOfASafetensorsFile) {
  ExpectReadError("a.safetensors", Safetensors("{}"), "the file holds no tensors");
  std::string json = "{" + Entry("t0", "F64", "[1]", 0, 8);
  for (const char* name : {"t1", "t2", "t3", "t4", "t5", "t6"}) {
    json += "," + Entry(name, "I32", "[0]", 8, 8);
  }
  const std::string path = Put("a.safetensors", Safetensors(json + "}", "abcdefgh"));
  const std::string held = R"(holds 7 tensors: "t0", "t1", "t2", "t3", "t4", ...)";
  ExpectError(ReadTensor(path).status(), path, held);
  ExpectError(ReadTensor(path + ":x").status(), path, "there is no tensor \"x\"; the file " + held);
  ExpectError(ReadTensor(path + ":").status(), path, "no tensor is named after ':'");
  ExpectError(ReadTensor(path + ":t0").status(), path, "dtype \"F64\", accepted are F32",
              kInvalidType);
  ExpectRead(path + ":t6", kS32, {0}, {1}, "");
}

TEST_F(TensorFileTest, WritesSafetensors) {
  const std::string json = R"({"tensor":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  ASSERT_TRUE(WriteTensor(Path("a.safetensors"), six_.data(), six_desc_).ok());
  EXPECT_EQ(Get(Path("a.safetensors")), Safetensors(json + "  ", six_bytes_));
  EXPECT_EQ(Files(), 1u);
}

TEST_F(TensorFileTest, UpdateKeepsOtherTensorsAndMetadata) {
  const std::string path =
      Put("a.safetensors",
          Safetensors(R"({"__metadata__":{"k\n":"v"},)" + Entry("b", "F8_E4M3", "[3]", 6, 9) + "," +
                          Entry("a", "BF16", "[2]", 1, 5) + "}",
                      "_AAAA_BBB__"));
  ASSERT_TRUE(WriteTensor(path + ":c", six_.data(), six_desc_).ok());
  ASSERT_TRUE(WriteTensor(path + ":a", "xy", {kF16, {1}, {}, {}}).ok());
  const std::string json = R"({"__metadata__":{"k\n":"v"},)"
                           R"("a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[2,5]},)"
                           R"("c":{"dtype":"F32","shape":[2,3],"data_offsets":[5,29]}})";
  const std::string padding(8 - json.size() % 8, ' ');
  EXPECT_EQ(Get(path), Safetensors(json + padding, "xyBBB" + six_bytes_));
  EXPECT_EQ(Files(), 1u);
}

TEST_F(TensorFileTest, ChoosesTheNameToWrite) {
  const std::string one = Safetensors("{" + Entry("w", "F32", "[1]", 0, 4) + "}", "abcd");
  const std::string path = Put("a.safetensors", one);
  ASSERT_TRUE(WriteTensor(path, six_.data(), six_desc_).ok());
  ExpectRead(path + ":w", kF32, {2, 3}, {3, 1}, six_bytes_);
  ASSERT_TRUE(WriteTensor(path + ":a:b", six_.data(), six_desc_).ok());
  ASSERT_TRUE(WriteTensor(path, "abcd", {kF32, {}, {}, {}}).ok());
  ExpectRead(path + ":tensor", kF32, {}, {}, "abcd");
  ExpectRead(path + ":a:b", kF32, {2, 3}, {3, 1}, six_bytes_);
  // Nothing to keep in a file as mktemp makes it.
  const std::string empty = Put("b.safetensors", "");
  ASSERT_TRUE(WriteTensor(empty, "abcd", {kBF16, {2}, {}, {}}).ok());
  ExpectRead(empty + ":tensor", kBF16, {2}, {1}, "abcd");
}

TEST_F(TensorFileTest, ThreadsThatAddToOneFileAllSucceed) {
  std::vector<std::thread> threads;
  const std::string path = Path("a.safetensors");
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(WriteTensor(path + ":" + std::to_string(i), six_.data(), six_desc_).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ReadTensor(path + ":" + std::to_string(i)).ok());
  EXPECT_EQ(Files(), 1u);
}

// ---- Places ----

TEST_F(TensorFileTest, NamesPlacesThatCannotBeRead) {
  for (const std::string name : {"", "x", "x.npz", "x.npy:y", "x.NPY", "npy"}) {
    ExpectError(ReadTensor(name).status(), name, "expected x.npy, x.safetensors or x.safetensors:");
    ExpectError(WriteTensor(name, six_.data(), six_desc_), name, "expected x.npy, x.safetensors");
  }
  ExpectError(ReadTensor(std::string("a\0.npy", 6)).status(), "a", "zero bytes");
  ExpectError(ReadTensor(Path("a.npy")).status(), Path("a.npy"), "No such file or directory");
  ExpectError(ReadTensor(Path("a.safetensors:b")).status(), Path("a.safetensors"), "No such file");
  fs::create_directory(Path("d.npy"));
  ExpectError(ReadTensor(Path("d.npy")).status(), Path("d.npy"), "this is a directory");
  ASSERT_EQ(mkfifo(Path("p.npy").c_str(), 0600), 0);
  ExpectError(ReadTensor(Path("p.npy")).status(), Path("p.npy"), "expected a regular file");
  if (geteuid() == 0) return;  // root reads everything
  ASSERT_EQ(chmod(Put("u.npy", "x").c_str(), 0), 0);
  ExpectError(ReadTensor(Path("u.npy")).status(), Path("u.npy"), "Permission denied");
}

TEST_F(TensorFileTest, AcceptsColonsInPaths) {
  fs::create_directory(Path("run:1.safetensors:x"));
  for (const std::string name :
       {"run:1.safetensors:x/a.safetensors:w", "b:c.safetensors:w", "b:c.npy"}) {
    ASSERT_TRUE(WriteTensor(Path(name), six_.data(), six_desc_).ok());
    ExpectRead(Path(name), kF32, {2, 3}, {3, 1}, six_bytes_);
  }
}

TEST_F(TensorFileTest, NamesTensorsThatCannotBeWritten) {
  const std::string npy = Path("a.npy");
  const auto expect = [&](const TensorDesc& desc, const std::string& problem, StatusCode code) {
    ExpectError(WriteTensor(npy, six_.data(), desc), npy, problem, code);
  };
  expect({}, "has no type", kInvalidType);
  expect({kBF16, {2}, {}, {}}, "type bf16 cannot be written as .npy", kInvalidType);
  expect({kF32, Dims(65, 1), {}, {}}, "rank 65", kInvalidShape);
  expect({kF32, {-1}, {}, {}}, "negative extent", kInvalidShape);
  expect({kF32, {INT64_MAX, 2}, {}, {}}, "63 bits", kInvalidShape);
  expect({kF32, {2, 3}, {1}, {}}, "1 strides and 2 extents", kInvalidShape);
  expect({kF32, {2}, {INT64_MAX / 2}, {}}, "beyond 63 bits", kInvalidShape);
  expect({kF32, {2}, {INT64_MIN}, {}}, "beyond 63 bits", kInvalidShape);
  ExpectError(WriteTensor(npy, nullptr, six_desc_), npy, "has no data");
  const std::string other = Path("a.safetensors");
  ExpectError(WriteTensor(other + ":\xff", six_.data(), six_desc_), other, "not UTF-8");
  ExpectError(WriteTensor(other + ":__metadata__", six_.data(), six_desc_), other,
              "cannot be called __metadata__");
  const std::string held = Safetensors("{" + Entry("w", "U8", "[4]", 0, 4) + "}", "abcd");
  Put("a.safetensors", held);
  const TensorDesc repeated{kF32, {INT64_MAX / 4}, {0}, {}};
  ExpectError(WriteTensor(other + ":x", six_.data(), repeated), other, "63 bits", kInvalidShape);
  EXPECT_EQ(Get(other), held);
  EXPECT_EQ(Files(), 1u);
}

TEST_F(TensorFileTest, WritesAnyStrides) {
  const std::vector<int32_t> twelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const TensorDesc fortran{kS32, {2, 3, 2}, {1, 2, 6}, {}};
  ASSERT_TRUE(WriteTensor(Path("a.npy"), twelve.data(), fortran).ok());
  ExpectRead(Path("a.npy"), kS32, {2, 3, 2}, {6, 2, 1},
             BytesOf<int32_t>({0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
  const TensorDesc reversed{kS64, {2, 1, 2}, {-1, INT64_MAX, 0}, {}};
  const std::vector<int64_t> pair = {7, 8};
  ASSERT_TRUE(WriteTensor(Path("b.safetensors:x"), pair.data() + 1, reversed).ok());
  ExpectRead(Path("b.safetensors:x"), kS64, {2, 1, 2}, {2, 2, 1}, BytesOf<int64_t>({8, 8, 7, 7}));
  ASSERT_TRUE(WriteTensor(Path("c.npy"), "aabbccddee", {kF16, {3}, {2}, {}}).ok());
  ExpectRead(Path("c.npy"), kF16, {3}, {1}, "aaccee");
}

TEST_F(TensorFileTest, WritesStridedTensorsLargerThanTheBuffer) {
  constexpr int32_t kRows = 1000, kColumns = 701;
  std::vector<int32_t> columns, rows;
  for (int32_t i = 0; i < kRows * kColumns; ++i) {
    columns.push_back(i);
    rows.push_back(i / kColumns + i % kColumns * kRows);
  }
  const TensorDesc desc{kS32, {kRows, kColumns}, {1, kRows}, {}};
  ASSERT_TRUE(WriteTensor(Path("a.npy"), columns.data(), desc).ok());
  ExpectRead(Path("a.npy"), kS32, {kRows, kColumns}, {kColumns, 1}, BytesOf(rows));
}

TEST_F(TensorFileTest, RewritesTheFileItReadsFrom) {
  const std::string path = Put("a.npy", Npy("<f4", "True", "(2, 3)", six_bytes_));
  Result<HostTensor> tensor = ReadTensor(path);
  ASSERT_TRUE(tensor.ok());
  const HostTensor shared = *tensor;
  tensor = Status();
  ASSERT_TRUE(WriteTensor(path, shared.data(), shared.desc).ok());
  EXPECT_EQ(std::memcmp(shared.data(), six_.data(), six_bytes_.size()), 0);
  ExpectRead(path, kF32, {2, 3}, {3, 1}, BytesOf<float>({1, 3, 5, 2, 4, 6}));
}

// ---- All or nothing ----

TEST_F(TensorFileTest, NamesPlacesThatCannotBeWritten) {
  const auto expect = [&](const std::string& path, const std::string& problem) {
    ExpectError(WriteTensor(path, six_.data(), six_desc_), path, problem);
  };
  expect(Put("file", "x") + "/a.npy", "cannot be written: Not a directory");
  expect(Path("none/a.safetensors"), "cannot be written: No such file or directory");
  expect(Path(std::string(300, 'a') + ".npy"), "File name too long");
  fs::create_directory(Path("d.npy"));
  expect(Path("d.npy"), "this is a directory");
  fs::create_symlink("loop.npy", Path("loop.npy"));
  expect(Path("loop.npy"), "symbolic links");
  ASSERT_EQ(mkfifo(Path("p.npy").c_str(), 0600), 0);
  expect(Path("p.npy"), "expected a regular file");
  expect(Put("bad.safetensors", "not safetensors"), "the header claims");
  EXPECT_EQ(Get(Path("bad.safetensors")), "not safetensors");
  EXPECT_EQ(Files(), 5u);
  if (geteuid() == 0) return;  // root writes everywhere
  ASSERT_EQ(chmod(Put("r.npy", "x").c_str(), 0444), 0);
  expect(Path("r.npy"), "Permission denied");
}

TEST_F(TensorFileTest, KeepsLinksAndPermissions) {
  const mode_t before = umask(027);
  fs::create_directory(Path("d"));
  fs::create_symlink("d/link.npy", Path("link.npy"));
  fs::create_symlink("../target.npy", Path("d/link.npy"));
  ASSERT_TRUE(WriteTensor(Path("link.npy"), six_.data(), six_desc_).ok());
  const auto mode = [this] {
    return static_cast<unsigned>(fs::symlink_status(Path("target.npy")).permissions());
  };
  EXPECT_EQ(mode(), 0640u);
  fs::permissions(Path("target.npy"), fs::perms{0606});
  ASSERT_TRUE(WriteTensor(Path("link.npy"), "abcd", {kF32, {}, {}, {}}).ok());
  EXPECT_EQ(mode(), 0606u);
  ExpectRead(Path("target.npy"), kF32, {}, {}, "abcd");
  EXPECT_TRUE(fs::is_symlink(Path("link.npy")) && fs::is_symlink(Path("d/link.npy")));
  EXPECT_EQ(Files(), 3u);
  umask(before);
}

// The kernel sends SIGXFSZ, from within write, where a file grows beyond RLIMIT_FSIZE.
const std::vector<float> kTooLarge(4000, 1.0f);
const TensorDesc kTooLargeDesc{kF32, {4000}, {}, {}};
int signal_in_mid_write = 0;
char watched_directory[4096];

bool TemporaryExists() {  // in a signal handler: nothing here allocates
  char path[sizeof watched_directory + 64] = "";
  for (int i = 0; i < 1000 && (i == 0 || access(path, F_OK) != 0); ++i) {
    std::snprintf(path, sizeof path, "%s/.convgrad-%d-%d.tmp", watched_directory, getpid(), i);
  }
  return access(path, F_OK) == 0;
}

void OnFileTooLarge(int) {
  if (!TemporaryExists()) _exit(3);
  raise(signal_in_mid_write);
  // ThreadSanitizer delivers it after this returns.
}

// The signals as a foreground shell leaves them: a background shell or nohup ignores some.
template <class Body>
int WaitStatusOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

class InterruptedWriteTest : public TensorFileTest {
 protected:
  // The wait status of a child that writes too much, with `handler` for SIGXFSZ.
  int WriteTooMuch(const std::string& where, void (*handler)(int)) {
    directory_.copy(watched_directory, sizeof(watched_directory) - 1);
    return WaitStatusOfChild([&] {
      RemoveTemporariesOnSignals();
      signal(SIGXFSZ, handler);
      const rlimit limit{4096, 4096};
      setrlimit(RLIMIT_FSIZE, &limit);
      const Status status = WriteTensor(where, kTooLarge.data(), kTooLargeDesc);
      const bool told = status.message().find("File too large") != std::string::npos;
      return told && !TemporaryExists() ? 0 : 1;
    });
  }
};

TEST_F(InterruptedWriteTest, AFailedWriteLeavesTheFileAsItWas) {
  const std::string one = Safetensors("{" + Entry("w", "F32", "[1]", 0, 4) + "}", "abcd");
  Put("a.npy", "old");
  Put("b.safetensors", one);
  for (const std::string where : {"a.npy", "b.safetensors:x", "c.npy", "d.safetensors"}) {
    EXPECT_EQ(WriteTooMuch(Path(where), SIG_IGN), 0);
  }
  EXPECT_EQ(Get(Path("a.npy")), "old");
  EXPECT_EQ(Get(Path("b.safetensors")), one);
  EXPECT_EQ(Files(), 2u);
}

TEST_F(InterruptedWriteTest, ASignalLeavesTheFileAsItWas) {
  Put("a.npy", "old");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    signal_in_mid_write = number;
    for (const std::string where : {"a.npy", "c.npy", "d.safetensors:x"}) {
      const int status = WriteTooMuch(Path(where), OnFileTooLarge);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    }
  }
  EXPECT_EQ(Get(Path("a.npy")), "old");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(InterruptedWriteTest, AnIgnoredSignalStaysIgnored) {
  const int status = WaitStatusOfChild([] {
    signal(SIGHUP, SIG_IGN);
    RemoveTemporariesOnSignals();
    return raise(SIGHUP);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(InterruptedWriteTest, ASignalAfterWritingRemovesNothing) {
  const int status = WaitStatusOfChild([this] {
    RemoveTemporariesOnSignals();
    if (!WriteTensor(Path("a.npy"), six_.data(), six_desc_).ok()) return 1;
    Put(".convgrad-" + std::to_string(getpid()) + "-0.tmp", "of another program");
    return raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  ExpectRead(Path("a.npy"), kF32, {2, 3}, {3, 1}, six_bytes_);
  EXPECT_EQ(Files(), 2u);
}

}  // namespace
}  // namespace convgrad::tools
