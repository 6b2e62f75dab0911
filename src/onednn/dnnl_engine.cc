// Engines, streams and allocators. There is one device, the CPU, and execution is done when it
// returns: a stream only names its engine.
#include <cstdlib>

#include "oneapi/dnnl/dnnl_debug.h"
#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

void* AllocateAligned(size_t size, size_t alignment) {
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  return rounded < size ? nullptr : std::aligned_alloc(alignment, rounded);
}

void FreeAligned(void* pointer) { std::free(pointer); }

dnnl_status_t MakeEngine(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index,
                         AllocatorFunctions allocator) {
  if (index >= dnnl_engine_get_count(kind)) {
    return Refuse(dnnl_invalid_arguments, "engine " + std::to_string(index) + " of kind " +
                                              dnnl_engine_kind2str(kind) +
                                              " is not there, expected engine 0 of kind cpu");
  }
  auto made = std::make_unique<dnnl_engine>();
  made->allocator = allocator;
  made->uses = 1;  // the caller's, until dnnl_engine_destroy
  *engine = made.release();
  return dnnl_success;
}

void EndUse(dnnl_engine_t engine) {
  if (engine != nullptr && engine->uses.fetch_sub(1) == 1) delete engine;
}

}  // namespace

AllocatorFunctions DefaultAllocator() { return {AllocateAligned, FreeAligned}; }

EngineUse::EngineUse(dnnl_engine_t engine) : engine_(engine) {
  if (engine_ != nullptr) engine_->uses.fetch_add(1);
}

EngineUse::~EngineUse() { EndUse(engine_); }

EngineMemory::EngineMemory(const EngineUse& engine, size_t bytes)
    : engine_(engine), data_(engine.get()->allocator.allocate(bytes, kMemoryAlignment)) {}

EngineMemory::~EngineMemory() {
  if (data_ != nullptr) engine_.get()->allocator.deallocate(data_);
}

}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

size_t dnnl_engine_get_count(dnnl_engine_kind_t kind) { return kind == dnnl_cpu ? 1 : 0; }

dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index) try {
  if (engine == nullptr) return RefuseNull(__func__);
  return convgrad::onednn::MakeEngine(engine, kind, index, convgrad::onednn::DefaultAllocator());
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_engine_get_kind(dnnl_engine_t engine, dnnl_engine_kind_t* kind) {
  if (AnyNull(engine, kind)) return RefuseNull(__func__);
  *kind = engine->kind;
  return dnnl_success;
}

dnnl_status_t dnnl_engine_destroy(dnnl_engine_t engine) {
  convgrad::onednn::EndUse(engine);
  return dnnl_success;
}

dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine, unsigned flags) try {
  if (AnyNull(stream, engine)) return RefuseNull(__func__);
  if ((flags & ~(dnnl_stream_in_order | dnnl_stream_out_of_order)) != 0) {
    return convgrad::onednn::Refuse(dnnl_unimplemented,
                                    "stream flags " + std::to_string(flags) +
                                        " are not known, expected in_order or out_of_order");
  }
  *stream = new dnnl_stream{convgrad::onednn::EngineUse(engine)};
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_stream_get_engine(const_dnnl_stream_t stream, dnnl_engine_t* engine) {
  if (AnyNull(stream, engine)) return RefuseNull(__func__);
  *engine = stream->engine.get();
  return dnnl_success;
}

dnnl_status_t dnnl_stream_wait(dnnl_stream_t stream) {
  return stream == nullptr ? RefuseNull(__func__) : dnnl_success;
}

dnnl_status_t dnnl_stream_destroy(dnnl_stream_t stream) {
  delete stream;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_allocator_create(dnnl_graph_allocator_t* allocator,
                                          dnnl_graph_host_allocate_f host_malloc,
                                          dnnl_graph_host_deallocate_f host_free) try {
  if (allocator == nullptr) return RefuseNull(__func__);
  *allocator =
      new dnnl_graph_allocator{AnyNull(host_malloc, host_free)
                                   ? convgrad::onednn::DefaultAllocator()
                                   : convgrad::onednn::AllocatorFunctions{host_malloc, host_free}};
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_allocator_destroy(dnnl_graph_allocator_t allocator) {
  if (allocator == nullptr) return RefuseNull(__func__);
  delete allocator;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_make_engine_with_allocator(dnnl_engine_t* engine, dnnl_engine_kind_t kind,
                                                    size_t index,
                                                    const_dnnl_graph_allocator_t alloc) try {
  if (AnyNull(engine, alloc)) return RefuseNull(__func__);
  return convgrad::onednn::MakeEngine(engine, kind, index, alloc->functions);
} catch (...) {
  return RefuseException();
}
