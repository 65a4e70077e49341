#include "tracefs/reader/arrow.h"

#include <array>
#include <string>

namespace tracefs::reader {
namespace {

// Everything that a structure of ours points to. Children may be moved out of
// their parents and then live longer: each has an owner of its own.
struct SchemaOwner {
  std::string name;
  std::vector<ArrowSchema> nodes;  // children, or the dictionary
  std::vector<ArrowSchema*> children;
};

struct ArrayOwner {
  std::shared_ptr<const Batch> batch;
  std::array<const void*, 3> buffers{};
  std::vector<ArrowArray> nodes;
  std::vector<ArrowArray*> children;
};

template <typename Node, typename Owner>
void Release(Node* node) {
  auto* const owner = static_cast<Owner*>(node->private_data);
  // Those that were moved out have no release any more.
  for (Node& child : owner->nodes) {
    if (child.release != nullptr) child.release(&child);
  }
  delete owner;
  node->release = nullptr;
}

const char* FormatOf(const ColumnSpec& spec) {
  if (spec.is_dictionary()) return "i";
  switch (spec.field->shape) {
    case Shape::kTime:
      return "tsn:";
    case Shape::kDuration:
    case Shape::kSigned:
      return "l";
    case Shape::kFlag:
      return "b";
    default:
      break;
  }
  switch (spec.field->width) {
    case 8:
      return "L";
    case 4:
      return "I";
    case 2:
      return "S";
    default:
      return "C";
  }
}

void InitSchema(std::string name, const char* format, int64_t flags,
                size_t nodes, ArrowSchema* out) {
  auto* const owner = new SchemaOwner{std::move(name), {}, {}};
  owner->nodes.resize(nodes);
  *out = {};
  out->format = format;
  out->name = owner->name.c_str();
  out->flags = flags;
  out->release = &Release<ArrowSchema, SchemaOwner>;
  out->private_data = owner;
}

ArrayOwner* InitArray(const std::shared_ptr<const Batch>& batch, size_t length,
                      size_t absent, int64_t buffers, size_t nodes,
                      ArrowArray* out) {
  auto* const owner = new ArrayOwner{batch, {}, {}, {}};
  owner->nodes.resize(nodes);
  *out = {};
  out->length = static_cast<int64_t>(length);
  out->null_count = static_cast<int64_t>(absent);
  out->n_buffers = buffers;
  out->buffers = owner->buffers.data();
  out->release = &Release<ArrowArray, ArrayOwner>;
  out->private_data = owner;
  return owner;
}

}  // namespace

void ExportSchema(const std::vector<ColumnSpec>& specs, ArrowSchema* out) {
  InitSchema("", "+s", 0, specs.size(), out);
  auto* const owner = static_cast<SchemaOwner*>(out->private_data);
  for (size_t i = 0; i < specs.size(); ++i) {
    ArrowSchema& child = owner->nodes[i];
    owner->children.push_back(&child);
    InitSchema(specs[i].name, FormatOf(specs[i]), ARROW_FLAG_NULLABLE,
               specs[i].is_dictionary() ? 1 : 0, &child);
    if (!specs[i].is_dictionary()) continue;
    child.dictionary =
        static_cast<SchemaOwner*>(child.private_data)->nodes.data();
    InitSchema("", specs[i].is_bytes() ? "z" : "u", 0, 0, child.dictionary);
  }
  out->n_children = static_cast<int64_t>(specs.size());
  out->children = owner->children.data();
}

void ExportBatch(std::shared_ptr<const Batch> batch, ArrowArray* out) {
  const std::vector<ColumnSpec>& specs = batch->specs();
  ArrayOwner* const all =
      InitArray(batch, batch->rows(), 0, 1, specs.size(), out);
  for (size_t i = 0; i < specs.size(); ++i) {
    const Column& column = batch->column(i);
    ArrowArray& child = all->nodes[i];
    all->children.push_back(&child);
    ArrayOwner* const owner =
        InitArray(batch, batch->rows(), column.absent, 2,
                  specs[i].is_dictionary() ? 1 : 0, &child);
    owner->buffers[0] = column.absent == 0 ? nullptr : column.valid.data();
    owner->buffers[1] = column.data.data();
    if (!specs[i].is_dictionary()) continue;
    child.dictionary = owner->nodes.data();
    ArrayOwner* const texts =
        InitArray(batch, column.offsets.size() - 1, 0, 3, 0, child.dictionary);
    texts->buffers[1] = column.offsets.data();
    texts->buffers[2] = column.bytes.data();
  }
  out->n_children = static_cast<int64_t>(specs.size());
  out->children = all->children.data();
}

}  // namespace tracefs::reader
