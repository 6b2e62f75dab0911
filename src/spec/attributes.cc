#include "spec/attributes.h"

#include <algorithm>
#include <cctype>

#include "core/text.h"

namespace convgrad {
namespace {

// oneDNN writes a list that was never set as 12 zeros, and pads shorter ones to 12 with zeros.
constexpr size_t kSerializedListLength = 12;

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

bool AllZero(const Dims& list, size_t from) {
  return std::all_of(list.begin() + static_cast<int64_t>(from), list.end(),
                     [](int64_t v) { return v == 0; });
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

AttributeType TypeOf(const AttributeValue& value) {
  if (value.s64() != nullptr) return AttributeType::kS64;
  return value.list() != nullptr ? AttributeType::kS64List : AttributeType::kString;
}

class Reader {
 public:
  Reader(const OperationSchema& schema, const Attributes& attributes, int spatial)
      : schema_(schema), attributes_(attributes), spatial_(static_cast<size_t>(spatial)) {}

  Status CheckNames() const {
    for (const auto& [name, value] : attributes_.entries()) {
      const AttributeSchema* attribute = schema_.Find(name);
      if (attribute == nullptr) {
        std::vector<std::string_view> names;
        for (const AttributeSchema* a : schema_.attributes) names.push_back(a->name);
        return Invalid(Join("attribute '", name, "' is not an attribute of ", schema_.name,
                            ", which has ", JoinWords(names, ", ")));
      }
      if (TypeOf(value) != attribute->type) {
        return Invalid(Join("attribute '", name, "' has type ", NameOf(TypeOf(value)),
                            ", expected ", NameOf(attribute->type)));
      }
    }
    return {};
  }

  // Null: the operation has no such attribute, or it was not given. Trims serialized lists.
  Result<std::optional<Dims>> List(std::string_view name) const {
    const AttributeSchema* attribute = schema_.Find(name);
    const AttributeValue* value = attributes_.Find(name);
    if (attribute == nullptr) return std::optional<Dims>();
    const size_t length = attribute->length == ListLength::kSpatial ? spatial_ : spatial_ + 2;
    std::optional<Dims> list;
    if (value != nullptr) list = *value->list();
    if (list && list->size() == kSerializedListLength && AllZero(*list, length)) {
      if (!AllZero(*list, 0)) {
        list->resize(length);
      } else if (attribute->empty_is_zeros) {
        list->clear();
      } else {
        list.reset();
      }
    }
    if (!list) {
      if (!attribute->required) return std::optional<Dims>();
      return Invalid(Join("attribute '", name, "' is missing, ", schema_.name, " requires it"));
    }
    if (list->empty() && attribute->empty_is_zeros) list->assign(length, 0);
    if (list->size() != length) {
      return Invalid(
          Join("attribute '", name, "' has ", list->size(), " entries, expected ", length,
               attribute->length == ListLength::kSpatial ? ", one for each spatial axis"
                                                         : ", one for each axis of the output"));
    }
    for (size_t i = 0; i < length; ++i) {
      if ((*list)[i] < attribute->least) {
        return Invalid(Join("attribute '", name, "' is ", (*list)[i], " at entry ", i,
                            ", expected at least ", attribute->least));
      }
    }
    return list;
  }

  Result<std::string> Text(const AttributeSchema& attribute) const {
    const AttributeValue* value = attributes_.Find(attribute.name);
    if (value == nullptr) return std::string(attribute.default_text);
    const std::string text = attribute.any_case ? Lower(*value->text()) : *value->text();
    for (std::string_view legal : attribute.values) {
      if (text == legal) return text;
    }
    return Invalid(Join("attribute '", attribute.name, "' is '", *value->text(),
                        "', expected one of ", JoinWords(attribute.values, ", ")));
  }

  Result<int64_t> Groups() const {
    const AttributeValue* value = attributes_.Find("groups");
    if (value == nullptr) return int64_t{1};
    const int64_t least = schema_.Find("groups")->least;
    if (*value->s64() >= least) return *value->s64();
    return Invalid(Join("attribute 'groups' is ", *value->s64(), ", expected at least ", least));
  }

 private:
  const OperationSchema& schema_;
  const Attributes& attributes_;
  size_t spatial_;
};

AutoPad AutoPadOf(std::string_view text) {
  if (text == "same_upper") return AutoPad::kSameUpper;
  if (text == "same_lower") return AutoPad::kSameLower;
  return text == "valid" ? AutoPad::kValid : AutoPad::kNone;
}

}  // namespace

Result<AttributeSet> ReadAttributes(const OperationSchema& schema, const Attributes& attributes,
                                    int spatial) {
  const Reader reader(schema, attributes, spatial);
  if (Status status = reader.CheckNames(); !status.ok()) return status;
  AttributeSet set;
  struct ListField {
    std::string_view name;
    Dims& field;
  };
  for (const ListField& f : {ListField{"strides", set.strides},
                             {"pads_begin", set.pads_begin},
                             {"pads_end", set.pads_end},
                             {"dilations", set.dilations},
                             {"output_padding", set.output_padding}}) {
    Result<std::optional<Dims>> list = reader.List(f.name);
    if (!list.ok()) return list.status();
    f.field = list->value_or(Dims(static_cast<size_t>(spatial), 0));
  }
  if (const AttributeSchema* shape = schema.shape_attribute(); shape != nullptr) {
    Result<std::optional<Dims>> list = reader.List(shape->name);
    if (!list.ok()) return list.status();
    set.shape = *list;
  }
  Result<std::string> auto_pad = reader.Text(*schema.Find("auto_pad"));
  if (!auto_pad.ok()) return auto_pad.status();
  set.auto_pad = AutoPadOf(*auto_pad);
  Result<std::string> data_format = reader.Text(*schema.Find("data_format"));
  if (!data_format.ok()) return data_format.status();
  set.data_format = *data_format;
  Result<std::string> weights_format = reader.Text(schema.weights_format());
  if (!weights_format.ok()) return weights_format.status();
  set.weights_format = *weights_format;
  Result<int64_t> groups = reader.Groups();
  if (!groups.ok()) return groups.status();
  set.groups = *groups;
  return set;
}

}  // namespace convgrad
