// What a file may begin with that is no text of ours: a byte order mark, which is passed over, and
// the marks of compressed files and of UTF-16, which have a sentence that says what to do. Reads no
// file.
#ifndef CONVGRAD_ONEDNN_TEXT_START_H_
#define CONVGRAD_ONEDNN_TEXT_START_H_

#include <string>
#include <string_view>

namespace convgrad::onednn {

// The longest of the marks below: so many bytes of a file are enough to know.
inline constexpr size_t kLongestMark = 6;

// Of UTF-8, which editors of another system write.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

// What the bytes are instead of text, with the command that makes text of a file; empty: text.
inline std::string EncodingOf(std::string_view bytes, const std::string& file) {
  struct Mark {
    std::string_view bytes, what, command;
  };
  constexpr Mark kMarks[] = {
      {"\x1f\x8b", "compressed by gzip", "zcat "},
      {"\xfd\x37\x7a\x58\x5a", "compressed by xz", "xzcat "},
      {"\x28\xb5\x2f\xfd", "compressed by zstd", "zstdcat "},
      {"BZh", "compressed by bzip2", "bzcat "},
      {"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8 "},
      {"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8 "},
  };
  for (const Mark& mark : kMarks) {
    if (!bytes.starts_with(mark.bytes)) continue;
    return "it is " + std::string(mark.what) + ", and '" + std::string(mark.command) + file +
           "' makes text of it";
  }
  return {};
}

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_TEXT_START_H_
