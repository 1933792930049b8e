// Runs kernels: blocks one after the other, the threads of a block as fibers in an order of choice,
// with a check of every access to memory.
//
// Kernels are compiled with -fsanitize=thread and linked WITHOUT its library: g++ then calls
// __tsan_read4 and so on at every access, and these are defined here. Reported are races, barriers
// that are missing or that not all threads reach, shuffles from lanes that take no part, accesses
// out of bounds, and reads of what nobody has written.
#include "emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

namespace {

enum AccessKind { READ, WRITE, ATOMIC };
enum State { READY, AT_BARRIER, IN_WARP, DONE };
enum Combination { ALL_OF, ANY_OF, BALLOT, SHUFFLE, ORDER };

constexpr size_t STACK = 128 << 10;
constexpr size_t MOST_THREADS = 1024;
constexpr size_t MOST_REPORTS = 20;

struct Place { Three thread, block, threads, blocks; };

struct Fiber : Place {
  void* stack_pointer;
  State state;
  const void* site;
  unsigned mask, lane, warp, id;
  uint64_t mine, got;
  int from, how;
};

// Who was here last, and when: after how many barriers of the block, and of the warp.
struct Moment {
  uint32_t thread = 0;
  uint16_t block_barriers = 0, warp_barriers = 0;
  bool atomic = false;
};

struct Cell {
  uint32_t launch = 0;
  bool known = false;
  Moment write, read, other_read;
};

struct Array {
  char* begin;
  size_t size;
  bool shared;
  std::vector<Cell> cells;
};

std::map<char*, Array> arrays;  // by where they end
std::vector<Fiber> fibers;
std::vector<uint16_t> warp_barriers;
std::vector<std::string> reports;
std::mt19937 chance;
Fiber* self;
void* scheduler;
uint32_t launch_number, threads_of_block, block_number;
uint16_t block_barriers;
bool fenced, ended;
Array* last_array;
char *stacks, *stacks_end;
Kernel entry;
void** arguments;
std::string kernel_name;

}  // namespace

extern "C" {
Place* emulated_thread;
alignas(1024) char emulated_dynamic_shared[232448];
void emulated_switch(void** from, void* to);
}
asm(R"(.text
.globl emulated_switch
.type emulated_switch,@function
emulated_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi); movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret
.size emulated_switch,.-emulated_switch)");

namespace {

void report(const char* what, const void* site, const void* place = nullptr, size_t bytes = 0) {
  if (reports.size() >= MOST_REPORTS) return;
  char text[300], where[100] = "";
  if (place) {
    auto found = arrays.upper_bound((char*)place);
    if (found != arrays.end() && place >= found->second.begin)
      snprintf(where, 100, ", %zu bytes at byte %zd of %s of %zu", bytes,
               (char*)place - found->second.begin,
               found->second.shared ? "shared memory" : "an array", found->second.size);
    else
      snprintf(where, 100, ", %zu bytes in no array", bytes);
  }
  std::string kind = kernel_name + ": " + what;
  for (auto& each : reports)
    if (each.compare(0, kind.size(), kind) == 0) return;
  snprintf(text, 300, "%s by thread %u of block %u%s (code at %p)", kind.c_str(),
           self ? self->id % threads_of_block : 0, block_number, where, site);
  reports.push_back(text);
}

bool happened_before(const Moment& then, const Moment& now) {
  if (!then.thread || then.thread == now.thread) return true;
  uint32_t a = then.thread - 1, b = now.thread - 1;
  if (a / threads_of_block != b / threads_of_block) return fenced;
  if (then.block_barriers < now.block_barriers) return true;
  bool same_warp = a % threads_of_block / 32 == b % threads_of_block / 32;
  return same_warp && then.warp_barriers < now.warp_barriers;
}

void leave(State state, const void* site) {
  self->state = state, self->site = site;
  emulated_switch(&self->stack_pointer, scheduler);
}

}  // namespace

extern "C" void emulated_access(const void* where, size_t bytes, int kind, const void* site) {
  char* p = (char*)where;
  if (!self || (p >= stacks && p < stacks_end) || p == (char*)&emulated_thread) return;
  if (p >= (char*)fibers.data() && p < (char*)(fibers.data() + fibers.size())) return;  // threadIdx
  if (!last_array || p < last_array->begin || p + bytes > last_array->begin + last_array->size) {
    auto found = arrays.upper_bound(p);
    if (found == arrays.end() || p < found->second.begin || p + bytes > found->first) {
      report("out of bounds", site, p, bytes);
      ended = true;  // as on a device: the access is not made, and nothing runs any more
      leave(DONE, site);
    }
    last_array = &found->second;
  }
  Moment now{self->id + 1, block_barriers, warp_barriers[self->warp], kind == ATOMIC};
  for (Cell *c = &last_array->cells[p - last_array->begin], *end = c + bytes; c < end; c++) {
    if (c->launch != launch_number) {
      bool known = c->known;
      *c = Cell();
      c->launch = launch_number, c->known = known;
    }
    if (kind != WRITE && !c->known) {
      report("reads what nobody has written", site, p, bytes);
      c->known = true;
    }
    if (!happened_before(c->write, now) && !(c->write.atomic && now.atomic))
      report(kind == READ ? "race: reads what is written" : "race: writes what is written", site, p, bytes);
    if (kind == READ) {
      if (c->read.thread != now.thread && !happened_before(c->read, now)) c->other_read = c->read;
      c->read = now;
    } else {
      if (!happened_before(c->read, now) || !happened_before(c->other_read, now))
        report("race: writes what is read", site, p, bytes);
      c->write = now, c->known = true;
    }
  }
}

#define HOOK(name, n, kind) \
  extern "C" void __tsan_##name##n(void* p) { emulated_access(p, n, kind, __builtin_return_address(0)); }
#define HOOKS(n)                                                     \
  HOOK(read, n, READ) HOOK(write, n, WRITE)                          \
  HOOK(unaligned_read, n, READ) HOOK(unaligned_write, n, WRITE)      \
  HOOK(volatile_read, n, ATOMIC) HOOK(volatile_write, n, ATOMIC)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
extern "C" void __tsan_read_range(void* p, size_t n) { emulated_access(p, n, READ, __builtin_return_address(0)); }
extern "C" void __tsan_write_range(void* p, size_t n) { emulated_access(p, n, WRITE, __builtin_return_address(0)); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}

void own(char* begin, size_t size, bool shared, bool known) {
  Array made{begin, size, shared, std::vector<Cell>(size)};
  for (auto& c : made.cells) c.known = known;
  arrays[begin + size] = std::move(made), last_array = nullptr;
}
void disown(char* begin, size_t size) { arrays.erase(begin + size), last_array = nullptr; }
void mark_known(char* begin, size_t size) {
  auto found = arrays.upper_bound(begin);
  if (found == arrays.end()) return;
  for (size_t i = 0; i < size; i++) found->second.cells[begin - found->second.begin + i].known = true;
}

namespace {

void run_thread() {
  entry(arguments, nullptr);
  leave(DONE, nullptr);
  abort();
}

// What all threads of a barrier, or all lanes of a mask, do together.
uint64_t together(State state, const void* site, unsigned mask, uint64_t mine, int how, int from = 0) {
  self->mask = mask, self->mine = mine, self->how = how, self->from = from, self->got = mine;
  if (state == IN_WARP && !(mask >> self->lane & 1)) report("a lane calls that its mask leaves out", site);
  if (how == SHUFFLE && !(mask >> (from & 31) & 1)) report("shuffle from a lane that takes no part", site);
  leave(state, site);
  return self->got;  // worked out while all were there
}

void answer(std::vector<Fiber*>& group) {
  uint64_t all = 1, any = 0, votes = 0;
  bool warp = group[0]->state == IN_WARP;
  for (Fiber* f : group) {
    all &= f->mine != 0, any |= f->mine != 0;
    votes += uint64_t(f->mine != 0) << (warp ? f->lane : 0);
  }
  for (Fiber* f : group) {
    size_t other = f->warp * 32 + (f->from & 31);
    switch (f->how) {
      case ALL_OF: f->got = all; break;
      case ANY_OF: f->got = any; break;
      case BALLOT: f->got = votes; break;
      case SHUFFLE: f->got = other < fibers.size() ? fibers[other].mine : f->mine; break;
      default: f->got = f->mine;
    }
  }
  for (Fiber* f : group) f->state = READY;
}

// Lets those warps go on whose whole mask has come to one place.
bool release_warps() {
  bool any = false;
  std::vector<Fiber*> group;
  for (size_t first = 0; first < fibers.size(); first += 32) {
    size_t end = std::min(first + 32, fibers.size());
    for (size_t i = first; i < end; i++) {
      Fiber& f = fibers[i];
      if (f.state != IN_WARP) continue;
      group.clear();
      unsigned there = 0, exists = 0;
      for (size_t k = first; k < end; k++) {
        Fiber& g = fibers[k];
        exists |= 1u << g.lane;
        if (g.state == IN_WARP && g.site == f.site && g.mask == f.mask) group.push_back(&g), there |= 1u << g.lane;
      }
      if ((f.mask & exists) != there) continue;
      if (f.how == ORDER) warp_barriers[f.warp]++;
      answer(group);
      any = true;
    }
  }
  return any;
}

bool release_block() {
  std::vector<Fiber*> group;
  for (auto& f : fibers)
    if (f.state == AT_BARRIER) group.push_back(&f);
  if (group.empty()) return false;
  bool whole = true;
  for (auto& f : fibers) whole &= f.state == AT_BARRIER && f.site == group[0]->site;
  if (!whole) report("barrier that not all threads reach", group[0]->site);
  answer(group);
  block_barriers++;
  return true;
}

void prepare_stacks() {
  if (stacks) return;
  stacks = (char*)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stacks_end = stacks + STACK * MOST_THREADS;
  for (size_t i = 0; i < MOST_THREADS; i++) mprotect(stacks + STACK * i, 4096, PROT_NONE);
}

void start_block(uint32_t number, Three blocks, Three threads) {
  block_number = number, block_barriers = 0;
  warp_barriers.assign((threads_of_block + 31) / 32, 0);
  fibers.assign(threads_of_block, Fiber());
  for (uint32_t i = 0; i < threads_of_block; i++) {
    Fiber& f = fibers[i];
    f.thread = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    f.block = {number % blocks.x, number / blocks.x % blocks.y, number / blocks.x / blocks.y};
    f.threads = threads, f.blocks = blocks;
    f.lane = i % 32, f.warp = i / 32, f.id = number * threads_of_block + i;
    void** top = (void**)(stacks + STACK * (i + 1)) - 1;  // as a call leaves it
    *--top = (void*)run_thread;                           // popped after six registers
    f.stack_pointer = top - 6, f.state = READY;
  }
}

void run_block(std::vector<uint32_t>& order, bool random) {
  for (;;) {
    if (random) std::shuffle(order.begin(), order.end(), chance);
    bool ran = false;
    for (uint32_t i : order)
      if (fibers[i].state == READY && !ended) {
        self = &fibers[i], emulated_thread = self, ran = true;
        emulated_switch(&scheduler, self->stack_pointer);
      }
    if (ended) break;
    bool going = release_warps();
    if (!going && !ran)
      for (auto& f : fibers)
        if (f.state == IN_WARP) {
          report("warp operation that not all lanes of its mask reach", f.site);
          f.state = READY, going = true;
        }
    if (!going && !ran) going = release_block();
    if (!going && std::all_of(fibers.begin(), fibers.end(), [](Fiber& f) { return f.state == DONE; })) break;
  }
  self = nullptr;
}

}  // namespace

extern "C" {
void emulated_barrier(const void* site) { together(AT_BARRIER, site, 0, 0, ORDER); }
uint64_t emulated_vote(const void* site, unsigned mask, unsigned mine, int how) {
  return together(mask ? IN_WARP : AT_BARRIER, site, mask, mine, how);
}
uint64_t emulated_shuffle(const void* site, unsigned mask, uint64_t value, int from, bool orders) {
  return together(IN_WARP, site, mask, value, orders ? ORDER : SHUFFLE, orders ? int(self->lane) : from);
}
void emulated_fence() { fenced = true; }
const char* emulated_report(unsigned n) { return n < reports.size() ? reports[n].c_str() : nullptr; }
void emulated_forget() { reports.clear(); }
}

bool launch(const Launch& given, unsigned order) {
  kernel_name = given.name, entry = given.kernel, arguments = given.arguments;
  fenced = ended = false, launch_number++;
  threads_of_block = given.threads.x * given.threads.y * given.threads.z;
  size_t reported = reports.size();
  size_t blocks = size_t(given.blocks.x) * given.blocks.y * given.blocks.z;
  chance.seed(order);
  prepare_stacks();
  std::vector<uint32_t> threads(threads_of_block), which(blocks);
  for (uint32_t i = 0; i < threads.size(); i++) threads[i] = order == 1 ? threads_of_block - 1 - i : i;
  for (uint32_t i = 0; i < blocks; i++) which[i] = order == 1 ? blocks - 1 - i : i;
  if (order > 1) std::shuffle(which.begin(), which.end(), chance);
  size_t fixed = given.shared_end - given.shared;
  for (uint32_t number : which) {
    if (ended) break;
    if (fixed) memset(given.shared, 0xFF, fixed), own(given.shared, fixed, true, false);
    if (given.dynamic_bytes) {
      memset(emulated_dynamic_shared, 0xFF, given.dynamic_bytes);
      own(emulated_dynamic_shared, given.dynamic_bytes, true, false);
    }
    start_block(number, given.blocks, given.threads);
    run_block(threads, order > 1);
  }
  if (fixed) disown(given.shared, fixed);
  if (given.dynamic_bytes) disown(emulated_dynamic_shared, given.dynamic_bytes);
  return reports.size() == reported;
}
