/* C interface of a data-parallel trainer: one communicator of the stand-in for NCCL's host side
 * (lab/nccl_host) over a plugin's own NET, COLLNET and TUNER tables, for programs in other
 * languages.
 *
 * One process per rank. Calls come from one thread. Functions that return int give 0 for success;
 * then riffle_trainer_error() says nothing, else the reason. Nothing waits beyond 60 s. */
#ifndef RIFFLE_TEST_TRAINING_TRAINER_H_
#define RIFFLE_TEST_TRAINING_TRAINER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct riffle_trainer riffle_trainer;

/* Collective over all ranks. rendezvous: path of a Unix socket that rank 0 makes; it is reachable
 * from every network namespace of the machine. algorithm: "" lets the cost model and the plugin's
 * tuner choose as in NCCL; "ring", "tree" or "collnet" is what NCCL_ALGO would force. Null on
 * failure. */
riffle_trainer* riffle_trainer_open(int rank, int ranks, const char* rendezvous, const char* plugin,
                                    const char* algorithm);

/* Queues the sum over all ranks of `count` floats, in place, as on a stream. The data must stay
 * where they are until riffle_trainer_wait() has returned. */
int riffle_trainer_all_reduce(riffle_trainer* trainer, float* data, size_t count);
int riffle_trainer_wait(riffle_trainer* trainer);

/* Calls of the plugin's iallreduce that it has accepted so far. */
uint64_t riffle_trainer_collnet_calls(const riffle_trainer* trainer);

/* Collective; frees the trainer also when it fails. */
int riffle_trainer_close(riffle_trainer* trainer);

/* Reason of the last failure in this process. */
const char* riffle_trainer_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // RIFFLE_TEST_TRAINING_TRAINER_H_
