// Handlers as people write them for JAX: attributes of all types, states, scratch memory, threads.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cstdlib>
#include <stdexcept>
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error rms_norm(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.dimensions().size() == 0) return ffi::Error::InvalidArgument("x must be an array");
  int64_t n = x.dimensions().back();
  for (size_t row = 0; row < x.element_count(); row += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x.typed_data()[row + i] * x.typed_data()[row + i];
    float scale = 1 / std::sqrt(sum / n + eps);
    for (int64_t i = 0; i < n; ++i) y->typed_data()[row + i] = x.typed_data()[row + i] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, rms_norm,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// The weighted sum of two vectors, and its length; a tuple of results of two types.
static ffi::Error weighted(std::string_view mode, bool negate, ffi::Span<const int64_t> weights,
                           ffi::Dictionary options, ffi::Buffer<ffi::F64> a,
                           ffi::Buffer<ffi::F64> b, ffi::ResultBuffer<ffi::F64> sum,
                           ffi::ResultBuffer<ffi::S32> length) {
  if (mode != "sum") return ffi::Error(ffi::ErrorCode::kUnimplemented, std::string(mode));
  auto shift = options.get<double>("shift");
  if (shift.has_error()) return shift.error();
  for (size_t i = 0; i < a.element_count(); ++i) {
    double value = weights[0] * a.typed_data()[i] + weights[1] * b.typed_data()[i] + *shift;
    sum->typed_data()[i] = negate ? -value : value;
  }
  length->typed_data()[0] = a.element_count();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Weighted, weighted,
                              ffi::Ffi::Bind()
                                  .Attr<std::string_view>("mode")
                                  .Attr<bool>("negate")
                                  .Attr<ffi::Span<const int64_t>>("weights")
                                  .Attr<ffi::Dictionary>("options")
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// Any type, in place where the caller shares the memory of operand and result.
static ffi::Error in_place(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  if (x.untyped_data() != y->untyped_data()) return ffi::Error::Internal("the memory is not shared");
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(InPlace, in_place,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int64_t runs = 0;
  ~Counter();
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
static std::atomic<int> counters{0};
Counter::~Counter() { --counters; }
extern "C" int living_counters() { return counters; }

static ffi::ErrorOr<std::unique_ptr<Counter>> make_counter() {
  ++counters;
  return std::make_unique<Counter>();
}
static ffi::Error count(Counter* counter, ffi::ResultBuffer<ffi::S64> runs) {
  runs->typed_data()[0] = ++counter->runs;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeCounter, make_counter, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Count, count, ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S64>>());
extern "C" XLA_FFI_TypeId* counter_id() { return &Counter::id; }
extern "C" XLA_FFI_TypeInfo* counter_info() { return &Counter::info; }

// A state that lives for one run: prepare leaves it, execute finds it.
static ffi::ErrorOr<std::unique_ptr<Counter>> prepare_counter() {
  ++counters;
  return std::make_unique<Counter>();
}
static ffi::Error count_prepared(Counter* counter, ffi::RunId run, ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = ++counter->runs;
  y->typed_data()[1] = run.run_id;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(PrepareCounter, prepare_counter, ffi::Ffi::BindPrepare());
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountPrepared, count_prepared,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::Prepared<Counter>>()
                                  .Ctx<ffi::RunId>()
                                  .Ret<ffi::Buffer<ffi::S64>>());

// The rank and sizes of the first operand, then those of the second, as far as there is room.
static ffi::Error shapes(ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::ResultBuffer<ffi::S64> y) {
  std::vector<int64_t> found;
  for (auto each : {a, b}) {
    found.push_back(each.dimensions().size());
    for (int64_t size : each.dimensions()) found.push_back(size);
  }
  for (size_t i = 0; i < y->element_count(); ++i)
    y->typed_data()[i] = found[i % 6 < found.size() ? i % 6 : found.size() - 1];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Shapes, shapes,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::S64>>());

// Writes one element after the result, and one before it.
static ffi::Error overrun(int64_t by, ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] = x.typed_data()[i];
  if (by > 0) y->typed_data()[y->element_count() - 1 + by] = 0;
  if (by < 0) y->typed_data()[by] = 0;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Overrun, overrun,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("by")
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>());

// Throws, ends the process, reads after its operand, or never returns.
static ffi::Error misbehave(int64_t how, ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  if (how == 1) throw std::runtime_error("thrown");
  if (how == 2) std::exit(3);
  while (how == 4) {
  }
  volatile double *beyond = x.typed_data() + x.element_count();
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] = how == 3 ? beyond[512] : 0;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Misbehave, misbehave,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("how")
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>());

// Writes to its operand.
static ffi::Error spoil(ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] = x.typed_data()[i]++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Spoil, spoil, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>());

// Adds 1 to what the result's memory held before the call.
static ffi::Error increment(ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Increment, increment,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>());

// The sum of a vector, by tasks of a thread pool, in scratch memory.
static ffi::Future sum_in_threads(ffi::ThreadPool pool, ffi::ScratchAllocator scratch,
                                  ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  auto memory = scratch.Allocate(sizeof(double) * 2, 64);
  if (!memory.has_value()) {
    promise.SetError(ffi::Error::Internal("no scratch memory"));
    return future;
  }
  bool aligned = reinterpret_cast<uintptr_t>(*memory) % 64 == 0;
  pool.Schedule([=]() mutable {
    double sum = 0;
    for (size_t i = 0; i < x.element_count(); ++i) sum += x.typed_data()[i];
    y->typed_data()[0] = sum;
    if (aligned && sum >= 0) promise.SetAvailable();
    else promise.SetError(ffi::Error::Internal("a negative sum"));
  });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumInThreads, sum_in_threads,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>());

// The sum of a vector, by one task of a thread pool.
static ffi::Future sum_in_pool(ffi::ThreadPool pool, ffi::Buffer<ffi::F64> x,
                               ffi::ResultBuffer<ffi::F64> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  pool.Schedule([=]() mutable {
    double sum = 0;
    for (size_t i = 0; i < x.element_count(); ++i) sum += x.typed_data()[i];
    y->typed_data()[0] = sum;
    promise.SetAvailable();
  });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumInPool, sum_in_pool,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>());

// A thousand tasks of a pool, counted; the last one ends the call.
static ffi::Future many_tasks(ffi::ThreadPool pool, ffi::ResultBuffer<ffi::S64> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  auto shared = std::make_shared<ffi::Promise>(std::move(promise));
  auto done = std::make_shared<std::atomic<int64_t>>(0);
  for (int i = 0; i < 1000; ++i)
    pool.Schedule([=]() mutable {
      if (++*done < 1000) return;
      y->typed_data()[0] = pool.num_threads() > 0 ? done->load() : 0;
      shared->SetAvailable();
    });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    ManyTasks, many_tasks, ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Ret<ffi::Buffer<ffi::S64>>());

// Leaves no state, and refuses to begin as it is told.
static std::atomic<int> mood{0};
extern "C" void set_mood(int bad) { mood = bad; }
static ffi::Error moody() {
  return mood ? ffi::Error(ffi::ErrorCode::kUnavailable, "in a bad mood") : ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Moody, moody, ffi::Ffi::BindInstantiate());
static ffi::Error shapeless(ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = 7;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Shapeless, shapeless,
                              ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::S64>>());

// Asks for a stream, which a CPU has not.
static ffi::Error streams(void *, ffi::ResultBuffer<ffi::S64>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(Streams, streams,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void *>>()
                                  .Ret<ffi::Buffer<ffi::S64>>());

// A handler of a library that was compiled for another version of the interface.
extern "C" XLA_FFI_Error* OfTheFuture(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start) {
    auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    metadata->api_version.major_version = 1;
    metadata->api_version.minor_version = 0;
  }
  return nullptr;
}
extern "C" XLA_FFI_Error* WithoutVersion(XLA_FFI_CallFrame*) { return nullptr; }
