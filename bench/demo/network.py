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
