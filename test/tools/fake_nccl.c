/* What `riffle doctor` asks of an NCCL: its release, 2.27.5. */
int ncclGetVersion(int* version) {
  *version = 22705;
  return 0;
}
