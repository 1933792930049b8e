/* What handlers of XLA's FFI ask of an exported library; follows runtime.c and tracejit/ops.h.
 * The fields of a request are words after its size and its extensions. */

#include <stdio.h>

typedef intptr_t Word;

struct TJ_Error {
  int code;
  char message[];
};

/* A call's record and the context of a run of it: `Record` and `Run` of native_abi.py. */
typedef struct Run Run;
typedef struct {
  TJ_Handler *execute, *prepare, *initialize;
  void *frame;
  int (*settle)(Run *, TJ_Error *, void *future);
  void (*end)(Run *);
  int64_t runs, state_type;
  void *state;
  int64_t number;
} Record;
struct Run {
  Record *record;
  int64_t number, prepared_type;
  void *prepared;
  int64_t initialized_type;
  void *initialized;
};

/* The message of the last handler that failed in this thread. */
static _Thread_local char native_message[1024];

static TJ_Error *new_error(int code, const char *message) {
  if (!message) message = "";
  TJ_Error *made = malloc(sizeof *made + strlen(message) + 1);
  if (made) {
    made->code = code;
    strcpy(made->message, message);
  }
  return made;
}

static TJ_Error *error_create(Word *r) { return new_error((int32_t)r[3], (const char *)r[2]); }
static TJ_Error *error_message(Word *r) {
  r[3] = (Word)((TJ_Error *)r[2])->message;
  return NULL;
}
static TJ_Error *error_destroy(Word *r) {
  free((void *)r[2]);
  return NULL;
}
static TJ_Error *register_handler(Word *r) {
  (void)r;
  return NULL;
}
static TJ_Error *lacks_streams(Word *r) {
  (void)r;
  return new_error(TJ_UNIMPLEMENTED, "there are no streams on the CPU");
}
static TJ_Error *lacks_data(Word *r) {
  (void)r;
  return new_error(TJ_NOT_FOUND, "no user data was given to this call");
}
static TJ_Error *lacks_states(Word *r) {
  (void)r;
  return new_error(TJ_UNIMPLEMENTED, "an exported library keeps no states");
}
static TJ_Error *register_type(Word *r) {
  static atomic_llong types;
  *(int64_t *)r[4] = atomic_fetch_add(&types, 1) + 1;
  return NULL;
}
static TJ_Error *allocate(Word *r) {
  size_t alignment = r[4] < (Word)sizeof(void *) ? sizeof(void *) : (size_t)r[4];
  void *made;
  if (posix_memalign(&made, alignment, r[3] ? (size_t)r[3] : 1))
    return new_error(TJ_RESOURCE_EXHAUSTED, "there is no memory left");
  r[5] = (Word)made;
  return NULL;
}
static TJ_Error *release(Word *r) {
  free((void *)r[4]);
  return NULL;
}

typedef struct {
  void (*run)(void *);
  void *data;
} Task;
static void *run_task(void *given) {
  Task task = *(Task *)given;
  free(given);
  task.run(task.data);
  return NULL;
}
static TJ_Error *schedule(Word *r) {
  Task *task = malloc(sizeof *task);
  pthread_t thread;
  if (!task) return new_error(TJ_RESOURCE_EXHAUSTED, "there is no memory left");
  *task = (Task){(void (*)(void *))r[3], (void *)r[4]};
  if (pthread_create(&thread, NULL, run_task, task))
    run_task(task);
  else
    pthread_detach(thread);
  return NULL;
}
static TJ_Error *count_threads(Word *r) {
  *(int64_t *)r[3] = thread_count();
  return NULL;
}

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int done;
  TJ_Error *error;
} Future;
static TJ_Error *create_future(Word *r) {
  Future *made = calloc(1, sizeof *made);
  if (!made) return new_error(TJ_RESOURCE_EXHAUSTED, "there is no memory left");
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->changed, NULL);
  r[2] = (Word)made;
  return NULL;
}
static TJ_Error *finish_future(Future *future, TJ_Error *error) {
  pthread_mutex_lock(&future->mutex);
  future->error = error;
  future->done = 1;
  pthread_cond_broadcast(&future->changed);
  pthread_mutex_unlock(&future->mutex);
  return NULL;
}
static TJ_Error *set_available(Word *r) { return finish_future((Future *)r[2], NULL); }
static TJ_Error *set_error(Word *r) { return finish_future((Future *)r[2], (TJ_Error *)r[3]); }
static TJ_Error *run_id(Word *r) {
  r[3] = (Word)((Run *)r[2])->number;
  return NULL;
}
static TJ_Error *device_ordinal(Word *r) {
  *(int32_t *)&r[3] = 0;
  return NULL;
}

typedef TJ_Error *Answer(Word *);
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
    {error_create, error_message, error_destroy, register_handler, lacks_streams, register_type,
     lacks_data, lacks_states, lacks_states, allocate, release, schedule, count_threads,
     create_future, set_available, set_error, run_id, device_ordinal}};

static int settle_native(Run *run, TJ_Error *error, void *given) {
  (void)run;
  Future *future = given;
  if (future) {
    pthread_mutex_lock(&future->mutex);
    while (!future->done) pthread_cond_wait(&future->changed, &future->mutex);
    pthread_mutex_unlock(&future->mutex);
    if (!error) error = future->error;
    pthread_cond_destroy(&future->changed);
    pthread_mutex_destroy(&future->mutex);
    free(future);
  }
  if (!error) return 1;
  snprintf(native_message, sizeof native_message, "%s", error->message);
  free(error);
  return 0;
}
static void end_native(Run *run) { (void)run; }
