// Symbols of NCCL's other tables, as libraries have them beside NET and COLLNET: something to be
// found by name.
#define STRICT_TABLE(name) __attribute__((visibility("default"))) int name = 0

extern "C" {
STRICT_TABLE(ncclGinPlugin_v12);
STRICT_TABLE(ncclRmaPlugin_v14);
STRICT_TABLE(ncclTunerPlugin_v3);
}
