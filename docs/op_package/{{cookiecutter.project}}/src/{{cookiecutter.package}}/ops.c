#include <tracejit/ops.h>

/* y[i] = x[i] where that is positive, else slope * x[i]. */
static TJ_Error *leaky(TJ_Call *call) {
  const float *x = tj_input(call, 0)->data;
  float *y = tj_output(call, 0)->data;
  int64_t size = tj_size(tj_input(call, 0));
  double slope;
  if (!tj_double(call, "slope", &slope)) return tj_missing(call, "slope");
  for (int64_t i = 0; i < size; i++) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i];
  return NULL;
}
TJ_HANDLER(Leaky, leaky)

/* Two inputs, for the derivative: where x is positive dy, else slope * dy. */
static TJ_Error *leaky_grad(TJ_Call *call) {
  const float *dy = tj_input(call, 0)->data, *x = tj_input(call, 1)->data;
  float *dx = tj_output(call, 0)->data;
  int64_t size = tj_size(tj_input(call, 0));
  double slope;
  if (!tj_double(call, "slope", &slope)) return tj_missing(call, "slope");
  for (int64_t i = 0; i < size; i++) dx[i] = x[i] > 0 ? dy[i] : (float)slope * dy[i];
  return NULL;
}
TJ_HANDLER(LeakyGrad, leaky_grad)

static const TJ_Kernel leaky_kernels[] = {
    {NULL, Leaky, NULL, NULL, NULL},
    {0},
};
static const TJ_Kernel leaky_grad_kernels[] = {
    {NULL, LeakyGrad, NULL, NULL, NULL},
    {0},
};
static const TJ_Op ops[] = {
    {"{{ cookiecutter.namespace }}>Leaky",
     "attr slope: float = 0.1\n"
     "input x: float\n"
     "output y: float\n"
     "doc A leaky rectifier.\n\n"
     "slope: The derivative where x is not positive.",
     leaky_kernels, NULL},
    {"{{ cookiecutter.namespace }}>LeakyGrad",
     "attr slope: float = 0.1\n"
     "input dy: float\n"
     "input x: float\n"
     "output dx: float",
     leaky_grad_kernels, NULL},
    {0},
};
TJ_LIBRARY(ops, NULL)
