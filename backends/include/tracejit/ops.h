/* Handlers and libraries of ops for tracejit, in C or C++; needs nothing but this file.
 *
 * A handler is a function that reads inputs and attributes of a call and writes its outputs:
 *
 *     static TJ_Error *scale(TJ_Call *call) {
 *       const float *x = tj_input(call, 0)->data;
 *       float *y = tj_output(call, 0)->data;
 *       double by;
 *       if (!tj_double(call, "by", &by)) return tj_missing(call, "by");
 *       for (int64_t i = 0; i < tj_size(tj_input(call, 0)); i++) y[i] = by * x[i];
 *       return NULL;
 *     }
 *     TJ_HANDLER(Scale, scale)
 *
 * It is called from compiled code, by several threads at once. Arrays lie row by row. The binary
 * interface is XLA's foreign function interface, version 0.3: handlers written with XLA's headers
 * can stand wherever these can, and JAX calls these.
 *
 * A library for tracejit.custom_ops.load_op_library describes its ops in one table:
 *
 *     static const TJ_Kernel scale_kernels[] = {{"T=float", Scale}, {0}};
 *     static const TJ_Op ops[] = {
 *         {"Scale", "attr T: {float}\nattr by: float = 2.0\ninput x: T\noutput y: T", scale_kernels},
 *         {0}};
 *     TJ_LIBRARY(ops, NULL)
 */
#ifndef TRACEJIT_OPS_H
#define TRACEJIT_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define TJ_EXPORT extern "C" __attribute__((visibility("default")))
extern "C" {
#else
#define TJ_EXPORT __attribute__((visibility("default")))
#endif

enum { TJ_MAJOR = 0, TJ_MINOR = 3 };

typedef enum {
  TJ_PRED = 1, TJ_S8 = 2, TJ_S16 = 3, TJ_S32 = 4, TJ_S64 = 5, TJ_U8 = 6, TJ_U16 = 7, TJ_U32 = 8,
  TJ_U64 = 9, TJ_F16 = 10, TJ_F32 = 11, TJ_F64 = 12, TJ_C64 = 15, TJ_BF16 = 16, TJ_C128 = 18
} TJ_Type; /* other types have the numbers of XLA_FFI_DataType */

typedef enum {
  TJ_CANCELLED = 1, TJ_UNKNOWN = 2, TJ_INVALID_ARGUMENT = 3, TJ_NOT_FOUND = 5,
  TJ_RESOURCE_EXHAUSTED = 8, TJ_FAILED_PRECONDITION = 9, TJ_OUT_OF_RANGE = 11,
  TJ_UNIMPLEMENTED = 12, TJ_INTERNAL = 13
} TJ_Code;

enum { TJ_INSTANTIATE = 0, TJ_PREPARE = 1, TJ_INITIALIZE = 2, TJ_EXECUTE = 3 };

typedef struct TJ_Error TJ_Error; /* NULL is success */

/* An array: `dims` has `rank` sizes. */
typedef struct {
  size_t struct_size;
  void *extension;
  int type; /* TJ_Type */
  void *data;
  int64_t rank;
  int64_t *dims;
} TJ_Buffer;

typedef struct { size_t struct_size; void *extension; int64_t size; int *types; TJ_Buffer **values; } TJ_Buffers;
typedef struct { const char *data; size_t size; } TJ_Text; /* does not end in a zero */
typedef struct { int type; void *value; } TJ_Scalar;
typedef struct { int type; size_t size; void *data; } TJ_Array;
typedef struct { size_t struct_size; void *extension; int64_t size; int *types; TJ_Text **names; void **values; } TJ_Attributes;
typedef struct { size_t struct_size; void *extension; int major, minor; } TJ_Version;
typedef struct { size_t struct_size; TJ_Version version; uint32_t traits; int64_t state_type; } TJ_Metadata;
typedef struct { size_t struct_size; int type; void *next; TJ_Metadata *metadata; } TJ_MetadataRequest;
typedef struct { size_t struct_size; void *extension; const char *message; int code; } TJ_ErrorRequest;

/* The runtime's functions, as far as this file calls them. */
typedef struct {
  size_t struct_size;
  void *extension;
  TJ_Version version;
  void *internal;
  TJ_Error *(*make_error)(TJ_ErrorRequest *);
} TJ_Api;

typedef struct {
  size_t struct_size;
  TJ_MetadataRequest *request;
  const TJ_Api *api;
  void *context;
  int stage;
  TJ_Buffers inputs, outputs;
  TJ_Attributes attributes;
  void *future;
} TJ_Call;

typedef TJ_Error *TJ_Handler(TJ_Call *);

static inline TJ_Buffer *tj_input(const TJ_Call *call, int64_t n) { return call->inputs.values[n]; }
static inline TJ_Buffer *tj_output(const TJ_Call *call, int64_t n) { return call->outputs.values[n]; }

static inline int64_t tj_size(const TJ_Buffer *array) {
  int64_t size = 1;
  for (int64_t i = 0; i < array->rank; i++) size *= array->dims[i];
  return size;
}

/* An error for a handler to return; the message is copied. */
static inline TJ_Error *tj_error(const TJ_Call *call, TJ_Code code, const char *message) {
  TJ_ErrorRequest request = {sizeof request, NULL, message, (int)code};
  return call->api->make_error(&request);
}

static inline TJ_Error *tj_missing(const TJ_Call *call, const char *name) {
  return tj_error(call, TJ_INVALID_ARGUMENT, name);
}

/* Attributes by name. Each returns 0 if there is none of that name and type. */
enum { TJ_ARRAY_ATTR = 1, TJ_SCALAR_ATTR = 3, TJ_TEXT_ATTR = 4 };

static inline const void *tj_attribute(const TJ_Call *call, const char *name, int kind) {
  size_t length = strlen(name);
  for (int64_t i = 0; i < call->attributes.size; i++) {
    const TJ_Text *own = call->attributes.names[i];
    if (own->size == length && !memcmp(own->data, name, length))
      return call->attributes.types[i] == kind ? call->attributes.values[i] : NULL;
  }
  return NULL;
}

static inline int tj_scalar(const TJ_Call *call, const char *name, int type, void *to, size_t size) {
  const TJ_Scalar *found = (const TJ_Scalar *)tj_attribute(call, name, TJ_SCALAR_ATTR);
  if (!found || found->type != type) return 0;
  memcpy(to, found->value, size);
  return 1;
}

static inline int tj_int(const TJ_Call *call, const char *name, int64_t *value) {
  return tj_scalar(call, name, TJ_S64, value, sizeof *value);
}
static inline int tj_double(const TJ_Call *call, const char *name, double *value) {
  return tj_scalar(call, name, TJ_F64, value, sizeof *value);
}
static inline int tj_float(const TJ_Call *call, const char *name, float *value) {
  return tj_scalar(call, name, TJ_F32, value, sizeof *value);
}
static inline int tj_bool(const TJ_Call *call, const char *name, uint8_t *value) {
  return tj_scalar(call, name, TJ_PRED, value, sizeof *value);
}
/* A type attribute that no input determines: a TJ_Type. */
static inline int tj_type(const TJ_Call *call, const char *name, int32_t *value) {
  return tj_scalar(call, name, TJ_S32, value, sizeof *value);
}
static inline const TJ_Text *tj_text(const TJ_Call *call, const char *name) {
  return (const TJ_Text *)tj_attribute(call, name, TJ_TEXT_ATTR);
}
static inline const TJ_Array *tj_array(const TJ_Call *call, const char *name, int type) {
  const TJ_Array *found = (const TJ_Array *)tj_attribute(call, name, TJ_ARRAY_ATTR);
  return found && found->type == type ? found : NULL;
}

/* Whether the runtime asks for the version of the interface, which is answered. */
static inline int tj_answers(TJ_Call *call) {
  if (!call->request || call->request->type != 1) return 0;
  call->request->metadata->version.major = TJ_MAJOR;
  call->request->metadata->version.minor = TJ_MINOR;
  return 1;
}

/* An exported handler `Name` that calls `function`. */
#define TJ_HANDLER(Name, function) \
  TJ_EXPORT TJ_Error *Name(TJ_Call *call) { return tj_answers(call) ? NULL : function(call); }

/* In a shape function, a handler without data: sets the rank, at most 16, and the sizes. */
static inline void tj_set_shape(TJ_Call *call, int64_t output, int64_t rank, const int64_t *dims) {
  TJ_Buffer *array = tj_output(call, output);
  array->rank = rank;
  memcpy(array->dims, dims, (size_t)rank * sizeof *dims);
}

/* One implementation of an op. `types` restricts it: "T=float", "T=float,double U=int32", or NULL. */
typedef struct {
  const char *types;
  TJ_Handler *execute;
  TJ_Handler *instantiate, *prepare, *initialize; /* or NULL */
} TJ_Kernel;

/* An op. `definition` has a line for each attr, input, output, as `register_op` takes them, and
 * may end in "doc " and any text. `kernels` ends with an empty one. Without `shape` all outputs
 * have the shape of the first input. */
typedef struct {
  const char *name;
  const char *definition;
  const TJ_Kernel *kernels;
  TJ_Handler *shape;
} TJ_Op;

/* A type of states: the runtime sets `*id`; `info` is an XLA_FFI_TypeInfo, with the deleter. */
typedef struct {
  const char *name;
  int64_t *id;
  const void *info;
} TJ_State;

typedef struct {
  size_t struct_size;
  int major, minor;
  const TJ_Op *ops;       /* ends with an empty one */
  const TJ_State *states; /* ends with an empty one, or NULL */
} TJ_Library;

/* What a library is loaded by; once in a library. */
#define TJ_LIBRARY(ops, states)                                                          \
  TJ_EXPORT const TJ_Library *tracejit_op_library(void) {                                \
    static const TJ_Library library = {sizeof(TJ_Library), TJ_MAJOR, TJ_MINOR, ops, states}; \
    return &library;                                                                     \
  }

#ifdef __cplusplus
}
#endif
#endif
