// What CUDA C means to g++: included before the text that NVRTC gets. Threads, barriers, shuffles
// and atomic operations come out of emulator.cpp.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

// Says itself what it reads and writes; a call of it is one place in the code, never copied.
#define EMULATED __attribute__((no_sanitize("thread"), noipa, unused))
#define CALL_SITE __builtin_return_address(0)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("cuda_shared")))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct __attribute__((aligned(8))) int2 { int x, y; };
struct __attribute__((aligned(16))) int4 { int x, y, z, w; };

struct EmulatedThread { uint3 thread, block; dim3 threads, blocks; };
enum AccessKind { READ_ACCESS, WRITE_ACCESS, ATOMIC_ACCESS };
enum Combination { ALL_OF, ANY_OF, BALLOT };
extern "C" {
extern EmulatedThread* emulated_thread;
extern char emulated_dynamic_shared[];
void emulated_barrier(const void* site);
uint64_t emulated_vote(const void* site, unsigned mask, unsigned mine, int how);
uint64_t emulated_shuffle(const void* site, unsigned mask, uint64_t value, int from, bool orders);
void emulated_access(const void* place, size_t bytes, int kind, const void* site);
void emulated_fence();
}
#define threadIdx (emulated_thread->thread)
#define blockIdx (emulated_thread->block)
#define blockDim (emulated_thread->threads)
#define gridDim (emulated_thread->blocks)
#define warpSize 32
// The one array of dynamic shared memory: `DYNAMIC_SHARED(name);` in a kernel.
#define DYNAMIC_SHARED(name) char* const name = emulated_dynamic_shared

EMULATED static void __syncthreads() { emulated_barrier(CALL_SITE); }
EMULATED static int __syncthreads_or(int p) { return emulated_vote(CALL_SITE, 0, p != 0, ANY_OF) != 0; }
EMULATED static int __syncthreads_and(int p) { return emulated_vote(CALL_SITE, 0, p != 0, ALL_OF) != 0; }
EMULATED static int __syncthreads_count(int p) { return int(emulated_vote(CALL_SITE, 0, p != 0, BALLOT)); }
EMULATED static void __syncwarp(unsigned mask = ~0u) { emulated_shuffle(CALL_SITE, mask, 0, -1, true); }
EMULATED static unsigned __ballot_sync(unsigned mask, int p) { return unsigned(emulated_vote(CALL_SITE, mask, p != 0, BALLOT)); }
EMULATED static int __any_sync(unsigned mask, int p) { return emulated_vote(CALL_SITE, mask, p != 0, BALLOT) != 0; }
EMULATED static int __all_sync(unsigned mask, int p) { return unsigned(emulated_vote(CALL_SITE, mask, p != 0, BALLOT)) == mask; }
EMULATED static void __threadfence() { emulated_fence(); }
static inline void __threadfence_block() {}

static inline int emulated_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}
template <class T> EMULATED T emulated_take(const void* site, unsigned mask, T value, int from) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = emulated_shuffle(site, mask, bits, from, false);
  memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T> EMULATED T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return emulated_take(CALL_SITE, mask, value, (emulated_lane() & ~(width - 1)) + (lane & (width - 1)));
}
template <class T> EMULATED T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int inside = (emulated_lane() & (width - 1)) + int(delta) < width;
  return emulated_take(CALL_SITE, mask, value, emulated_lane() + (inside ? int(delta) : 0));
}
template <class T> EMULATED T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int inside = (emulated_lane() & (width - 1)) >= int(delta);
  return emulated_take(CALL_SITE, mask, value, emulated_lane() - (inside ? int(delta) : 0));
}
template <class T> EMULATED T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  int other = emulated_lane() ^ bits;
  return emulated_take(CALL_SITE, mask, value, other / width == emulated_lane() / width ? other : emulated_lane());
}

template <class T, class F>
__attribute__((no_sanitize("thread"), always_inline)) static inline T emulated_update(const void* site, T* place, F f) {
  emulated_access(place, sizeof(T), ATOMIC_ACCESS, site);
  T before = *place;
  *place = f(before);
  return before;
}
template <class T> EMULATED T atomicAdd(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return T(o + v); }); }
template <class T> EMULATED T atomicMax(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return o < v ? v : o; }); }
template <class T> EMULATED T atomicMin(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return v < o ? v : o; }); }
template <class T> EMULATED T atomicAnd(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return o & v; }); }
template <class T> EMULATED T atomicOr(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return o | v; }); }
template <class T> EMULATED T atomicXor(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return o ^ v; }); }
template <class T> EMULATED T atomicExch(T* p, T v) { return emulated_update(CALL_SITE, p, [&](T) { return v; }); }
template <class T> EMULATED T atomicCAS(T* p, T c, T v) { return emulated_update(CALL_SITE, p, [&](T o) { return o == c ? v : o; }); }

template <class To, class From> static inline To emulated_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "bits of another width");
  To made;
  memcpy(&made, &value, sizeof(To));
  return made;
}
static inline float __int_as_float(int v) { return emulated_bits<float>(v); }
static inline int __float_as_int(float v) { return emulated_bits<int>(v); }
static inline float __uint_as_float(unsigned v) { return emulated_bits<float>(v); }
static inline unsigned __float_as_uint(float v) { return emulated_bits<unsigned>(v); }
static inline double __longlong_as_double(long long v) { return emulated_bits<double>(v); }
static inline long long __double_as_longlong(double v) { return emulated_bits<long long>(v); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
static inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
// Halves are bits in an integer: PTX's cvt.rn.f16.f32 and its inverse.
static inline unsigned short __emulated_float_to_half(float v) { return emulated_bits<unsigned short>((_Float16)v); }
static inline float __emulated_half_to_float(unsigned short v) { return (float)emulated_bits<_Float16>(v); }

// mma.sync.m16n8k16 with sums in f32: a lane's results are rows g and g + 8, columns 2t and 2t + 1,
// where g is the lane's number divided by four and t the rest. Lanes fetch each other's fragments.
EMULATED static void emulated_mma(float* c, const unsigned* a, const unsigned* b, bool bf16) {
  const void* site = CALL_SITE;
  int lane = emulated_lane(), g = lane >> 2, t = lane & 3;
  float left[2][16], right[2][16];
  auto put = [bf16](float* to, unsigned pair) {
    for (int i = 0; i < 2; i++) {
      unsigned short bits = (unsigned short)(pair >> 16 * i);
      to[i] = bf16 ? emulated_bits<float>(unsigned(bits) << 16) : __emulated_half_to_float(bits);
    }
  };
  for (int part = 0; part < 4; part++)
    for (int from = 0; from < 4; from++)
      put(left[part % 2] + part / 2 * 8 + from * 2, emulated_take(site, ~0u, a[part], g * 4 + from));
  for (int column = 0; column < 2; column++)
    for (int part = 0; part < 2; part++)
      for (int from = 0; from < 4; from++)
        put(right[column] + part * 8 + from * 2, emulated_take(site, ~0u, b[part], (2 * t + column) * 4 + from));
  for (int row = 0; row < 2; row++)
    for (int column = 0; column < 2; column++) {
      double sum = c[row * 2 + column];
      for (int k = 0; k < 16; k++) sum += double(left[row][k]) * right[column][k];
      c[row * 2 + column] = float(sum);
    }
}

// Calls a kernel with arguments that are pointed to, as cuLaunchKernel gets them; or says how large
// each of them is.
template <class... A, size_t... I>
EMULATED static void emulated_call(void (*f)(A...), void** p, size_t* sizes, std::index_sequence<I...>) {
  if (!sizes) return f(*static_cast<A*>(p[I])...);
  size_t each[] = {sizeof(A)..., 0};
  for (size_t s : each) *sizes++ = s;
}
template <class... A> EMULATED static void emulated_call(void (*f)(A...), void** p, size_t* sizes) {
  emulated_call(f, p, sizes, std::index_sequence_for<A...>());
}
#define EMULATED_KERNEL(name)                                                                    \
  extern "C" __attribute__((no_sanitize("thread"))) void emulated_kernel_##name(void** p, size_t* s) { \
    emulated_call(name, p, s);                                                                   \
  }
extern "C" char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" __attribute__((used)) inline void emulated_shared(char** from, char** to) {
  *from = __start_cuda_shared;
  *to = __stop_cuda_shared;
}
extern "C" __attribute__((used)) void (*const emulated_shared_of)(char**, char**) = emulated_shared;
