/* What an exported library runs on: a pool of threads for the kernels' parallel loops, and scratch
 * memory that is kept between calls. Needs C11 and POSIX threads, nothing of TVM or Python. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* TVM's interface of a parallel loop: part `task` of `environment->count`; not 0 if it fails. */
typedef struct {
  void *unused;
  int32_t count;
} Environment;
typedef int (*Loop)(int task, Environment *environment, void *closure);

enum { MOST_THREADS = 256, SPINS = 2000, STACK_BYTES = 2 << 20 };

static struct {
  pthread_mutex_t mutex; /* guards what follows, but for the atomics */
  pthread_cond_t wake;
  pthread_t threads[MOST_THREADS];
  int started;  /* workers that exist */
  int sleeping; /* workers that wait for `wake` */
  int registered;
  Loop loop;
  void *closure;
  Environment environment;
  atomic_ullong turn; /* counts the loops that were handed out */
  atomic_int left;    /* workers that still run the present loop */
  atomic_int failed;
  atomic_int stopping;
} worker_pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* Whoever holds it has the pool; a call that comes meanwhile runs its loops alone. */
static pthread_mutex_t pool_is_taken = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wanted_threads;

static int usable_cores(void) {
#ifdef __linux__
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int)count : 1;
}

static int thread_count(void) {
  int count = atomic_load(&wanted_threads);
  if (count == 0) {
    count = usable_cores();
    if (count > COMPILED_THREADS) count = COMPILED_THREADS;
    atomic_store(&wanted_threads, count);
  }
  return count;
}

static void set_thread_count(int count) {
  atomic_store(&wanted_threads, count < 0 ? 0 : count > MOST_THREADS ? MOST_THREADS : count);
}

static void pause_briefly(int spins) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
  if (spins % 64 == 63) sched_yield();
}

static void *run_worker(void *argument) {
  int number = (int)(intptr_t)argument;
  unsigned long long seen = 0;
  for (;;) {
    for (int spins = 0; spins < SPINS && atomic_load(&worker_pool.turn) == seen; spins++)
      pause_briefly(spins);
    pthread_mutex_lock(&worker_pool.mutex);
    while (atomic_load(&worker_pool.turn) == seen && !atomic_load(&worker_pool.stopping)) {
      worker_pool.sleeping++;
      pthread_cond_wait(&worker_pool.wake, &worker_pool.mutex);
      worker_pool.sleeping--;
    }
    if (atomic_load(&worker_pool.stopping)) {
      pthread_mutex_unlock(&worker_pool.mutex);
      return NULL;
    }
    seen = atomic_load(&worker_pool.turn);
    Loop loop = worker_pool.loop;
    void *closure = worker_pool.closure;
    Environment environment = worker_pool.environment;
    pthread_mutex_unlock(&worker_pool.mutex);
    if (number < environment.count) {
      if (loop(number, &environment, closure) != 0) atomic_store(&worker_pool.failed, 1);
      atomic_fetch_sub(&worker_pool.left, 1);
    }
  }
}

/* In the child of a fork there are no workers, whatever the parent had. */
static void forget_workers(void) {
  pthread_mutex_init(&worker_pool.mutex, NULL);
  pthread_cond_init(&worker_pool.wake, NULL);
  pthread_mutex_init(&pool_is_taken, NULL);
  worker_pool.started = worker_pool.sleeping = 0; /* a new worker has seen no turn, so the count begins anew */
  atomic_store(&worker_pool.left, 0);
  atomic_store(&worker_pool.turn, 0);
}

static int start_workers(int count) {
  if (!worker_pool.registered) {
    pthread_atfork(NULL, NULL, forget_workers);
    worker_pool.registered = 1;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  /* Signals are for the program's own threads. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (worker_pool.started < count - 1) {
    intptr_t number = worker_pool.started + 1;
    if (pthread_create(&worker_pool.threads[worker_pool.started], &attributes, run_worker, (void *)number) != 0) break;
    worker_pool.started++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return worker_pool.started + 1;
}

static int run_alone(Loop loop, void *closure) {
  Environment environment = {NULL, 1};
  return loop(0, &environment, closure);
}

static int launch_loop(Loop loop, void *closure, int unused) {
  (void)unused;
  int count = thread_count();
  if (count <= 1 || pthread_mutex_trylock(&pool_is_taken) != 0) return run_alone(loop, closure);
  pthread_mutex_lock(&worker_pool.mutex);
  if (worker_pool.started < count - 1) count = start_workers(count);
  worker_pool.loop = loop;
  worker_pool.closure = closure;
  worker_pool.environment = (Environment){NULL, count};
  atomic_store(&worker_pool.failed, 0);
  atomic_store(&worker_pool.left, count - 1);
  atomic_fetch_add(&worker_pool.turn, 1);
  if (worker_pool.sleeping > 0) pthread_cond_broadcast(&worker_pool.wake);
  Environment environment = worker_pool.environment;
  pthread_mutex_unlock(&worker_pool.mutex);
  int status = loop(0, &environment, closure);
  for (int spins = 0; atomic_load(&worker_pool.left) > 0; spins++) pause_briefly(spins);
  if (atomic_load(&worker_pool.failed)) status = -1;
  pthread_mutex_unlock(&pool_is_taken);
  return status;
}

/* The kernels find a parallel loop's launcher here; their objects hold an empty one. */
void *__TVMBackendParallelLaunch = (void *)launch_loop;

__attribute__((destructor)) static void stop_workers(void) {
  pthread_mutex_lock(&worker_pool.mutex);
  int started = worker_pool.started;
  atomic_store(&worker_pool.stopping, 1);
  pthread_cond_broadcast(&worker_pool.wake);
  pthread_mutex_unlock(&worker_pool.mutex);
  for (int number = 0; number < started; number++) pthread_join(worker_pool.threads[number], NULL);
}

/* Scratch memory: one block is kept for the next call, so that its pages need not be made anew. */
static void *allocate_aligned(size_t alignment, size_t size) {
  void *memory;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void *(*allocate_memory)(size_t alignment, size_t size) = allocate_aligned;
static void (*release_memory)(void *) = free;

static void *take_memory(_Atomic(void *) *kept, size_t size) {
  void *memory = atomic_exchange(kept, NULL);
  return memory != NULL ? memory : allocate_memory(64, size);
}

static void give_memory(_Atomic(void *) *kept, void *memory) {
  memory = atomic_exchange(kept, memory);
  if (memory != NULL) release_memory(memory);
}
