// A libcuda.so.1 without a GPU: device memory is host memory, a module is a shared library that g++
// made of CUDA C, and a launch goes to emulator.cpp. Streams run at once, but for captures, which
// become graphs. Variables of the environment, read by cuInit, make it another machine:
//
//   EMULATED_GRAPHS=0    EMULATED_DEVICES=0   EMULATED_VERSION=11040   EMULATED_MEMORY=1000000   EMULATED_ORDER=2
#include "emulator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

// Threads of the program may call the driver at once; the emulated devices do one thing at a time.
static std::recursive_mutex everything;
#define LOCKED std::lock_guard<std::recursive_mutex> locked(everything)

namespace {

enum Status {
  OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, BAD_DEVICE = 101, BAD_IMAGE = 200,
  BAD_CONTEXT = 201, NO_BINARY = 209, BAD_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILED = 719, CAPTURING = 900,
};
const std::map<int, const char*> NAMES{
    {INVALID, "CUDA_ERROR_INVALID_VALUE"}, {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"}, {BAD_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {BAD_IMAGE, "CUDA_ERROR_INVALID_IMAGE"}, {BAD_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {BAD_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}, {CAPTURING, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
};
// By the numbers of CUdevice_attribute.
const std::map<int, int> ATTRIBUTES{{1, 1024}, {8, 49152}, {10, 32}, {16, 132}, {39, 2048}, {75, 9},
                                    {76, 0}, {81, 233472}, {82, 65536}, {97, 232448}};

using Work = std::function<int()>;
struct Context { int device; bool lost = false; int failure = OK; std::vector<void*> memory; };
struct Function { std::string name; Kernel kernel; char *shared, *shared_end; };
struct Stream { bool capturing = false; std::vector<Work> work; };
struct Graph { std::vector<Work> work; };
struct Allocation { size_t size; Context* context; bool host; };

int devices = 2, version = 13000;
size_t memory_bytes = size_t(1) << 30, used_bytes;
std::map<int, Context*> contexts;
thread_local std::vector<Context*> current;
std::map<uint64_t, Allocation> allocations;  // by their addresses
Stream default_stream;

Stream& at(void* s) { return s ? *(Stream*)s : default_stream; }
Context* now() { return current.empty() ? nullptr : current.back(); }
int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}
int ready() { return !now() || now()->lost ? BAD_CONTEXT : now()->failure; }
int doing(void* s, Work work) {
  if (int status = ready()) return status;
  if (!at(s).capturing) return work();
  at(s).work.push_back(std::move(work));
  return OK;
}
bool inside(uint64_t p, size_t n) {
  auto found = allocations.upper_bound(p);
  if (n == 0) return true;
  if (found == allocations.begin()) return false;
  --found;
  return !found->second.host && p + n <= found->first + found->second.size;
}
// Memory with a page on both sides that belongs to nobody.
char* fenced(size_t n) {
  char* m = (char*)malloc(n + 12288);
  if (!m) return nullptr;
  char* made = (char*)(((uint64_t)m + 8191) & ~4095ull);
  ((char**)made)[-1] = m;
  memset(made, 0xFF, n);  // NaN, and no number that a test hopes for
  return made;
}
int release(uint64_t p) {
  auto found = allocations.find(p);
  if (found == allocations.end()) return INVALID;
  used_bytes -= found->second.size;
  memset((void*)p, 0xFE, found->second.size);
  disown((char*)p, found->second.size);
  allocations.erase(found);
  free(((char**)p)[-1]);
  return OK;
}

}  // namespace

extern "C" {
unsigned emulated_order = 0;
unsigned emulated_launches = 0, emulated_graphs = 0;

int cuInit(unsigned) { LOCKED;
  devices = number("EMULATED_DEVICES", devices);
  version = number("EMULATED_VERSION", version);
  memory_bytes = number("EMULATED_MEMORY", int(memory_bytes));
  emulated_order = number("EMULATED_ORDER", 0);
  return devices ? OK : NO_DEVICE;
}
int cuGetProcAddress_v2(const char* name, void** f, int, uint64_t, int* found) { LOCKED;  // how cuda-bindings asks
  *f = dlsym(RTLD_DEFAULT, (std::string(name) + "_v2").c_str());
  if (!*f) *f = dlsym(RTLD_DEFAULT, name);
  if (found) *found = *f ? 0 : 1;
  return *f ? OK : NOT_FOUND;
}
int cuDriverGetVersion(int* v) { LOCKED; return *v = version, OK; }
int cuGetErrorName(int status, const char** text) { LOCKED;
  auto found = NAMES.find(status);
  return found == NAMES.end() ? INVALID : (*text = found->second, OK);
}
int cuDeviceGetCount(int* n) { LOCKED; return *n = devices, OK; }
int cuDeviceGet(int* d, int n) { LOCKED; return n < 0 || n >= devices ? BAD_DEVICE : (*d = n, OK); }
int cuDeviceGetName(char* text, int n, int) { LOCKED; return snprintf(text, n, "emulated"), OK; }
int cuDeviceTotalMem_v2(size_t* n, int) { LOCKED; return *n = memory_bytes, OK; }
int cuDeviceGetAttribute(int* v, int a, int) { LOCKED;
  auto found = ATTRIBUTES.find(a);
  return found == ATTRIBUTES.end() ? INVALID : (*v = found->second, OK);
}
int cuDevicePrimaryCtxRetain(void** c, int d) { LOCKED;
  Context*& made = contexts[d];
  if (!made) made = new Context{d};
  return *c = made, OK;
}
int cuDevicePrimaryCtxReset_v2(int d) { LOCKED;
  if (!contexts[d]) return OK;
  contexts[d]->lost = true;
  std::vector<uint64_t> lost;
  for (auto& [p, a] : allocations)
    if (a.context == contexts[d] && !a.host) lost.push_back(p);
  for (uint64_t p : lost) release(p);
  contexts[d] = nullptr;
  return OK;
}
int cuCtxGetCurrent(void** c) { LOCKED; return *c = now(), OK; }
int cuCtxSetCurrent(void* c) { LOCKED;
  if (!current.empty()) current.pop_back();
  return current.push_back((Context*)c), OK;
}
int cuCtxPushCurrent_v2(void* c) { LOCKED; return c ? (current.push_back((Context*)c), OK) : BAD_CONTEXT; }
int cuCtxPopCurrent_v2(void** c) { LOCKED;
  if (current.empty()) return BAD_CONTEXT;
  return *c = current.back(), current.pop_back(), OK;
}
int cuCtxSynchronize() { LOCKED; return ready(); }
int cuStreamCreate(void** s, unsigned) { LOCKED; return *s = new Stream, ready(); }
int cuStreamSynchronize(void* s) { LOCKED; return at(s).capturing ? CAPTURING : ready(); }
int cuStreamWaitEvent(void*, void*, unsigned) { LOCKED; return ready(); }
int cuEventCreate(void** e, unsigned) { LOCKED; return *e = malloc(8), ready(); }
int cuEventRecord(void*, void*) { LOCKED; return ready(); }
int cuEventSynchronize(void*) { LOCKED; return ready(); }
int cuEventElapsedTime(float* t, void*, void*) { LOCKED; return *t = 1, ready(); }
int cuEventDestroy_v2(void* e) { LOCKED; return free(e), OK; }

int cuMemGetInfo_v2(size_t* unused, size_t* total) { LOCKED;
  return *unused = memory_bytes - used_bytes, *total = memory_bytes, ready();
}
int cuMemAlloc_v2(uint64_t* p, size_t n) { LOCKED;
  if (int status = ready()) return status;
  if (!n) return INVALID;
  if (n > memory_bytes - used_bytes) return NO_MEMORY;
  char* made = fenced(n);
  if (!made) return NO_MEMORY;
  *p = (uint64_t)made, used_bytes += n;
  allocations[*p] = {n, now(), false};
  own(made, n, false, false);
  return OK;
}
int cuMemFree_v2(uint64_t p) { LOCKED; return release(p); }
int cuMemAllocAsync(uint64_t* p, size_t n, void*) { LOCKED; return cuMemAlloc_v2(p, n); }
int cuMemFreeAsync(uint64_t p, void*) { LOCKED; return release(p); }
int cuMemHostAlloc(void** p, size_t n, unsigned) { LOCKED;
  *p = fenced(n);
  return *p ? ready() : int(NO_MEMORY);
}
int cuMemFreeHost(void* p) { LOCKED; return free(((char**)p)[-1]), OK; }
int cuPointerGetAttribute(void* made, int a, uint64_t p) { LOCKED;
  auto found = allocations.upper_bound(p);
  if (a != 9 || found == allocations.begin()) return INVALID;
  --found;
  if (p >= found->first + found->second.size) return INVALID;
  return *(int*)made = found->second.context->device, OK;
}
int cuMemcpyHtoDAsync_v2(uint64_t d, const void* h, size_t n, void* s) { LOCKED;
  if (!inside(d, n)) return INVALID;
  return doing(s, [=] { return memcpy((void*)d, h, n), mark_known((char*)d, n), OK; });
}
int cuMemcpyDtoHAsync_v2(void* h, uint64_t d, size_t n, void* s) { LOCKED;
  return !inside(d, n) ? INVALID : doing(s, [=] { return memcpy(h, (void*)d, n), OK; });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* s) { LOCKED;
  if (!inside(to, n) || !inside(from, n)) return INVALID;
  return doing(s, [=] { return memcpy((void*)to, (void*)from, n), mark_known((char*)to, n), OK; });
}
int cuMemsetD8Async(uint64_t d, unsigned char v, size_t n, void* s) { LOCKED;
  if (!inside(d, n)) return INVALID;
  return doing(s, [=] { return memset((void*)d, v, n), mark_known((char*)d, n), OK; });
}

int cuModuleLoadData(void** module, const void* image) { LOCKED;  // an ELF file ends with its section table
  const char* e = (const char*)image;
  if (int status = ready()) return status;
  if (memcmp(e, "\177ELF", 4)) return BAD_IMAGE;
  size_t size = *(uint64_t*)(e + 40) + size_t(*(uint16_t*)(e + 58)) * *(uint16_t*)(e + 60);
  char name[] = P_tmpdir "/emulated-XXXXXX";
  int file = mkstemp(name);
  bool wrote = file >= 0 && write(file, e, size) == ssize_t(size);
  close(file);
  *module = wrote ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!*module) fprintf(stderr, "cuModuleLoadData: %s\n", dlerror());
  unlink(name);
  if (!*module) return BAD_IMAGE;
  int* arch = (int*)dlsym(*module, "emulated_arch");
  return arch && *arch / 10 == 9 ? OK : NO_BINARY;
}
int cuModuleUnload(void*) { LOCKED; return OK; }
int cuModuleGetFunction(void** f, void* module, const char* name) { LOCKED;
  Kernel kernel = (Kernel)dlsym(module, (std::string("emulated_kernel_") + name).c_str());
  auto shared = (void (**)(char**, char**))dlsym(module, "emulated_shared_of");
  if (!kernel) return NOT_FOUND;
  Function* made = new Function{name, kernel, nullptr, nullptr};
  if (shared) (*shared)(&made->shared, &made->shared_end);
  return *f = made, OK;
}
int cuFuncSetAttribute(void*, int, int v) { LOCKED; return v > 232448 ? INVALID : OK; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned dynamic, void* s, void** params, void**) { LOCKED;
  Function* f = (Function*)function;
  uint64_t threads = uint64_t(bx) * by * bz;
  if (!gx || !gy || !gz || gx > 0x7fffffff || gy > 65535 || gz > 65535) return INVALID;
  if (!threads || threads > 1024 || bz > 64 || dynamic > 232448) return INVALID;
  size_t sizes[256];
  f->kernel(nullptr, sizes);
  auto held = std::make_shared<std::vector<std::string>>();  // arguments are read now, even by a capture
  for (size_t i = 0; sizes[i]; i++) held->emplace_back((char*)params[i], sizes[i]);
  Context* context = now();
  return doing(s, [=] {
    std::vector<void*> p;
    for (auto& bytes : *held) p.push_back(bytes.data());
    emulated_launches++;
    Launch given{f->name, f->kernel, p.data(), {gx, gy, gz}, {bx, by, bz}, f->shared, f->shared_end, dynamic};
    // A kernel that fails is found out by the next call, and the context is of no use afterwards.
    if (!launch(given, emulated_order)) context->failure = LAUNCH_FAILED;
    return OK;
  });
}

// For look-alikes of other libraries: their work is queued as that of the driver is; whether bytes
// are a device's; and what they have written.
int emulated_queue(void* s, std::function<int()>* work) { LOCKED; return doing(s, *work); }
bool emulated_is_memory(uint64_t p, size_t n) { return inside(p, n); }
void emulated_written(uint64_t p, size_t n) { mark_known((char*)p, n); }

int cuStreamBeginCapture_v2(void* s, int) { LOCKED;
  if (!s || !number("EMULATED_GRAPHS", 1)) return CAPTURING;  // nor does the default stream capture
  return at(s).capturing = true, at(s).work.clear(), ready();
}
int cuStreamEndCapture(void* s, void** g) { LOCKED; return at(s).capturing = false, *g = new Graph{at(s).work}, ready(); }
int cuGraphInstantiateWithFlags(void** made, void* g, unsigned long long) { LOCKED; return *made = new Graph(*(Graph*)g), OK; }
int cuGraphLaunch(void* g, void* s) { LOCKED;
  emulated_graphs++;
  for (auto& work : ((Graph*)g)->work)
    if (int status = doing(s, work)) return status;
  return OK;
}
int cuGraphDestroy(void* g) { LOCKED; return delete (Graph*)g, OK; }
int cuGraphExecDestroy(void* g) { LOCKED; return delete (Graph*)g, OK; }
}
