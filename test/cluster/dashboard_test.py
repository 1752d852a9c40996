"""A real Prometheus scrapes `riffle metrics` while an emulated job runs: every query of the dashboard has an
answer, and the alert rules are taken. Meanwhile `riffle top --once` names what limits.

usage: dashboard_test.py RIFFLE MONITORING_FOLDER     exit code 77: no Prometheus, or no namespaces here
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

RIFFLE, MONITORING = sys.argv[1], pathlib.Path(sys.argv[2])
LIMIT_S, SCRAPED_S = 240, 25
PROFILE = """about = "4 nodes, one slow"
nodes = 4
rate_mbps = 200
[[exception]]
nodes = [2]
rate_mbps = 50
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]


def wait_for(what, condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.5)


def is_up(url):
    try:
        return any(target["health"] == "up" for target in get(url + "/targets")["activeTargets"])
    except (urllib.error.URLError, ConnectionError, ValueError):
        return False


def expressions():
    """Of all panels, with Grafana's variables as for all jobs."""
    dashboard = json.loads((MONITORING / "riffle-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "20s")
            yield panel["title"], text.replace("$job", ".*").replace("$communicator", ".*")


def check(folder, processes):
    record = folder / "record"
    (folder / "slow4.toml").write_text(PROFILE)
    log = (folder / "bench.log").open("w+")
    job = subprocess.Popen([RIFFLE, "bench", "--profile", folder / "slow4.toml", "--sizes", "8M", "--iters", "1000",
                            "--record", record], stdout=log, stderr=log, env=os.environ | {"SLURM_JOB_ID": "4711"})
    processes.append(job)
    def runs():
        if job.poll() is not None:
            sys.exit(f"the job ended: {(folder / 'bench.log').read_text()}")
        return record.exists() and '"sample"' in "".join(f.read_text() for f in record.iterdir())
    wait_for("the job's first sample", runs, 60)

    exporter = subprocess.Popen([RIFFLE, "metrics", record, "--window", "15", "--listen", "127.0.0.1:0"],
                                stdout=subprocess.PIPE, text=True)
    processes.append(exporter)
    target = exporter.stdout.readline().strip().split("/")[2]
    shutil.copy(MONITORING / "riffle-alerts.yml", folder)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [riffle-alerts.yml]\n"
        f"scrape_configs:\n  - job_name: riffle\n    static_configs: [{{targets: ['{target}']}}]\n")
    port = free_port()
    processes.append(subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}"], stdout=(folder / "prometheus.log").open("w"), stderr=subprocess.STDOUT))
    api = f"http://127.0.0.1:{port}/api/v1"
    wait_for("Prometheus has scraped", lambda: is_up(api), 60)
    time.sleep(SCRAPED_S)

    failures = []
    asked = list(expressions())
    for title, expression in asked:
        result = get(f"{api}/query?query={urllib.parse.quote(expression)}")["result"]
        print(f"{title}: {len(result)} series, the first {result[0]['value'][1] if result else 'none'}")
        if not result:
            failures.append(f"{title}: nothing for {expression}")
    rules = [rule for group in get(api + "/rules")["groups"] for rule in group["rules"]]
    failures += [f"rule {rule['name']}: {rule['lastError']}" for rule in rules if rule["health"] != "ok"]
    if len(asked) < 15 or len(rules) < 5:
        failures.append(f"{len(asked)} queries, {len(rules)} rules")
    firing = {alert["labels"]["alertname"] for alert in get(api + "/alerts")["alerts"] if alert["state"] == "firing"}
    unexpected = firing & {"RiffleNodeLost", "RiffleCommunicatorBroken", "RiffleFallback", "RiffleNodeSilent"}
    failures += [f"{name} fires" for name in sorted(unexpected)]
    page = subprocess.run([RIFFLE, "top", "--once", record], capture_output=True, text=True, check=True).stdout
    print(page)
    # Its rate is what the job measured.
    if "job 4711, 4 nodes" not in page or not re.search(r"node node2 limits: (4[5-9]|5[0-5]) Mbit/s", page):
        failures.append("riffle top does not name job 4711 and the limit of node2")
    if job.poll() is not None:
        failures.append(f"the job ended too early: {(folder / 'bench.log').read_text()}")
    return failures


def main():
    if shutil.which("prometheus") is None:
        print("there is no prometheus")
        return 77
    if subprocess.run(["unshare", "--net", "true"], check=False).returncode != 0:
        print("no namespaces here")
        return 77
    processes = []
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {LIMIT_S} s"))
    signal.alarm(LIMIT_S)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            failures = check(pathlib.Path(folder), processes)
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGINT)
            for process in processes:
                process.wait(60)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
