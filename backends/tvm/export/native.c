/* Calls of linked handlers of XLA's FFI in an exported library; follows runtime.c and
 * tracejit/ops.h. What handlers ask for is in native_api.py, which is linked. */

#include <stdio.h>

/* A call's record, the context of a run of it, and what all share: see native_abi.py. */
typedef struct Run Run;
typedef struct Host Host;
typedef struct {
  TJ_Handler *execute, *prepare, *initialize;
  void *frame;
  int (*settle)(Run *, TJ_Error *, void *future);
  void (*end)(Run *);
  int64_t runs, state_type;
  void *state;
  int64_t number;
  Host *host;
} Record;
struct Run {
  Record *record;
  int64_t number, prepared_type;
  void *prepared;
  int64_t initialized_type;
  void *initialized;
};
enum { MOST_TYPES = 1024, POOL_WORDS = 22 + 64 };
struct Host {
  void (*fail)(Run *, TJ_Error *);
  int64_t most;
  int64_t types, *type_ids[MOST_TYPES];
  void (*deleters[MOST_TYPES])(void *);
  int64_t pool[POOL_WORDS];
};
struct TJ_Error {
  int code;
  char message[];
};

typedef struct {
  size_t struct_size;
  void *extension;
  void (*deleter)(void *);
} TypeInfo;
/* A type of states, and the call that instantiates one: `instantiate` may be NULL. */
typedef struct {
  int64_t *id;
  const TypeInfo *info;
} StateType;
typedef struct {
  Record *record;
  TJ_Handler *instantiate;
  TJ_Call *call;
} Instance;

typedef TJ_Error *Answer(void *);
Answer tracejit_ffi_Error_Create, tracejit_ffi_Error_GetMessage, tracejit_ffi_Error_Destroy,
    tracejit_ffi_Stream_Get, tracejit_ffi_ExecutionContext_Get, tracejit_ffi_State_Set,
    tracejit_ffi_State_Get, tracejit_ffi_DeviceMemory_Allocate, tracejit_ffi_DeviceMemory_Free,
    tracejit_ffi_ThreadPool_Schedule, tracejit_ffi_ThreadPool_NumThreads,
    tracejit_ffi_Future_Create, tracejit_ffi_Future_SetAvailable, tracejit_ffi_Future_SetError,
    tracejit_ffi_RunId_Get, tracejit_ffi_DeviceOrdinal_Get;
int tracejit_ffi_settle(Run *, TJ_Error *, void *future);
void tracejit_ffi_end(Run *), tracejit_ffi_reset(Host *), tracejit_ffi_stop(Host *),
    tracejit_ffi_delete(Host *, int64_t type, void *state);

/* Libraries that register themselves do so with whoever loads them, not with this one. */
static TJ_Error *not_registered(void *request) {
  (void)request;
  return NULL;
}

static const struct {
  size_t struct_size;
  void *extension;
  TJ_Version version;
  void *internal;
  Answer *functions[18];
} native_api = {
    sizeof native_api,
    NULL,
    {sizeof(TJ_Version), NULL, TJ_MAJOR, TJ_MINOR},
    NULL,
    {tracejit_ffi_Error_Create, tracejit_ffi_Error_GetMessage, tracejit_ffi_Error_Destroy,
     not_registered, tracejit_ffi_Stream_Get, not_registered, tracejit_ffi_ExecutionContext_Get,
     tracejit_ffi_State_Set, tracejit_ffi_State_Get, tracejit_ffi_DeviceMemory_Allocate,
     tracejit_ffi_DeviceMemory_Free, tracejit_ffi_ThreadPool_Schedule,
     tracejit_ffi_ThreadPool_NumThreads, tracejit_ffi_Future_Create,
     tracejit_ffi_Future_SetAvailable, tracejit_ffi_Future_SetError, tracejit_ffi_RunId_Get,
     tracejit_ffi_DeviceOrdinal_Get}};

/* The message of the last handler that failed in this thread. */
static _Thread_local char native_message[1024];

static void keep_message(Run *run, TJ_Error *error) {
  (void)run;
  struct {
    size_t struct_size;
    void *extension;
    TJ_Error *error;
  } request = {sizeof request, NULL, error};
  snprintf(native_message, sizeof native_message, "%s", error->message);
  tracejit_ffi_Error_Destroy(&request);
}

static Host native_host = {.fail = keep_message};
static pthread_mutex_t native_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int native_started;

static void forget_native_threads(void) { tracejit_ffi_reset(&native_host); }

/* Registers the types of states and instantiates the calls, before the first of them; 0 if a
 * handler fails, which is asked again in the next call. */
static int start_native(const StateType *types, int count, const Instance *instances, int calls) {
  __atomic_store_n(&native_host.most, thread_count(), __ATOMIC_RELAXED);
  if (atomic_load(&native_started)) return 1;
  pthread_mutex_lock(&native_mutex);
  if (native_host.types < count) {
    tracejit_ffi_reset(&native_host);
    pthread_atfork(NULL, NULL, forget_native_threads);
  }
  for (; native_host.types < count; native_host.types++) {
    const StateType *type = &types[native_host.types];
    if (!type->id) continue; /* the pool alone */
    /* A number that no other library in the process gives. */
    if (!*type->id) *type->id = (int64_t)(intptr_t)type->id;
    native_host.type_ids[native_host.types] = type->id;
    native_host.deleters[native_host.types] = type->info ? type->info->deleter : NULL;
  }
  int good = 1;
  for (int i = 0; good && i < calls; i++) {
    if (instances[i].record->number) continue;
    Run run = {.record = instances[i].record};
    TJ_Call call = *instances[i].call;
    call.context = &run;
    TJ_Error *error = instances[i].instantiate(&call);
    good = !(error || call.future) || tracejit_ffi_settle(&run, error, call.future) == 1;
    instances[i].record->number = good;
  }
  atomic_store(&native_started, good);
  pthread_mutex_unlock(&native_mutex);
  return good;
}

static void stop_native(const Instance *instances, int calls) {
  if (native_host.types) tracejit_ffi_stop(&native_host);
  for (int i = 0; i < calls; i++)
    tracejit_ffi_delete(&native_host, instances[i].record->state_type, instances[i].record->state);
}
