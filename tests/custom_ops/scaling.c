/* A library of ops as people write one, and what can be wrong with it, by -D. */
#include <tracejit/ops.h>

#define SCALE(name, type)                                                            \
  static TJ_Error *name(TJ_Call *call) {                                             \
    const type *x = (const type *)tj_input(call, 0)->data;                           \
    type *y = (type *)tj_output(call, 0)->data;                                      \
    double by;                                                                       \
    if (!tj_double(call, "by", &by)) return tj_missing(call, "by");                  \
    if (by == 0) return tj_error(call, TJ_INVALID_ARGUMENT, "by must not be zero");  \
    for (int64_t i = 0; i < tj_size(tj_input(call, 0)); i++) y[i] = (type)(by * x[i]); \
    return NULL;                                                                     \
  }
SCALE(scale_float, float)
SCALE(scale_double, double)
TJ_HANDLER(ScaleFloat, scale_float)
TJ_HANDLER(ScaleDouble, scale_double)

/* All attributes that C can read, and a shape that depends on one. */
static TJ_Error *repeat(TJ_Call *call) {
  int64_t times;
  uint8_t negate;
  int32_t type;
  const TJ_Text *mode = tj_text(call, "mode");
  const TJ_Array *weights = tj_array(call, "weights", TJ_F64);
  const TJ_Array *shape = tj_array(call, "shape", TJ_S64);
  if (!tj_int(call, "times", &times) || !tj_bool(call, "negate", &negate) || !mode || !weights ||
      !shape || !tj_type(call, "kind", &type))
    return tj_missing(call, "an attribute");
  if (mode->size != 3 || memcmp(mode->data, "add", 3)) return tj_error(call, TJ_UNIMPLEMENTED, "mode");
  if (type != TJ_S16 || shape->size != 2) return tj_error(call, TJ_INTERNAL, "kind or shape");
  const int32_t *x = (const int32_t *)tj_input(call, 0)->data;
  int32_t *y = (int32_t *)tj_output(call, 0)->data;
  int32_t *count = (int32_t *)tj_output(call, 1)->data;
  int64_t size = tj_size(tj_input(call, 0));
  for (int64_t i = 0; i < times * size; i++)
    y[i] = (negate ? -1 : 1) * (x[i % size] + (int32_t)((const double *)weights->data)[weights->size - 1]);
  *count = (int32_t)(times * size);
  return NULL;
}
TJ_HANDLER(Repeat, repeat)

static TJ_Error *repeat_shape(TJ_Call *call) {
  int64_t times, dims[2];
  if (tj_input(call, 0)->rank != 1) return tj_error(call, TJ_INVALID_ARGUMENT, "x must be a vector");
  if (!tj_int(call, "times", &times)) return tj_missing(call, "times");
  dims[0] = times;
  dims[1] = tj_input(call, 0)->dims[0];
  tj_set_shape(call, 0, 2, dims);
  tj_set_shape(call, 1, 0, dims);
  return NULL;
}
TJ_HANDLER(RepeatShape, repeat_shape)

#ifdef NEWER
static TJ_Error *old_handler(TJ_Call *call) {
  if (call->request) call->request->metadata->version.major = 1, call->request->metadata->version.minor = 0;
  return NULL;
}
#else
#define old_handler Repeat
#endif

static const TJ_Kernel scale_kernels[] = {
    {"T=float", ScaleFloat, 0, 0, 0}, {"T=double", ScaleDouble, 0, 0, 0}, {0}};
static const TJ_Kernel repeat_kernels[] = {{NULL, old_handler, 0, 0, 0}, {0}};
#ifndef DEFINITION
#define DEFINITION "attr T: {float, double}\nattr by: float = 2.0\ninput x: T\noutput y: T\ndoc Multiplies.\n\nby: The factor."
#endif
static const TJ_Op ops[] = {
    {"Scale", DEFINITION, scale_kernels, NULL},
    {"Repeat",
     "attr times: int\nattr negate: bool = False\nattr mode: {'add', 'multiply'} = 'add'\n"
     "attr weights: list(float) = [1.0]\nattr shape: shape = [2, 3]\nattr kind: type = DT_INT16\n"
     "input x: int32\noutput y: int32\noutput count: int32",
     repeat_kernels, RepeatShape},
    {0}};
#ifndef NO_TABLE
TJ_LIBRARY(ops, NULL)
#endif
