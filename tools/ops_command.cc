// The specification's table, printed: for people, as JSON, and as the Markdown of docs/spec.md.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "spec/schema.h"
#include "tools/commands.h"

namespace convgrad::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string Values(const AttributeSchema& attribute) {
  if (attribute.type == AttributeType::kString) {
    return Join(JoinWords(attribute.values, ", "), attribute.any_case ? " (any letter case)" : "");
  }
  if (attribute.length == ListLength::kTensor) return "all extents";
  return Join(">= ", attribute.least,
              attribute.empty_is_zeros ? ", an empty list means zeros" : "");
}

std::string Name(const ArgumentSchema& argument) {
  const std::string_view mark = argument.extension ? "?*" : argument.required ? "" : "?";
  return Join(argument.name, mark);
}

std::string Names(std::span<const ArgumentSchema> arguments) {
  std::vector<std::string> names;
  for (const ArgumentSchema& argument : arguments) names.push_back(Name(argument));
  return JoinWords(names, ", ");
}

void PrintText() {
  for (const OperationSchema& schema : Operations()) {
    std::printf("%.*s(%s) -> %s\n", static_cast<int>(schema.name.size()), schema.name.data(),
                Names(schema.inputs).c_str(), Names(schema.outputs).c_str());
    if (schema.first_generation()) {
      std::printf("  the first generation's name of %s\n",
                  std::string(NameOf(schema.means)).c_str());
    }
    for (const AttributeSchema* attribute : schema.attributes) {
      const std::string fallback = attribute->required ? "required"
                                   : attribute->default_text.empty()
                                       ? "optional"
                                       : Join("default ", attribute->default_text);
      std::printf("  --%-15s %-6s  %-13s  %s: %s\n", std::string(attribute->name).c_str(),
                  std::string(NameOf(attribute->type)).c_str(), fallback.c_str(),
                  std::string(attribute->meaning).c_str(), Values(*attribute).c_str());
    }
    std::printf("\n");
  }
  std::printf("? optional   * an extension, not in the specification\n");
}

Json ToJson(std::span<const ArgumentSchema> arguments) {
  Json list = Json::array();
  for (const ArgumentSchema& argument : arguments) {
    list.push_back({{"name", argument.name},
                    {"required", argument.required},
                    {"extension", argument.extension}});
  }
  return list;
}

void PrintJson() {
  Json list = Json::array();
  for (const OperationSchema& schema : Operations()) {
    Json attributes = Json::array();
    for (const AttributeSchema* attribute : schema.attributes) {
      Json item = {{"name", attribute->name},
                   {"type", NameOf(attribute->type)},
                   {"required", attribute->required},
                   {"meaning", attribute->meaning}};
      if (!attribute->default_text.empty()) item["default"] = attribute->default_text;
      if (attribute->type == AttributeType::kString) {
        item["values"] =
            std::vector<std::string>(attribute->values.begin(), attribute->values.end());
      } else {
        item["least"] = attribute->least;
      }
      attributes.push_back(std::move(item));
    }
    list.push_back({{"name", schema.name},
                    {"means", NameOf(schema.means)},
                    {"inputs", ToJson(schema.inputs)},
                    {"outputs", ToJson(schema.outputs)},
                    {"attributes", std::move(attributes)}});
  }
  std::printf("%s\n", list.dump(2).c_str());
}

// One row per operation, then one per attribute with the operations that have it.
void PrintMarkdown() {
  std::printf("| operation | inputs | outputs | first generation's name of |\n|---|---|---|---|\n");
  for (const OperationSchema& schema : Operations()) {
    std::printf("| %s | %s | %s | %s |\n", std::string(schema.name).c_str(),
                Names(schema.inputs).c_str(), Names(schema.outputs).c_str(),
                schema.first_generation() ? std::string(NameOf(schema.means)).c_str() : "");
  }
  std::printf("\n`?` optional, `*` an extension of this project.\n\n");
  std::printf("| attribute | type | default | values | operations |\n|---|---|---|---|---|\n");
  std::vector<const AttributeSchema*> printed;
  for (const OperationSchema& first : Operations()) {
    for (const AttributeSchema* attribute : first.attributes) {
      if (std::find(printed.begin(), printed.end(), attribute) != printed.end()) continue;
      printed.push_back(attribute);
      std::vector<std::string_view> owners;
      for (const OperationSchema& schema : Operations()) {
        if (schema.Find(attribute->name) == attribute) owners.push_back(schema.name);
      }
      const std::string owner_text =
          owners.size() == Operations().size() ? "all" : JoinWords(owners, ", ");
      std::printf("| %s | %s | %s | %s | %s |\n", std::string(attribute->name).c_str(),
                  std::string(NameOf(attribute->type)).c_str(),
                  attribute->required ? "required" : std::string(attribute->default_text).c_str(),
                  Values(*attribute).c_str(), owner_text.c_str());
    }
  }
}

}  // namespace

int ListOperations(OpsFormat format) {
  switch (format) {
    case OpsFormat::kText:
      PrintText();
      break;
    case OpsFormat::kJson:
      PrintJson();
      break;
    case OpsFormat::kMarkdown:
      PrintMarkdown();
      break;
  }
  return 0;
}

}  // namespace convgrad::tools
