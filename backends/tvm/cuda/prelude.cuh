// What the kernels of every program call. NVRTC needs no header for it.
#ifdef __CUDACC_RTC__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]
__device__ static __forceinline__ unsigned short tj_float_to_half(float v) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
__device__ static __forceinline__ float tj_half_to_float(unsigned short h) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
  return v;
}
template <bool BF16> __device__ static __forceinline__ void tj_mma(float* c, const unsigned* a, const unsigned* b) {
  if (BF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
template <bool BF16> static void tj_mma(float* c, const unsigned* a, const unsigned* b) { emulated_mma(c, a, b, BF16); }
static inline unsigned short tj_float_to_half(float v) { return __emulated_float_to_half(v); }
static inline float tj_half_to_float(unsigned short h) { return __emulated_half_to_float(h); }
#endif

template <class To, class From> __device__ static __forceinline__ To tj_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits of another width");
  To made;
  memcpy(&made, &v, sizeof(To));
  return made;
}
template <class T> __device__ static __forceinline__ T tj_smaller(T a, T b) { return a < b ? a : b; }
template <class T> __device__ static __forceinline__ T tj_larger(T a, T b) { return a > b ? a : b; }
template <class T> __device__ static __forceinline__ T tj_absolute(T a) { return a < 0 ? (T)(0 - a) : a; }
template <class T> __device__ static __forceinline__ T tj_floor_div(T a, T b) {
  T q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T> __device__ static __forceinline__ T tj_floor_mod(T a, T b) {
  T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ static __forceinline__ float tj_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ static __forceinline__ double tj_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
template <class T> __device__ static __forceinline__ T tj_muladd(T a, T b, T c) { return tj_fma(a, b, c); }
__device__ static __forceinline__ float tj_sqrt(float a) { return sqrtf(a); }
__device__ static __forceinline__ double tj_sqrt(double a) { return sqrt(a); }
__device__ static __forceinline__ float tj_fabs(float a) { return fabsf(a); }
__device__ static __forceinline__ double tj_fabs(double a) { return fabs(a); }
__device__ static __forceinline__ float tj_copysign(float a, float b) { return copysignf(a, b); }
__device__ static __forceinline__ double tj_copysign(double a, double b) { return copysign(a, b); }
__device__ static __forceinline__ float tj_floor(float a) { return floorf(a); }
__device__ static __forceinline__ double tj_floor(double a) { return floor(a); }
__device__ static __forceinline__ float tj_ceil(float a) { return ceilf(a); }
__device__ static __forceinline__ double tj_ceil(double a) { return ceil(a); }
__device__ static __forceinline__ float tj_trunc(float a) { return truncf(a); }
__device__ static __forceinline__ double tj_trunc(double a) { return trunc(a); }
__device__ static __forceinline__ float tj_rint(float a) { return rintf(a); }
__device__ static __forceinline__ double tj_rint(double a) { return rint(a); }
__device__ static __forceinline__ float tj_round(float a) { return roundf(a); }
__device__ static __forceinline__ double tj_round(double a) { return round(a); }
__device__ static __forceinline__ float tj_fmod(float a, float b) { return fmodf(a, b); }
__device__ static __forceinline__ double tj_fmod(double a, double b) { return fmod(a, b); }
// NaN if either is, and +0 above -0.
template <class T> __device__ static __forceinline__ T tj_maximum(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  return a == b ? (tj_copysign((T)1, a) < 0 ? b : a) : a > b ? a : b;
}
template <class T> __device__ static __forceinline__ T tj_minimum(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  return a == b ? (tj_copysign((T)1, a) < 0 ? a : b) : a < b ? a : b;
}
template <class T> __device__ static __forceinline__ T tj_maxnum(T a, T b) { return a != a ? b : b != b ? a : a > b ? a : b; }
template <class T> __device__ static __forceinline__ T tj_minnum(T a, T b) { return a != a ? b : b != b ? a : a < b ? a : b; }
template <class T> __device__ static __forceinline__ T tj_population_count(T a) {
  if (sizeof(T) == 8) return (T)__popcll((unsigned long long)a);
  return (T)__popc((unsigned)a & (sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1));
}
template <class T> __device__ static __forceinline__ T tj_leading_zeros(T a) {
  if (sizeof(T) == 8) return (T)__clzll((long long)a);
  unsigned bits = (unsigned)a & (sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1);
  return (T)(__clz((int)bits) - (32 - 8 * (int)sizeof(T)));
}
template <class T> __device__ static __forceinline__ T tj_trailing_zeros(T a) {
  T lowest = a & (0 - a);
  return a == 0 ? (T)(8 * sizeof(T)) : (T)(8 * sizeof(T) - 1 - tj_leading_zeros(lowest));
}
__device__ static __forceinline__ int tj_funnel_left(int a, int b, int n) {
  unsigned s = (unsigned)n & 31u;
  return (int)(s ? (unsigned)a << s | (unsigned)b >> (32 - s) : (unsigned)a);
}
__device__ static __forceinline__ long long tj_funnel_left(long long a, long long b, long long n) {
  unsigned s = (unsigned)n & 63u;
  return (long long)(s ? (unsigned long long)a << s | (unsigned long long)b >> (64 - s) : (unsigned long long)a);
}
template <class T> __device__ static __forceinline__ void tj_atomic_add(T* p, T v) { atomicAdd(p, v); }
__device__ static __forceinline__ void tj_atomic_add(long long* p, long long v) {
  atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
template <class T> __device__ static __forceinline__ void tj_atomic_max(T* p, T v) { atomicMax(p, v); }
template <class T> __device__ static __forceinline__ void tj_atomic_min(T* p, T v) { atomicMin(p, v); }
template <class T> __device__ static __forceinline__ void tj_atomic_and(T* p, T v) { atomicAnd(p, v); }
template <class T> __device__ static __forceinline__ void tj_atomic_or(T* p, T v) { atomicOr(p, v); }
__device__ static __forceinline__ void tj_atomic_and(long long* p, long long v) {
  atomicAnd((unsigned long long*)p, (unsigned long long)v);
}
__device__ static __forceinline__ void tj_atomic_or(long long* p, long long v) {
  atomicOr((unsigned long long*)p, (unsigned long long)v);
}

// A warp's sums of products of a slice: fragments of 16 rows of `a` with ones of 8 columns of `b`,
// whose lines of STRIDE numbers hold what is summed.
template <int ROWS, int COLUMNS, int DEPTH, int STRIDE, bool BF16>
__device__ static __forceinline__ void tj_mma_tile(float* sums, const unsigned short* a, const unsigned short* b) {
  int lane = threadIdx.x & 31, own = (lane >> 2) * STRIDE + (lane & 3) * 2;
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    unsigned left[ROWS][4], right[COLUMNS][2];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
      for (int part = 0; part < 4; part++)
        left[i][part] = *(const unsigned*)(a + own + (i * 16 + part % 2 * 8) * STRIDE + k + part / 2 * 8);
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
#pragma unroll
      for (int part = 0; part < 2; part++)
        right[j][part] = *(const unsigned*)(b + own + j * 8 * STRIDE + k + part * 8);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS; j++) tj_mma<BF16>(sums + (i * COLUMNS + j) * 4, left[i], right[j]);
  }
}

// N neighbouring elements at once, if they lie at a multiple of their size.
template <int N> struct tj_words { static const bool whole = false; typedef int type; };
template <> struct tj_words<4> { static const bool whole = true; typedef int type; };
template <> struct tj_words<8> { static const bool whole = true; typedef int2 type; };
template <> struct tj_words<16> { static const bool whole = true; typedef int4 type; };
template <int N, class T> __device__ static __forceinline__ void tj_load(T* to, const T* from) {
  typedef tj_words<N * sizeof(T)> words;
  if (words::whole && (size_t)from % (N * sizeof(T)) == 0) {
    typename words::type v = *(const typename words::type*)from;
    memcpy(to, &v, words::whole ? N * sizeof(T) : 0);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++) to[i] = from[i];
}
template <int N, class T> __device__ static __forceinline__ void tj_store(T* to, const T* from) {
  typedef tj_words<N * sizeof(T)> words;
  if (words::whole && (size_t)to % (N * sizeof(T)) == 0) {
    typename words::type v;
    memcpy(&v, from, words::whole ? N * sizeof(T) : 0);
    *(typename words::type*)to = v;
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++) to[i] = from[i];
}
