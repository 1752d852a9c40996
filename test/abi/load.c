/* Loads the shared object the way NCCL does (RTLD_NOW | RTLD_LOCAL, dlsym of each table), from a
 * plain C program: every table of every version must be there with a name and its mandatory
 * functions, and start, show devices and properties, and end.
 *
 * The tables are read as arrays of pointers (they are nothing else), so this program shares no
 * declaration with the library. Usage: load FILE */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*logger)(int, unsigned long, const char*, int, const char*, ...);
typedef void (*function)(void);
/* A table: a name, then functions. */
struct table {
  const char* name;
  function member[24];
};

static int failures;

static void fail(const char* symbol, int version, const char* what) {
  fprintf(stderr, "%s%d: %s\n", symbol, version, what);
  ++failures;
}

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) fail(symbol, version, "failed: " #condition); \
  } while (0)

static void quiet(int level, unsigned long subsystems, const char* file, int line,
                  const char* format, ...) {
  (void)level, (void)subsystems, (void)file, (void)line, (void)format;
}

static void* library;

static struct table* find(const char* symbol, int version) {
  char name[64];
  snprintf(name, sizeof name, "%s%d", symbol, version);
  struct table* table = dlsym(library, name);
  if (!table) {
    fail(symbol, version, "is not exported");
    return NULL;
  }
  CHECK(table->name && strcmp(table->name, "riffle") == 0);
  return table;
}

/* `members`: how many function members the version has; `optional`: a list of those that may be
 * null, ended by -1. */
static void check_members(const char* symbol, int version, struct table* table, int members,
                          const int* optional) {
  for (int i = 0; i < members; ++i) {
    int is_optional = 0;
    for (const int* o = optional; *o >= 0; ++o) is_optional |= *o == i;
    if (!table->member[i] && !is_optional) {
      char what[64];
      snprintf(what, sizeof what, "member %d is null", i);
      fail(symbol, version, what);
    }
  }
}

/* init, devices and getProperties are members 0, 1, 2 of NET and COLLNET alike. */
static void drive_devices(const char* symbol, int version, struct table* table, int is_net,
                          int finalize_member) {
  void* context = &context;
  int status;
  if (version >= 11 && is_net) {
    int (*init)(void**, uint64_t, void*, logger, void*) =
        (int (*)(void**, uint64_t, void*, logger, void*))table->member[0];
    int traffic_class = -1;
    status = init(&context, 0x1234, &traffic_class, quiet, NULL);
  } else if (version >= 11) {
    status = ((int (*)(void**, uint64_t, logger))table->member[0])(&context, 0x1234, quiet);
  } else if (version == 10 && is_net) {
    status = ((int (*)(logger, void*))table->member[0])(quiet, NULL);
  } else {
    status = ((int (*)(logger))table->member[0])(quiet);
  }
  CHECK(status == 0);
  int devices = -1;
  status = ((int (*)(int*))table->member[1])(&devices);
  CHECK(status == 0);
  CHECK(devices >= 1);
  for (int i = 0; i < devices; ++i) {
    /* The record starts alike in all versions; 256 bytes hold the largest. Filled with a pattern to
     * see that nothing is written behind the record. */
    unsigned char record[256];
    const size_t size[] = {48, 48, 56, 64, 104, 104, 112, 128};
    memset(record, 0xa5, sizeof record);
    status = ((int (*)(int, void*))table->member[2])(i, record);
    CHECK(status == 0);
    char *name, *path;
    int pointer_support, speed;
    memcpy(&name, record, 8);
    memcpy(&path, record + 8, 8);
    memcpy(&pointer_support, record + 24, 4);
    memcpy(&speed, record + (version <= 7 ? 28 : version == 8 ? 32 : 36), 4);
    CHECK(name && *name);
    CHECK(!path || *path == '/');
    CHECK(pointer_support == 1);
    CHECK(speed >= 1000);
    for (size_t byte = size[version - 5]; byte < sizeof record; ++byte) {
      CHECK(record[byte] == 0xa5);
    }
  }
  CHECK(((int (*)(int, void*))table->member[2])(devices, NULL) == 4 /* invalid argument */);
  if (finalize_member) {
    CHECK(context != NULL);
    CHECK(((int (*)(void*))table->member[finalize_member])(context) == 0);
  }
}

static void net_tables(void) {
  const char* symbol = "ncclNetPlugin_v";
  const int members[] = {15, 16, 18, 18, 19, 19, 21, 21};
  for (int version = 5; version <= 12; ++version) {
    struct table* table = find(symbol, version);
    if (!table) continue;
    /* regMrDmaBuf; getDeviceMr, irecvConsumed; makeVDevice; setNetAttr. v5 has none of them. */
    const int optional[] = {version >= 6 ? 7 : 99, 16, 17, 18, 20, -1};
    const int none[] = {-1};
    check_members(symbol, version, table, members[version - 5], version == 5 ? none : optional);
    drive_devices(symbol, version, table, 1, version >= 11 ? 19 : 0);
  }
}

static void collnet_tables(void) {
  const char* symbol = "ncclCollNetPlugin_v";
  const int members[] = {13, 14, 14, 16, 17, 17, 18, 18};
  for (int version = 5; version <= 12; ++version) {
    struct table* table = find(symbol, version);
    if (!table) continue;
    const int optional[] = {version >= 6 ? 7 : 99, version >= 9 ? 16 : 99, -1};
    check_members(symbol, version, table, members[version - 5], optional);
    drive_devices(symbol, version, table, 0, version >= 11 ? 17 : 0);
    int supported = -1;
    int (*reduce_support)(int, int, int*) = (int (*)(int, int, int*))table->member[5];
    CHECK(reduce_support(7 /* float32 */, 0 /* sum */, &supported) == 0);
    CHECK(supported == 1);
    CHECK(reduce_support(99, 0, &supported) == 0);
    CHECK(supported == 0);
  }
}

static void tuner_tables(void) {
  const char* symbol = "ncclTunerPlugin_v";
  const int none[] = {-1};
  for (int version = 1; version <= 6; ++version) {
    struct table* table = find(symbol, version);
    if (!table) continue;
    check_members(symbol, version, table, version == 6 ? 4 : 3, none);
    void* context = NULL;
    int status;
    if (version == 1) {
      status = ((int (*)(size_t, size_t, logger))table->member[0])(8, 4, quiet);
    } else if (version <= 4) {
      status = ((int (*)(size_t, size_t, logger, void**))table->member[0])(8, 4, quiet, &context);
    } else {
      status = ((int (*)(void**, uint64_t, size_t, size_t, logger, void*, void*))table->member[0])(
          &context, 0x1234, 8, 4, quiet, NULL, NULL);
    }
    CHECK(status == 0);
    CHECK(version == 1 || context);
    CHECK((version == 1 ? ((int (*)(void))table->member[2])()
                        : ((int (*)(void*))table->member[2])(context)) == 0);
  }
}

static void profiler_tables(void) {
  const char* symbol = "ncclProfiler_v";
  const int none[] = {-1};
  for (int version = 1; version <= 6; ++version) {
    struct table* table = find(symbol, version);
    if (!table) continue;
    check_members(symbol, version, table, 5, none);
    void *context = &context, *handle = &handle;
    int mask = -1, status;
    if (version <= 3) {
      status = ((int (*)(void**, int*))table->member[0])(&context, &mask);
    } else if (version == 4) {
      status =
          ((int (*)(void**, int*, const char*, uint64_t, int, int, int, logger))table->member[0])(
              &context, &mask, "world", 1, 2, 2, 0, quiet);
    } else {
      status =
          ((int (*)(void**, uint64_t, int*, const char*, int, int, int, logger))table->member[0])(
              &context, 1, &mask, NULL, 2, 2, 0, quiet);
    }
    CHECK(status == 0);
    CHECK(mask == 0);  // RIFFLE_IDENTITY=off: nobody needs to know
    unsigned char event[128] = {0}, state[16] = {0};
    CHECK(((int (*)(void*, void**, void*))table->member[1])(context, &handle, event) == 0);
    CHECK(handle == NULL);
    CHECK(((int (*)(void*))table->member[2])(NULL) == 0);
    CHECK(((int (*)(void*, int, void*))table->member[3])(NULL, 0, state) == 0);
    CHECK(((int (*)(void*, int, void*))table->member[3])(NULL, 0, NULL) == 0);
    CHECK(((int (*)(void*))table->member[4])(context) == 0);
  }
}

static void env_tables(void) {
  const char* symbol = "ncclEnvPlugin_v";
  const int none[] = {-1};
  for (int version = 1; version <= 2; ++version) {
    struct table* table = find(symbol, version);
    if (!table) continue;
    check_members(symbol, version, table, 3, none);
    int status;
    if (version == 1) {
      status = ((int (*)(uint8_t, uint8_t, uint8_t, const char*))table->member[0])(2, 28, 9, "");
    } else {
      status = ((int (*)(uint8_t, uint8_t, uint8_t, const char*, logger))table->member[0])(
          2, 30, 7, "", quiet);
    }
    CHECK(status == 0);
    const char* (*get)(const char*) = (const char* (*)(const char*))table->member[2];
    setenv("RIFFLE_TEST_SET", "value", 1);
    setenv("RIFFLE_TEST_EMPTY", "", 1);
    unsetenv("RIFFLE_TEST_UNSET");
    CHECK(get("RIFFLE_TEST_SET") && strcmp(get("RIFFLE_TEST_SET"), "value") == 0);
    CHECK(get("RIFFLE_TEST_EMPTY") && *get("RIFFLE_TEST_EMPTY") == '\0');
    CHECK(get("RIFFLE_TEST_UNSET") == NULL);
    CHECK(((int (*)(void))table->member[1])() == 0);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: load FILE\n");
    return 2;
  }
  setenv("RIFFLE_IDENTITY", "off", 1);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  net_tables();
  collnet_tables();
  tuner_tables();
  profiler_tables();
  env_tables();
  if (dlclose(library) != 0) ++failures;
  printf("%d failures\n", failures);
  return failures != 0;
}
