"""What Riffle's own code costs: NET's goodput, processor time per byte, the tuner, the reduction kernels."""
from table import Area, Before, Figure, Run, at_least, at_most, printed, ratio, rows

GOOGLE = " --benchmark_out={json} --benchmark_out_format=json"
PLUGIN = "build/plugin/libnccl-net-riffle.so"
# Every call recorded and traced, beside none.
TRACED = (f"build/tools/riffle bench --json {{json}} --profile uniform8 --plugin plain={PLUGIN} --plugin traced={PLUGIN} "
          "--settings traced:RIFFLE_RECORD={tmp}/,RIFFLE_TRACE=1 ")
ENCRYPTED = (f"build/tools/riffle bench --json {{json}} --profile uniform8 --plugin plain={PLUGIN} --plugin encrypted={PLUGIN} "
             "--settings encrypted:RIFFLE_ENCRYPT=1,RIFFLE_POLLED_BYTES=64K --settings plain:RIFFLE_POLLED_BYTES=64K ")

AREA = Area(
    title="Processor time", minutes=6,
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_net_bench", "riffle_tuner_bench",
             "riffle_reduce_bench", "riffle_seal_bench", "riffle_decision_bench"),
    runs=[
        Run("fast2", "env RIFFLE_POLLED_BYTES=64K build/tools/riffle bench --json {json} --profile fast2 --peers gloo --sizes 64M --iters 15", [
            Figure("NET over a bare send/recv loop, two namespaces, percent", printed(r"ratio +([0-9.]+)%"),
                   at_least(85), digits=0, before=Before("129 (76 to 200)")),
            Figure("bytes per CPU second, times Gloo's", ratio(rows("cpu_s_per_gb", peer="gloo"),
                                                               rows("cpu_s_per_gb", peer="riffle")),
                   at_least(1.5), before=Before("1.55 (1.31 to 2.17)"))], repeat=5),
        Run("traced", TRACED + "--sizes 16M --rounds 12", [
            Figure("`uniform8`, 16 MiB: recorded and traced over neither, time",
                   lambda out: [r["ratio"]["median"] for r in out.rows if r["peer"] == "traced"][0], at_most(1.01), digits=3)],
            quick=TRACED + "--sizes 8 --rounds 1"),
        Run("encrypted", ENCRYPTED + "--sizes 16M --rounds 12", [
            Figure("`uniform8`, 16 MiB, `RIFFLE_ENCRYPT=1`: time over the bound", rows("x_bound", peer="encrypted"), at_most(1.05),
                   digits=3),
            Figure("`uniform8`, 16 MiB: with `RIFFLE_ENCRYPT=1` over without, time",
                   lambda out: [r["ratio"]["median"] for r in out.rows if r["peer"] == "encrypted"][0], digits=3),
            Figure("`uniform8`, 16 MiB: CPU seconds per GB, plain", rows("cpu_s_per_gb", peer="plain")),
            Figure("`uniform8`, 16 MiB: CPU seconds per GB, encrypted", rows("cpu_s_per_gb", peer="encrypted"))],
            quick=ENCRYPTED + "--sizes 8 --rounds 1"),
        Run("seal", "build/bench/riffle_seal_bench --benchmark_filter=/16384$" + GOOGLE, [
            Figure("records of 16 KiB sealed, AES-256-GCM, GB/s", rows("bytes_per_second", scale=1e-9,
                                                                           name="seal/AES-256-GCM/16384")),
            Figure("records of 16 KiB opened, AES-256-GCM, GB/s", rows("bytes_per_second", scale=1e-9, name="open/AES-256-GCM/16384")),
            Figure("records of 16 KiB sealed, ChaCha20-Poly1305, GB/s", rows("bytes_per_second", scale=1e-9,
                                                                                 name="seal/ChaCha20-Poly1305/16384")),
            Figure("records of 16 KiB opened, ChaCha20-Poly1305, GB/s",
                   rows("bytes_per_second", scale=1e-9, name="open/ChaCha20-Poly1305/16384"))]),
        Run("tuner", "build/bench/riffle_tuner_bench --benchmark_filter=get_coll_info" + GOOGLE, [
            Figure("a tuner call, p99, ns, the clock's 17 included", rows("p99_ns", max), at_most(1000), digits=0,
                   before=Before("22"))]),
        Run("reduce", "build/bench/riffle_reduce_bench --benchmark_filter=^float/sum/.*/8$" + GOOGLE, [
            Figure("reduction kernels, float32 sums of 8 x 128 KiB, GB/s", rows("bytes_per_second", max, scale=1e-9),
                digits=0, before=Before("78"))]),
        Run("auto", "build/bench/riffle_decision_bench", [
            Figure("`RIFFLE_COLLNET=auto`, 2 to 256 nodes, 10 to 100 Gbit/s: verdicts unchanged by what was measured, of 32",
                   printed(r"the same: (\d+) of"), at_least(32), digits=0),
            Figure("time to add up, modelled over measured, least", printed(r"measured: ([0-9.]+) to"), at_least(0.5)),
            Figure("time to add up, modelled over measured, most", printed(r"measured: [0-9.]+ to ([0-9.]+)"), at_most(2))])])
