// What driver.cpp asks of emulator.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct Three { unsigned x, y, z; };
using Kernel = void (*)(void**, size_t*);

struct Launch {
  std::string name;
  Kernel kernel;
  void** arguments;
  Three blocks, threads;
  char *shared, *shared_end;
  size_t dynamic_bytes;
};

// Runs a kernel; false where something was reported. Order 0 is rising, 1 falling, others are seeds
// of random orders.
bool launch(const Launch& given, unsigned order);
// Memory that kernels may use, and whether it holds what somebody has written.
void own(char* begin, size_t size, bool shared, bool known);
void disown(char* begin, size_t size);
void mark_known(char* begin, size_t size);
