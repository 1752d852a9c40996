/* C interface of the sparse library (sparse/exchange.h): all workers of one chunk's all-reduce in
 * one process, for simulations in other languages. What they exchange are the messages of the
 * plugin, selected and summed as it does, without a network.
 *
 * One thread. Functions that return int give 0 for success; else riffle_sparse_workers_error() says
 * why. */
#ifndef RIFFLE_TEST_TRAINING_SPARSE_WORKERS_H_
#define RIFFLE_TEST_TRAINING_SPARSE_WORKERS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct riffle_sparse_workers riffle_sparse_workers;

/* residual: global, partial, local or ef21. Null on failure. */
riffle_sparse_workers* riffle_sparse_workers_open(int workers, int teams, size_t elements,
                                                  const char* residual);

/* The sum that all workers get. Worker p's gradient begins at gradients + p * stride; `density` may
 * change from call to call. Fails, and no residual changes, where a result is not finite. */
int riffle_sparse_workers_sum(riffle_sparse_workers* workers, double density,
                              const float* gradients, size_t stride, float* result);

/* What worker p has not delivered; `elements` of them. */
const float* riffle_sparse_workers_residual(const riffle_sparse_workers* workers, int p);

void riffle_sparse_workers_close(riffle_sparse_workers* workers);

/* Reason of the last failure in this process. */
const char* riffle_sparse_workers_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // RIFFLE_TEST_TRAINING_SPARSE_WORKERS_H_
