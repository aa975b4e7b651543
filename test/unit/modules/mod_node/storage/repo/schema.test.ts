import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { defaultSpec, flatfsSpec } from "#node/storage/repo/defaults.ts";
import { printJson, setAt } from "#node/storage/repo/json.ts";
import { decodeConfig, initialConfig, valueAt } from "#node/storage/repo/schema.ts";

const sortedBootstrap = (text: string) => {
  const document = JSON.parse(text);
  return printJson({ ...document, Bootstrap: document.Bootstrap.toSorted() }, "kept");
};

test("the document of a new repo equals that of go-ipfs, in the same order, except for the stores", async () => {
  const recorded = await readFile(new URL("../../../../../fixtures/node/config_fresh.json", import.meta.url), "utf8");
  let own = decodeConfig({ ...initialConfig(), Identity: { PeerID: "PEER", PrivKey: "KEY" } });
  assert.deepEqual(valueAt(own, "Datastore.Spec"), defaultSpec);
  own = setAt(own, "Datastore.Spec", flatfsSpec);
  assert.equal(sortedBootstrap(printJson(own, "kept")), sortedBootstrap(recorded));
});

/** The texts of go-ipfs. */
const faults: readonly (readonly [path: string, value: unknown, reason: string])[] = [
  [
    "Discovery.MDNS.Enabled",
    "x",
    "json: cannot unmarshal string into Go struct field MDNS.Discovery.MDNS.Enabled of type bool",
  ],
  [
    "Discovery.MDNS.Interval",
    1.5,
    "json: cannot unmarshal number 1.5 into Go struct field MDNS.Discovery.MDNS.Interval of type int",
  ],
  [
    "Discovery.MDNS.Interval",
    1e30,
    "json: cannot unmarshal number 1e+30 into Go struct field MDNS.Discovery.MDNS.Interval of type int",
  ],
  [
    "Datastore.StorageGCWatermark",
    "90",
    "json: cannot unmarshal string into Go struct field Datastore.Datastore.StorageGCWatermark of type int64",
  ],
  [
    "Datastore.Spec",
    5,
    "json: cannot unmarshal number into Go struct field Datastore.Datastore.Spec of type map[string]interface {}",
  ],
  ["Bootstrap", {}, "json: cannot unmarshal object into Go struct field Config.Bootstrap of type []string"],
  ["Bootstrap", [1], "json: cannot unmarshal number into Go struct field Config.Bootstrap of type string"],
  ["Addresses", "x", "json: cannot unmarshal string into Go struct field Config.Addresses of type config.Addresses"],
  ["Addresses.API", 5, "json: cannot unmarshal number into Go struct field Addresses.Addresses.API of type string"],
  ["Swarm", 3, "json: cannot unmarshal number into Go struct field Config.Swarm of type config.SwarmConfig"],
  [
    "Swarm.ConnMgr",
    [],
    "json: cannot unmarshal array into Go struct field SwarmConfig.Swarm.ConnMgr of type config.ConnMgr",
  ],
  [
    "Swarm.Transports.Network.QUIC",
    "x",
    'failed to unmarshal "\\"x\\"" into a flag: must be null/undefined, true, or false',
  ],
  [
    "Swarm.Transports.Security.TLS",
    "x",
    "json: cannot unmarshal string into Go struct field .Swarm.Transports.Security.TLS of type int64",
  ],
  ["Swarm.Transports.Security.TLS", true, "'true' is not a valid priority"],
  ["Swarm.Transports.Security.TLS", 0, "priority must be positive: 0 <= 0"],
  ["AutoNAT.ServiceMode", "x", "unknown autonat mode: x"],
  [
    "AutoNAT.ServiceMode",
    5,
    "json: cannot unmarshal number into Go struct field AutoNATConfig.AutoNAT.ServiceMode of type config.AutoNATServiceMode",
  ],
  ["AutoNAT.Throttle", { Interval: "5" }, 'time: missing unit in duration "5"'],
  [
    "AutoNAT.Throttle",
    { Interval: 5 },
    "json: cannot unmarshal number into Go struct field AutoNATThrottleConfig.AutoNAT.Throttle.Interval of type config.Duration",
  ],
  [
    "API.HTTPHeaders",
    { a: "b" },
    "json: cannot unmarshal string into Go struct field API.API.HTTPHeaders of type []string",
  ],
  [
    "API.HTTPHeaders",
    { a: ["b", 3] },
    "json: cannot unmarshal number into Go struct field API.API.HTTPHeaders of type string",
  ],
  ["DNS.Resolvers", { a: 3 }, "json: cannot unmarshal number into Go struct field DNS.DNS.Resolvers of type string"],
  [
    "Gateway.PublicGateways",
    { c: 3 },
    "json: cannot unmarshal number into Go struct field Gateway.Gateway.PublicGateways of type config.GatewaySpec",
  ],
  ["Peering.Peers", [{ ID: "x", Addrs: [] }], "failed to parse peer ID: cid too short"],
  [
    "Experimental",
    { FilestoreEnabled: "x" },
    "json: cannot unmarshal string into Go struct field Experiments.Experimental.FilestoreEnabled of type bool",
  ],
];

test("values that cannot be decoded are reported with the texts of go-ipfs", () => {
  for (const [path, value, reason] of faults) {
    const document = setAt(initialConfig(), path, value);
    assert.throws(() => decodeConfig(document), { message: `failure to decode config: ${reason}` }, path);
  }
});

/** A value, and the form in which go-ipfs writes it back. */
const forms: readonly (readonly [path: Parameters<typeof valueAt>[1], given: unknown, written: unknown])[] = [
  ["Addresses.API", ["a"], "a"],
  ["Addresses.API", [], null],
  ["Addresses.API", "", null],
  ["Addresses.API", ["a", "b"], ["a", "b"]],
  ["Discovery.MDNS.Interval", null, 0],
  ["Swarm.AddrFilters", [null], [""]],
  ["AutoNAT.Throttle", { Interval: "1m" }, { GlobalLimit: 0, PeerLimit: 0, Interval: "1m0s" }],
  ["AutoNAT.Throttle", {}, { GlobalLimit: 0, PeerLimit: 0 }],
  [
    "Gateway.PublicGateways",
    { a: { z: 1 }, b: null },
    { a: { Paths: null, UseSubdomains: false, NoDNSLink: false }, b: null },
  ],
  ["Plugins.Plugins", { a: { Config: [1] } }, { a: { Disabled: false, Config: [1] } }],
  ["API.HTTPHeaders", { b: null }, { b: null }],
  ["Swarm.Transports.Security.TLS", 5, 5],
  ["Swarm.Transports.Network.TCP", false, false],
];

test("values are written back in one form", () => {
  for (const [path, given, written] of forms) {
    assert.deepEqual(valueAt(decodeConfig(setAt(initialConfig(), path, given)), path), written, path);
  }
});

test("letter case of keys does not matter, unknown keys are dropped, and zero values of rare keys are left out", () => {
  const decoded = decodeConfig({
    discovery: { mdns: { enabled: true }, Odd: 1 },
    Discovery: { MDNS: { Interval: 7 } },
    Datastore: { Type: "", Params: null },
    Swarm: { Transports: { Network: { QUIC: null, TCP: false } } },
    Odd: 1,
  });
  assert.deepEqual(decoded.Discovery, { MDNS: { Enabled: true, Interval: 7 } });
  assert.equal("Odd" in decoded, false);
  assert.equal("Type" in (decoded.Datastore as object), false);
  assert.deepEqual((decoded.Swarm as { Transports: unknown }).Transports, {
    Network: { TCP: false },
    Security: {},
    Multiplexers: {},
  });
});
