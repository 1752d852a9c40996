"""The emulated network: a profile of bench/profiles, as the demo and the plugin want to see it."""

import tomllib


class Network:
    """nodes: [{"rate_mbps", "rack"}]; racks: [{"name", "uplink_mbps"}], 0 = not limited."""

    def __init__(self, file):
        with open(file, "rb") as stream:
            profile = tomllib.load(stream)
        self.about = profile["about"]
        rates = {node: rule["rate_mbps"] for rule in profile.get("exception", [])
                 for node in rule["nodes"]}
        racks = profile.get("rack", [{"name": "all", "nodes": list(range(profile["nodes"]))}])
        rack_of = {node: index for index, rack in enumerate(racks) for node in rack["nodes"]}
        self.nodes = [{"rate_mbps": rates.get(n, profile["rate_mbps"]), "rack": rack_of[n]}
                      for n in range(profile["nodes"])]
        self.racks = [{"name": rack["name"], "uplink_mbps": rack.get("uplink_mbps", 0)}
                      for rack in racks]

    def members(self, rack):
        return [n for n, node in enumerate(self.nodes) if node["rack"] == rack]

    def fabric(self):
        """The fabric file (docs/fabric.md) that tells the plugin the rates."""
        lines = []
        for rack in self.racks:
            lines += ["[[rack]]", f'name = "{rack["name"]}"',
                      f'uplink_mbps = {rack["uplink_mbps"]}', ""]
        for index, node in enumerate(self.nodes):
            lines += ["[[node]]", f'name = "node{index}"', f'rate_mbps = {node["rate_mbps"]}',
                      f'rack = "{self.racks[node["rack"]]["name"]}"', ""]
        return "\n".join(lines)
