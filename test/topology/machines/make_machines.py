#!/usr/bin/env python3
"""Writes the hand-made machines of this folder: hwloc 2 XML as `riffle topo --record` would.

usage: test/topology/machines/make_machines.py    (writes beside itself)

The shapes are those of real machines (which card sits below which bridge, what drivers tell); the
serial facts (addresses) are invented. Expected outputs beside them are checked by machine_test.
"""
import pathlib
from xml.sax.saxutils import quoteattr

FOLDER = pathlib.Path(__file__).resolve().parent


def bits(numbers):
    """hwloc's text of a set: 32-bit words, the highest first."""
    value = sum(1 << n for n in numbers)
    words = []
    while value or not words:
        words.append(value & 0xffffffff)
        value >>= 32
    text = ",".join(f"0x{word:08x}" for word in reversed(words))
    return text


class Element:
    count = 0

    def __init__(self, tag="object", **attributes):
        self.tag, self.attributes, self.children = tag, attributes, []
        if tag == "object":
            Element.count += 1
            self.attributes["gp_index"] = Element.count

    def add(self, *children):
        self.children += children
        return self

    def info(self, **values):
        return self.add(*(Element("info", name=k, value=v) for k, v in values.items()))

    def lines(self, depth=0):
        attributes = "".join(f" {k}={quoteattr(str(v))}" for k, v in self.attributes.items())
        end = ">" if self.children else "/>"
        yield f"{'  ' * depth}<{self.tag}{attributes}{end}"
        for child in self.children:
            yield from child.lines(depth + 1)
        if self.children:
            yield f"{'  ' * depth}</{self.tag}>"


def sets(cpus, nodes):
    return {"cpuset": bits(cpus), "complete_cpuset": bits(cpus),
            "nodeset": bits(nodes), "complete_nodeset": bits(nodes)}


class Machine:
    """Packages of NUMA nodes of cores; devices hang below a node (or the machine: node None)."""

    def __init__(self, packages, nodes_per_package, cores_per_node, threads, model, *,
                 architecture="x86_64", vendor="GenuineIntel", family=6, number=143,
                 memory_gib=64, extra_nodes=0):
        Element.count = 0
        total_nodes = packages * nodes_per_package
        cores = total_nodes * cores_per_node
        everything = list(range(cores * threads))
        all_nodes = list(range(total_nodes + extra_nodes))
        self.root = Element(type="Machine", os_index=0, **sets(everything, all_nodes),
                            allowed_cpuset=bits(everything), allowed_nodeset=bits(all_nodes))
        self.root.info(Backend="Linux", OSName="Linux", Architecture=architecture)
        self.nodes = []
        for p in range(packages):
            package_nodes = range(p * nodes_per_package, (p + 1) * nodes_per_package)
            of = lambda n: [c + t * cores for c in range(n * cores_per_node, (n + 1) * cores_per_node)
                            for t in range(threads)]
            package = Element(type="Package", os_index=p,
                              **sets(sum((of(n) for n in package_nodes), []), package_nodes))
            if vendor:
                package.info(CPUVendor=vendor, CPUFamilyNumber=family, CPUModelNumber=number)
            package.info(CPUModel=model)
            self.root.add(package)
            for n in package_nodes:
                group = package
                if nodes_per_package > 1:
                    group = Element(type="Group", **sets(of(n), [n]), kind=1000, subkind=0)
                    package.add(group)
                group.add(Element(type="NUMANode", os_index=n, **sets(of(n), [n]),
                                  local_memory=memory_gib << 30))
                for core in range(n * cores_per_node, (n + 1) * cores_per_node):
                    cpus = [core + t * cores for t in range(threads)]
                    parent = Element(type="Core", os_index=core, **sets(cpus, [n]))
                    for cpu in cpus:
                        parent.add(Element(type="PU", os_index=cpu, **sets([cpu], [n])))
                    group.add(parent)
                self.nodes.append(group)
        for n in range(total_nodes, total_nodes + extra_nodes):  # memory without processors
            self.root.add(Element(type="NUMANode", os_index=n, cpuset="0x0", complete_cpuset="0x0",
                                  nodeset=bits([n]), complete_nodeset=bits([n]),
                                  local_memory=96 << 30))

    def below(self, node, *devices):
        (self.root if node is None else self.nodes[node]).add(*devices)
        return self

    def misc(self, name, **values):
        self.root.add(Element(type="Misc", name=name).info(**values))
        return self

    def text(self):
        head = ['<?xml version="1.0" encoding="UTF-8"?>',
                '<!DOCTYPE topology SYSTEM "hwloc2.dtd">', '<topology version="2.0">']
        return "\n".join(head + list(self.root.lines(1)) + ["</topology>"]) + "\n"


def host(bus, *children, domain=0):
    return Element(type="Bridge", bridge_type="0-1", depth=0,
                   bridge_pci=f"{domain:04x}:[{bus:02x}-{bus + 15:02x}]").add(*children)


def bridge(busid, first, last, *children, speed=0.0):
    domain = busid.split(":")[0]
    return Element(type="Bridge", bridge_type="1-1", depth=1,
                   bridge_pci=f"{domain}:[{first:02x}-{last:02x}]", pci_busid=busid,
                   pci_type="0604 [1000:c030] [1000:0000] b0",
                   pci_link_speed=f"{speed:f}").add(*children)


def pci(busid, kind, ids, *children, speed=0.0):
    return Element(type="PCIDev", pci_busid=busid, pci_type=f"{kind} [{ids}] [{ids}] 00",
                   pci_link_speed=f"{speed:f}").add(*children)


def net(name, state="up", speed=None, driver=None, mtu=1500, mac=None, **more):
    device = Element(type="OSDev", name=name, osdev_type=2)
    device.info(Address=mac or "02:00:00:00:00:%02x" % (sum(name.encode()) & 0xff))
    device.info(RiffleState=state)
    if speed is not None:
        device.info(RiffleSpeedMbps=speed)
    if driver:
        device.info(RiffleDriver=driver)
    return device.info(RiffleMtu=mtu, **more)


def nic(busid, name, driver, ids, pcie=15.753846, rdma=None, **more):
    children = [net(name, driver=driver, **more)]
    if rdma:
        children.append(Element(type="OSDev", name=rdma, osdev_type=3))
    return pci(busid, "0200", ids, *children, speed=pcie)


def connectx7(busid, name, rdma=None, speed=400000, **more):
    return nic(busid, name, "mlx5_core", "15b3:1021", 63.015385, rdma, speed=speed, mtu=9000, **more)


def connectx5(busid, name, speed=100000, **more):
    return nic(busid, name, "mlx5_core", "15b3:1017", speed=speed, **more)


def gpu(busid, ids, model, index, pcie=31.507692, backend=("cuda", "nvml")):
    kinds = {"cuda": 5, "nvml": 1, "rsmi": 1}
    return pci(busid, "0302", ids, *(
        Element(type="OSDev", name=f"{b}{index}", osdev_type=kinds[b]).info(GPUModel=model)
        for b in backend), speed=pcie)


def vga(busid):
    return pci(busid, "0300", "1a03:2000")  # of the board's management controller


def dgx():
    """8 GPUs and 8 rails, two of each below one PCIe switch; a slow port for management."""
    m = Machine(2, 1, 24, 2, "Intel(R) Xeon(R) Platinum 8480C")
    for s in range(4):
        bus = 0x10 + 0x40 * s
        ports = []
        for i in range(2):
            index, below = 2 * s + i, bus + 3 + 2 * i
            ports.append(bridge(f"0000:{bus + 2:02x}:{i:02x}.0", below, below,
                                gpu(f"0000:{below:02x}:00.0", "10de:2330", "NVIDIA H100 80GB HBM3",
                                    index, 63.015385)))
            ports.append(bridge(f"0000:{bus + 2:02x}:{i + 4:02x}.0", below + 1, below + 1,
                                connectx7(f"0000:{below + 1:02x}:00.0", f"eth{index}",
                                          f"mlx5_{index}")))
        m.below(s // 2, host(bus, bridge(f"0000:{bus:02x}:01.0", bus + 1, bus + 8,
                                         bridge(f"0000:{bus + 1:02x}:00.0", bus + 2, bus + 8, *ports,
                                                speed=63.015385))))
    m.below(0, host(0, bridge("0000:00:1c.0", 1, 1, vga("0000:01:00.0")),
                    bridge("0000:00:1d.0", 2, 2,
                           nic("0000:02:00.0", "eno1", "igb", "8086:1521", 2.0, speed=1000))))
    return m


def dual_socket():
    """Four GPUs on root ports of two sockets, a NIC of two ports at the second."""
    m = Machine(2, 1, 16, 2, "Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz", number=106)
    for g, bus in enumerate((0x17, 0x3a, 0x85, 0xae)):
        m.below(g // 2, host(bus, bridge(f"0000:{bus:02x}:00.0", bus + 1, bus + 1,
                                         gpu(f"0000:{bus + 1:02x}:00.0", "10de:20b5",
                                             "NVIDIA A100 80GB PCIe", g))))
    m.below(1, host(0xd7, bridge("0000:d7:02.0", 0xd8, 0xd8,
                                 connectx5("0000:d8:00.0", "ens5f0np0", rdma="mlx5_0"),
                                 connectx5("0000:d8:00.1", "ens5f1np1", state="no-carrier",
                                           speed=-1, rdma="mlx5_1"))))
    return m


def workstation():
    """One GPU, one copper port, Wi-Fi; the processor's own graphics are no GPU for NCCL."""
    return Machine(1, 1, 8, 2, "Intel(R) Core(TM) i7-12700K", number=151, memory_gib=32).below(
        None, host(0, bridge("0000:00:01.0", 1, 1,
                             gpu("0000:01:00.0", "10de:2684", "NVIDIA GeForce RTX 4090", 0)),
                   pci("0000:00:02.0", "0300", "8086:4680"),
                   bridge("0000:00:1c.2", 3, 3,
                          nic("0000:03:00.0", "enp3s0", "igc", "8086:15f3", 0.5, speed=2500)),
                   pci("0000:00:14.3", "0280", "8086:7af0",
                       net("wlp0s20f3", driver="iwlwifi", RiffleKind="wlan"))))


def cloud_virtio():
    """A virtual machine whose card knows no speed."""
    return Machine(1, 1, 8, 2, "AMD EPYC 7B13", vendor="AuthenticAMD", family=25, number=1).below(
        None, host(0, nic("0000:00:04.0", "ens4", "virtio_net", "1af4:1000", 0.0, speed=-1,
                          mtu=1460)))


def cloud_ena():
    """Four GPUs and an elastic network card without a speed, in two NUMA nodes."""
    m = Machine(1, 2, 12, 2, "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", number=85)
    m.below(0, host(0, nic("0000:00:05.0", "ens5", "ena", "1d0f:ec20", 0.0, mtu=9001),
                    *(gpu(f"0000:00:{0x1b + g:02x}.0", "10de:1eb8", "Tesla T4", g, 7.876923)
                      for g in range(4))))
    return m


def grace():
    """Grace Hopper: one PCI domain per card, a NUMA node of GPU memory without processors."""
    m = Machine(1, 1, 72, 1, "Neoverse-V2", architecture="aarch64", vendor="", memory_gib=480,
                extra_nodes=1)
    m.below(0,
            host(0, bridge("0000:00:00.0", 1, 1, connectx7("0000:01:00.0", "enp1s0np0", "mlx5_0")),
                 domain=0),
            host(0, bridge("0002:00:00.0", 1, 1,
                           connectx7("0002:01:00.0", "enP2p1s0np0", "mlx5_1")), domain=2),
            host(0, bridge("0009:00:00.0", 1, 1,
                           gpu("0009:01:00.0", "10de:2342", "NVIDIA GH200 480GB", 0, 63.015385)),
                 domain=9))
    return m


def no_gpu():
    """Eight NUMA nodes (NPS4) and one NIC near the sixth."""
    m = Machine(2, 4, 4, 2, "AMD EPYC 7763 64-Core Processor", vendor="AuthenticAMD", family=25,
                number=1)
    return m.below(5, host(0xa0, bridge("0000:a0:03.1", 0xa1, 0xa1,
                                        nic("0000:a1:00.0", "enp161s0", "ice", "8086:1592",
                                            speed=100000))))


def bonded():
    """Two 25 Gbit/s ports as bond0, a VLAN and a bridge over it."""
    m = Machine(2, 1, 8, 1, "Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", number=106)
    ports = [nic(f"0000:86:00.{i}", f"ens3f{i}", "ice", "8086:159b", 7.876923, speed=25000,
                 mac="02:00:00:00:00:b0", RiffleBondMaster="bond0") for i in range(2)]
    m.below(1, host(0x85, bridge("0000:85:00.0", 0x86, 0x86, *ports)))
    m.misc("bond0", Address="02:00:00:00:00:b0", RiffleState="up", RiffleSpeedMbps=50000,
           RiffleMtu=9000, RiffleBondMembers="ens3f0 ens3f1", RiffleLower="ens3f0 ens3f1")
    m.misc("bond0.100", Address="02:00:00:00:00:b0", RiffleState="up", RiffleMtu=9000,
           RiffleLower="bond0")
    m.misc("br0", Address="02:00:00:00:00:b0", RiffleState="up", RiffleLower="bond0.100 veth7")
    m.misc("veth7", RiffleState="up", RiffleSpeedMbps=10000)
    m.misc("lo", RiffleState="loopback", RiffleMtu=65536)
    return m


def multi_rail():
    """Four rails over two sockets, one of them without a cable, one slower."""
    m = Machine(2, 1, 16, 1, "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", number=106)
    cards = [("rail0", {}), ("rail1", {"state": "no-carrier", "speed": -1}),
             ("rail2", {"speed": 50000}), ("rail3", {})]
    for i, (name, more) in enumerate(cards):
        bus = 0x20 + 0x40 * i
        m.below(i // 2, host(bus, bridge(f"0000:{bus:02x}:01.0", bus + 1, bus + 1,
                                         connectx5(f"0000:{bus + 1:02x}:00.0", name, **more))))
    return m


def smt_off():
    """Two sockets of eight cores, one thread each."""
    return Machine(2, 1, 8, 1, "Intel(R) Xeon(R) E-2388G CPU @ 3.20GHz", number=167).below(
        0, host(0, bridge("0000:00:06.0", 1, 1,
                          nic("0000:01:00.0", "eno1", "i40e", "8086:1572", 7.876923, speed=10000))))


def amd_gpus():
    """Two Instinct cards, each behind two cascaded switches shared with a NIC."""
    m = Machine(2, 1, 8, 2, "AMD EPYC 9354 32-Core Processor", vendor="AuthenticAMD", family=25,
                number=17)
    for s in range(2):
        b = 0x20 + 0x40 * s
        lower = bridge(f"0000:{b + 3:02x}:00.0", b + 4, b + 6,
                       bridge(f"0000:{b + 4:02x}:00.0", b + 5, b + 5,
                              pci(f"0000:{b + 5:02x}:00.0", "1200", "1002:74a1",
                                  Element(type="OSDev", name=f"rsmi{s}", osdev_type=1).info(
                                      GPUModel="AMD Instinct MI300X"), speed=63.015385)))
        m.below(s, host(b, bridge(f"0000:{b:02x}:01.0", b + 1, b + 8, bridge(
            f"0000:{b + 1:02x}:00.0", b + 2, b + 8,
            bridge(f"0000:{b + 2:02x}:00.0", b + 3, b + 6, lower),
            bridge(f"0000:{b + 2:02x}:01.0", b + 7, b + 7,
                   nic(f"0000:{b + 7:02x}:00.0", f"ens{s}", "bnxt_en", "14e4:1760", 63.015385,
                       f"bnxt_re{s}", speed=400000))))))
    return m


def no_nics():
    """Processors only: a sandbox without a network."""
    return Machine(1, 1, 4, 1, "Common KVM processor", family=15, number=6, memory_gib=4)


def odd_speeds():
    """What drivers say when they do not know, and what no driver should say."""
    m = Machine(1, 1, 4, 1, "QEMU Virtual CPU version 2.5+", family=15, number=107, memory_gib=4)
    speeds = ["0", "-1", "4294967295", "99999999999999999999", "fast", "10000001", "10"]
    return m.below(None, host(0, *(nic(f"0000:00:{3 + i:02x}.0", f"eth{i}", "e1000", "8086:100e",
                                       0.0, speed=s) for i, s in enumerate(speeds))))


def plain_export():
    """What lstopo writes: hwloc alone, without our attributes."""
    m = dual_socket()
    def strip(element):
        element.children = [c for c in element.children if not (
            c.tag == "info" and c.attributes["name"].startswith("Riffle"))]
        for child in element.children:
            strip(child)
    strip(m.root)
    return m


MACHINES = {
    "dgx": dgx, "dual-socket": dual_socket, "workstation": workstation,
    "cloud-virtio": cloud_virtio, "cloud-ena": cloud_ena, "grace": grace, "no-gpu": no_gpu,
    "bonded": bonded, "multi-rail": multi_rail, "smt-off": smt_off, "amd-gpus": amd_gpus,
    "no-nics": no_nics, "odd-speeds": odd_speeds, "plain-export": plain_export,
}


def main():
    for name, make in MACHINES.items():
        (FOLDER / f"{name}.xml").write_text(make().text())
    whole = (FOLDER / "dual-socket.xml").read_text()
    (FOLDER / "broken-truncated.xml").write_text(whole[:len(whole) // 2])
    (FOLDER / "broken-empty.xml").write_text("")
    (FOLDER / "broken-other-xml.xml").write_text(
        '<?xml version="1.0"?>\n<system version="1"><cpu numaid="0"/></system>\n')
    (FOLDER / "broken-sets.xml").write_text(whole.replace('cpuset="', 'cpuset="zebra'))
    (FOLDER / "broken-no-processors.xml").write_text(
        '<?xml version="1.0"?>\n<topology version="2.0">\n  <object type="Machine"/>\n</topology>\n')


if __name__ == "__main__":
    main()
