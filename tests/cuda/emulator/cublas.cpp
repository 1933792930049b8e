// A libcublasLt.so without a GPU: it multiplies matrices in the host's memory, which is that of the
// emulated devices, on their streams. What the library's manual forbids is refused.
//
//   EMULATED_ALGORITHMS=none      it has no algorithm for anything
//   EMULATED_ALGORITHMS=failing   those that it has do not run
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

extern "C" {
int emulated_queue(void* stream, std::function<int()>* work);
bool emulated_is_memory(uint64_t p, size_t n);
void emulated_written(uint64_t p, size_t n);
int cuCtxGetCurrent(void** c);
}

namespace {

enum Status { OK = 0, NOT_INITIALIZED = 1, INVALID = 7, FAILED = 13, NOT_SUPPORTED = 15 };
enum Type { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
using Number = std::complex<double>;

struct Handle { void* context; };
struct Description { int compute, scale, turned[2] = {0, 0}, epilogue = 1; uint64_t bias = 0; };
struct Layout { int type; uint64_t rows, columns; int64_t stride; int batches = 1; int64_t step = 0; };
struct Preference { uint64_t workspace = 0; uint32_t alignment[4] = {256, 256, 256, 256}; };
struct Result { uint64_t algorithm[8]; size_t workspace; int status; float waves; int reserved[4]; };

size_t bytes(int type) {
  switch (type) {
    case R_32F: return 4;
    case R_64F: case C_32F: return 8;
    case C_64F: return 16;
    default: return 2;
  }
}
Number read(uint64_t p, int64_t at, int type) {
  const char* from = (const char*)p + at * bytes(type);
  if (type == R_64F) return *(const double*)from;
  if (type == R_32F) return *(const float*)from;
  if (type == R_16F) return (double)*(const _Float16*)from;
  if (type == C_64F) return *(const Number*)from;
  if (type == C_32F) return Number(*(const std::complex<float>*)from);
  uint32_t word = uint32_t(*(const uint16_t*)from) << 16;
  float v;
  memcpy(&v, &word, 4);
  return v;
}
void write(uint64_t p, int64_t at, int type, Number v) {
  char* to = (char*)p + at * bytes(type);
  if (type == R_64F) *(double*)to = v.real();
  else if (type == R_32F) *(float*)to = v.real();
  else if (type == R_16F) *(_Float16*)to = v.real();
  else if (type == C_64F) *(Number*)to = v;
  else if (type == C_32F) *(std::complex<float>*)to = std::complex<float>(v);
  else {
    float f = v.real();
    uint32_t word;
    memcpy(&word, &f, 4);
    *(uint16_t*)to = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
  }
}
size_t extent(const Layout& l) {
  return ((l.batches - 1) * l.step + (l.columns - 1) * l.stride + l.rows) * bytes(l.type);
}
bool fits(const Description& d, const Layout& a, const Layout& b, const Layout& c) {
  uint64_t m = d.turned[0] ? a.columns : a.rows, k = d.turned[0] ? a.rows : a.columns;
  uint64_t n = d.turned[1] ? b.rows : b.columns, kb = d.turned[1] ? b.columns : b.rows;
  bool is_complex = d.scale == C_32F || d.scale == C_64F;
  bool is_double = d.scale == R_64F || d.scale == C_64F;
  if (is_double != (d.compute == 70) || is_complex != (a.type == C_32F || a.type == C_64F)) return false;
  if (d.compute == 77 && a.type != R_32F) return false;
  if (d.compute != 68 && d.compute != 70 && d.compute != 77) return false;
  if (d.epilogue == 4 && (is_double || is_complex || !d.bias)) return false;
  for (auto& l : {a, b, c})
    if (l.stride < int64_t(l.rows) || l.batches != c.batches || (l.batches > 1 && l.step < 0)) return false;
  return a.type == b.type && m == c.rows && n == c.columns && k == kb;
}
template <class T> int made(void** to, T* what) { return *to = what, OK; }
template <class T> int set(T& to, const void* from, size_t size) {
  if (size != sizeof(T)) return INVALID;
  return memcpy(&to, from, size), OK;
}

}  // namespace

extern "C" {
unsigned emulated_products = 0;

int cublasLtCreate(void** handle) {
  void* context = nullptr;
  cuCtxGetCurrent(&context);
  return context ? made(handle, new Handle{context}) : int(NOT_INITIALIZED);
}
const char* cublasLtGetStatusName(int status) {
  return status == INVALID ? "CUBLAS_STATUS_INVALID_VALUE" : status == FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
       : status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_NOT_INITIALIZED";
}
int cublasLtMatmulDescCreate(void** d, int compute, int scale) { return made(d, new Description{compute, scale}); }
int cublasLtMatmulDescSetAttribute(void* given, int name, const void* value, size_t size) {
  Description& d = *(Description*)given;
  if (name == 3 || name == 4) return set(d.turned[name - 3], value, size);
  if (name == 7) return set(d.epilogue, value, size);
  return name == 8 ? set(d.bias, value, size) : int(INVALID);
}
int cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  return made(l, new Layout{type, rows, columns, stride});
}
int cublasLtMatrixLayoutSetAttribute(void* given, int name, const void* value, size_t size) {
  Layout& l = *(Layout*)given;
  return name == 5 ? set(l.batches, value, size) : name == 6 ? set(l.step, value, size) : int(INVALID);
}
int cublasLtMatmulPreferenceCreate(void** p) { return made(p, new Preference); }
int cublasLtMatmulPreferenceSetAttribute(void* given, int name, const void* value, size_t size) {
  Preference& p = *(Preference*)given;
  if (name == 1) return set(p.workspace, value, size);
  return name >= 5 && name <= 8 ? set(p.alignment[name - 5], value, size) : int(INVALID);
}
int cublasLtMatmulPreferenceDestroy(void* p) { return delete (Preference*)p, OK; }
int cublasLtMatmulAlgoGetHeuristic(void*, void* d, void* a, void* b, void* c, void*, void* given, int, Result* found,
                                   int* count) {
  const char* text = getenv("EMULATED_ALGORITHMS");
  *count = 0;
  if (!fits(*(Description*)d, *(Layout*)a, *(Layout*)b, *(Layout*)c)) return INVALID;
  if (text && !strcmp(text, "none")) return NOT_SUPPORTED;
  Preference& p = *(Preference*)given;
  *found = {{p.alignment[0], p.alignment[1], p.alignment[3]}, size_t(p.workspace < 1024 ? 0 : 1024), OK, 1};
  return *count = 1, OK;
}
int cublasLtMatmul(void* h, void* given, const void* one, uint64_t pa, void* la, uint64_t pb, void* lb,
                   const void* zero, uint64_t pc, void* lc, uint64_t pd, void* ld, const uint64_t* algorithm,
                   uint64_t workspace, size_t workspace_bytes, void* stream) {
  Description d = *(Description*)given;
  Layout a = *(Layout*)la, b = *(Layout*)lb, c = *(Layout*)ld;
  void* context = nullptr;
  cuCtxGetCurrent(&context);
  if (!h || ((Handle*)h)->context != context) return NOT_INITIALIZED;
  if (!fits(d, a, b, c) || pc != pd || lc != ld) return INVALID;
  if (pa % algorithm[0] || pb % algorithm[1] || pd % algorithm[2]) return INVALID;
  const char* text = getenv("EMULATED_ALGORITHMS");
  if (text && !strcmp(text, "failing")) return FAILED;
  if (workspace_bytes < 1024 || !emulated_is_memory(workspace, workspace_bytes)) return INVALID;
  if (!emulated_is_memory(pa, extent(a)) || !emulated_is_memory(pb, extent(b))) return FAILED;
  if (!emulated_is_memory(pd, extent(c))) return FAILED;
  if (d.epilogue == 4 && !emulated_is_memory(d.bias, c.rows * bytes(c.type))) return FAILED;
  Number alpha = read((uint64_t)one, 0, d.scale), beta = read((uint64_t)zero, 0, d.scale);
  std::function<int()> work = [=] {
    emulated_products++;
    uint64_t depth = d.turned[0] ? a.rows : a.columns;
    memset((void*)workspace, 0xA5, workspace_bytes);
    for (int64_t n = 0; n < c.batches; n++)
      for (uint64_t j = 0; j < c.columns; j++)
        for (uint64_t i = 0; i < c.rows; i++) {
          Number sum = 0;
          for (uint64_t k = 0; k < depth; k++)
            sum += read(pa, n * a.step + (d.turned[0] ? k + i * a.stride : i + k * a.stride), a.type) *
                   read(pb, n * b.step + (d.turned[1] ? j + k * b.stride : k + j * b.stride), b.type);
          int64_t at = n * c.step + j * c.stride + i;
          Number before = beta == Number(0) ? Number(0) : beta * read(pd, at, c.type);
          if (d.epilogue == 4) before += read(d.bias, i, c.type);
          write(pd, at, c.type, alpha * sum + before);
        }
    emulated_written(pd, extent(c));
    return int(OK);
  };
  return emulated_queue(stream, &work) ? int(FAILED) : int(OK);
}
}
