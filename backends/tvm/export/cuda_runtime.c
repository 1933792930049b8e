/* What an exported library for CUDA devices runs on: the driver's library, found when a function is
 * first called, and the program's code and constants in each context that calls it. Needs C11 and
 * POSIX threads, no toolkit. */

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { NO_DRIVER = 2, NO_MEMORY = 3, NO_CODE = 4, FAILED = 5, MOST_CONTEXTS = 64 };

typedef uint64_t Address;
typedef void *Handle;

/* The driver's functions that are used, by their names. */
#define DRIVER(f)                                                                                \
  f(cuInit, (unsigned)) f(cuDeviceGet, (int *, int)) f(cuDevicePrimaryCtxRetain, (Handle *, int)) \
  f(cuCtxGetCurrent, (Handle *)) f(cuCtxPushCurrent_v2, (Handle)) f(cuCtxPopCurrent_v2, (Handle *)) \
  f(cuMemAlloc_v2, (Address *, size_t)) f(cuMemFree_v2, (Address))                               \
  f(cuMemAllocAsync, (Address *, size_t, Handle)) f(cuMemFreeAsync, (Address, Handle))           \
  f(cuMemcpyHtoDAsync_v2, (Address, const void *, size_t, Handle))                               \
  f(cuMemcpyDtoHAsync_v2, (void *, Address, size_t, Handle))                                     \
  f(cuStreamSynchronize, (Handle)) f(cuModuleLoadData, (Handle *, const void *))                 \
  f(cuModuleGetFunction, (Handle *, Handle, const char *)) f(cuFuncSetAttribute, (Handle, int, int)) \
  f(cuLaunchKernel, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     Handle, void **, void **))
#define DECLARE(name, parameters) static int (*name) parameters;
DRIVER(DECLARE)

/* The program in one context. */
typedef struct {
  Handle context, functions[FUNCTIONS];
  Address constants;
} Loaded;

static struct {
  pthread_mutex_t mutex;
  int known; /* 0: not looked for, 1: found, -1: there is none */
  Handle primary;
  int count;
  Loaded loaded[MOST_CONTEXTS];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int find_driver(void) {
  const char *chosen = getenv("TRACEJIT_LIBCUDA");
  void *library = dlopen(chosen && *chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return -1;
#define FIND(name, parameters)                                        \
  if (!(name = (int(*) parameters)dlsym(library, #name))) return -1;
  DRIVER(FIND)
  return cuInit(0) ? -1 : 1;
}

static int load(Loaded *made, Handle context) {
  Handle module;
  if (cuModuleLoadData(&module, model_code)) return NO_CODE;
  for (int n = 0; n < FUNCTIONS; n++) {
    if (cuModuleGetFunction(&made->functions[n], module, function_names[n])) return NO_CODE;
    if (function_shared[n] > 48 << 10 && cuFuncSetAttribute(made->functions[n], 8, function_shared[n]))
      return FAILED;
  }
  made->constants = 0;
  if (CONSTANT_BYTES) {
    if (cuMemAlloc_v2(&made->constants, CONSTANT_BYTES)) return NO_MEMORY;
    if (cuMemcpyHtoDAsync_v2(made->constants, model_constants, CONSTANT_BYTES, NULL)) return FAILED;
    if (cuStreamSynchronize(NULL)) return FAILED;
  }
  made->context = context;
  return 0;
}

/* The program in the current context; in the first device's, which becomes current, if there is
 * none. `*pushed` says so. */
static int enter(const Loaded **found, int *pushed) {
  int status = 0;
  *pushed = 0;
  pthread_mutex_lock(&state.mutex);
  if (!state.known) state.known = find_driver();
  Handle context = NULL;
  if (state.known < 0) status = NO_DRIVER;
  if (!status && (cuCtxGetCurrent(&context) || !context)) {
    int device;
    if (!state.primary && (cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&state.primary, device)))
      status = NO_DRIVER;
    context = state.primary;
    if (!status && cuCtxPushCurrent_v2(context)) status = NO_DRIVER;
    *pushed = !status;
  }
  int n = 0;
  while (!status && n < state.count && state.loaded[n].context != context) n++;
  if (!status && n == MOST_CONTEXTS) status = NO_MEMORY;
  if (!status && n == state.count) {
    status = load(&state.loaded[n], context);
    if (!status) state.count++;
  }
  *found = &state.loaded[n];
  pthread_mutex_unlock(&state.mutex);
  return status;
}

static void leave(int pushed) {
  Handle unused;
  if (pushed) cuCtxPopCurrent_v2(&unused);
}

static int start(Handle function, unsigned blocks, unsigned threads, unsigned shared, Handle stream,
                 Address *values, int count) {
  void *pointers[MOST_ARGUMENTS];
  for (int n = 0; n < count; n++) pointers[n] = &values[n];
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, NULL);
}

/* What kernels have written, when they have. */
static int told(void *to, Address from, size_t bytes, Handle stream) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, stream) || cuStreamSynchronize(stream);
}

static int copied_in(Address to, const void *from, size_t bytes) {
  return bytes && cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}
