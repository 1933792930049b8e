// A libnvrtc.so that calls g++: the "cubin" of CUDA C is a shared library for driver.cpp to load.
// EMULATED_HEADERS names the folder of cuda_device.h.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {
struct Program { std::string source, log, binary; };
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
const char* nvrtcGetErrorString(int status) { return status == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
int nvrtcCreateProgram(Program** made, const char* source, const char*, int, const char* const*, const char* const*) {
  return *made = new Program{source, "", ""}, 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  std::string text = "#include \"cuda_device.h\"\n" + program->source + "\n";
  std::regex kernel("__global__\\s+void\\s+(?:__launch_bounds__\\([^)]*\\)\\s+)?(\\w+)\\s*\\(");
  std::string arch = "sm_0";
  for (int n = 0; n < count; n++)
    if (!strncmp(options[n], "--gpu-architecture=", 19)) arch = options[n] + 19;
  text += "extern \"C\" const int emulated_arch = " + std::to_string(atoi(arch.c_str() + 3)) + ";\n";
  for (std::sregex_iterator i(program->source.begin(), program->source.end(), kernel), end; i != end; ++i)
    text += "EMULATED_KERNEL(" + (*i)[1].str() + ")\n";
  char folder[] = P_tmpdir "/emulated-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  std::string base = folder;
  std::ofstream(base + "/k.cpp") << text;
  const char* headers = getenv("EMULATED_HEADERS");
  // Barriers are told apart by where they are called: g++ must not copy calls.
  std::string words = "g++ -std=c++17 -O1 -fno-thread-jumps -fno-strict-aliasing -ffp-contract=off -w -fPIC "
      "-fsanitize=thread --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1 "
      "-I" + std::string(headers ? headers : ".") + " -c " + base + "/k.cpp -o " + base + "/k.o 2> " + base +
      "/log && g++ -shared " + base + "/k.o -o " + base + "/k.so 2>> " + base + "/log";
  int status = system(words.c_str());
  program->log = contents(base + "/log");
  program->binary = contents(base + "/k.so");
  (void)!system(("rm -rf " + base).c_str());
  return status ? 6 : 0;
}
int nvrtcGetProgramLogSize(Program* p, size_t* n) { return *n = p->log.size() + 1, 0; }
int nvrtcGetProgramLog(Program* p, char* text) { return strcpy(text, p->log.c_str()), 0; }
int nvrtcGetCUBINSize(Program* p, size_t* n) { return *n = p->binary.size(), 0; }
int nvrtcGetCUBIN(Program* p, char* data) { return memcpy(data, p->binary.data(), p->binary.size()), 0; }
int nvrtcGetPTXSize(Program* p, size_t* n) { return *n = 1, 0; }
int nvrtcGetPTX(Program* p, char* data) { return *data = 0, 0; }
int nvrtcDestroyProgram(Program** p) { return delete *p, *p = nullptr, 0; }
}
