#!/usr/bin/env python3
"""A patch for a release of nccl-tests, from its source: for the day a new one comes.

usage: make_patch.py VERSION NCCL_TESTS > patches/VERSION.patch

NCCL_TESTS is an unchanged checkout of the release. The patch only adds lines: each of HOOKS stands
before (or behind) the one line of src/common.cu that its pattern finds. It holds nothing of
nccl-tests, and the checksums in its head tie it to that one file.
"""
import hashlib
import pathlib
import re
import sys

FILE = "src/common.cu"
CALL = "riffle_tests::"


def hooks(text):
    """(pattern, behind the line instead of before it, lines to add). 'text' tells releases apart."""
    # Releases up to 2.17.2 print the number of wrong elements a column narrower; later ones have
    # columns that options add.
    width = "114" if '%5g"' in text else "116"
    if "per_iter_timing" in text:
        width += " + 72*per_iter_timing"
    if "report_timestamps" in text:
        width += " + 21*report_timestamps"
    return [
        (r'#include "\.\./verifiable/verifiable\.h"', True, ['#include "riffle_report.h"']),
        (r"testResult_t CheckDelta\(.*\{", True,
         [f"  if ({CALL}is_heavy()) return {CALL}check_exact(results, count, type, nranks, wrongEltN);"]),
        (r"testResult_t InitDataReduce\(.*\{", True,
         [f"  if ({CALL}is_heavy()) return testSuccess;  // check_exact() computes what is expected"]),
        (r"testResult_t InitData\(.*\{", True,
         [f"  if ({CALL}is_heavy()) return {CALL}fill(data, count, offset, type, seed, rank);"]),
        (r"  // Sync", False,
         [f"  TESTCHECK({CALL}before_calls(args, type, op, root, in_place, warmup_iters));"]),
        (r"      TESTCHECK\(startColl\(args, type, op, root, in_place, iter\*agg_iters\+aiter\)\);", False,
         [f"      TESTCHECK({CALL}before_call(args, in_place));"]),
        (r"  Allreduce\(args, &deltaSec, average\);", False,
         [f"  {CALL}own_time(args, deltaSec, in_place);"]),
        (r"  for \(int c = 0; c < datacheck; c\+\+\) \{", False,
         [f"  {CALL}printed_time(deltaSec, in_place);",
          f"  if ({CALL}has_check()) TESTCHECK({CALL}check(args, type, op, root, in_place, &wrongElts));",
          "  else"]),
        (r"  // Warm-up for all sizes .*", False, [f"  TESTCHECK({CALL}before_warm_up(args));"]),
        (r'      (writeBenchmarkLineTerminator\(iters, ""\)|PRINT\("\\n"\));', False,
         [f"      {CALL}columns(args);"]),
        (r"        datacheck = \(int\)strtol\(optarg, NULL, 0\);", False,
         [f"        if ({CALL}takes_check(optarg, &datacheck)) break;"]),
        (r"        streamnull = strtol\(optarg, NULL, 0\);", False,
         [f"        if ({CALL}takes_data(optarg)) break;"]),
        (r'            "\[-h,--help\]\\n",', False, ["            RIFFLE_USAGE"]),
        (r"  if \(minBytes > maxBytes\) \{", False,
         [f"  if (!{CALL}options_fit(minBytes, maxBytes, agg_iters, cudaGraphLaunches, nccltype, ncclop)) return -1;"]),
        (r"  (struct testThread threads\[nThreads\]|std::vector<struct testThread> threads\(nThreads\));", False,
         [f"  {CALL}titles({width});"]),
        (r'  (PRINT\("# Out of bounds values|writeResultFooter\().*', False, [f"  {CALL}findings();"]),
    ]


def places(lines, text):
    """(number of the line behind which to add, lines to add), from the top down."""
    found = []
    for pattern, is_behind, added in hooks(text):
        at = [n for n, line in enumerate(lines, 1) if re.fullmatch(pattern, line)]
        if len(at) != 1:
            sys.exit(f"{FILE}: {len(at)} lines match {pattern!r}, not one: this release needs another hook")
        found.append((at[0] if is_behind else at[0] - 1, added))
    return sorted(found)


def main():
    version, root = sys.argv[1], pathlib.Path(sys.argv[2])
    text = (root / FILE).read_text()
    lines = text.split("\n")
    body, shift, after = [], 0, list(lines)
    for at, added in places(lines, text):
        count = "" if len(added) == 1 else f",{len(added)}"
        body.append(f"@@ -{at},0 +{at + shift + 1}{count} @@")
        body += ["+" + line for line in added]
        after[at + shift:at + shift] = added
        shift += len(added)

    def checksum(content):
        return hashlib.sha256(content.encode()).hexdigest()

    print(f"# nccl-tests {version}, made by make_patch.py")
    print(f"# before {checksum(text)}")
    print(f"# after  {checksum(chr(10).join(after))}")
    print(f"--- a/{FILE}\n+++ b/{FILE}")
    print("\n".join(body))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
