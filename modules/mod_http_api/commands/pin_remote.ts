/** Pins at remote services. */

import type { PinCounts, PinFilters } from "../../mod_node/network/pinning_services/remote_pins.ts";
import type { RemotePin } from "../../mod_node/network/pinning_services/responses.ts";
import { addService, removeService } from "../../mod_node/network/pinning_services/services.ts";
import { printable } from "../../mod_node/util/go/text.ts";
import { columns } from "../rpc/columns.ts";
import {
  type Argument,
  type Commands,
  defineCommand,
  defineGroup,
  nothing,
  type Option,
  stream,
  value,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const pins = stream(fields("RemotePinOutput", { Status: "string", Cid: "string", Name: "string" }));

const service = { type: "string", help: "Name of the service; it must be given." } as const satisfies Option;
const serviceName = { name: "service", required: true, help: "Name of the service." } as const satisfies Argument;

/** Which pins are meant. */
const chosen = {
  service,
  name: { type: "string", help: "Those that have this name." },
  cid: { type: "list", help: "Those of these CIDs." },
  status: {
    type: "list",
    default: ["pinned"],
    help: "Those that are `queued`, `pinning`, `pinned` or `failed`.",
  },
} as const satisfies Record<string, Option>;

interface Chosen {
  readonly name: string | undefined;
  readonly cid: readonly string[] | undefined;
  readonly status: readonly string[];
}

const queryOf = ({ name, cid, status }: Chosen): PinFilters => ({ name, cids: cid, statuses: status });

const shown = ({ status, cid, name }: RemotePin) => ({ Status: status, Cid: cid, Name: name });

const count = fields("PinCount", { Queued: "int", Pinning: "int", Pinned: "int", Failed: "int" });

const stat = fields("Stat", { Status: "string", "PinCount?": count });
const details = fields("ServiceDetails", { Service: "string", ApiEndpoint: "string", "Stat?": stat });

function statOf(counts: PinCounts | "invalid"): ValueOf<typeof stat> {
  if (counts === "invalid") return { Status: "invalid" };
  const { queued, pinning, pinned, failed } = counts;
  return { Status: "valid", PinCount: { Queued: queued, Pinning: pinning, Pinned: pinned, Failed: failed } };
}

const cells = ({ Service, ApiEndpoint, Stat }: ValueOf<typeof details>): readonly string[] => {
  const { Queued, Pinning, Pinned, Failed } = Stat?.PinCount ?? {};
  const counts = Stat?.PinCount === undefined ? Stat?.Status : [Queued, Pinning, Pinned, Failed].join("/");
  return [Service, ApiEndpoint, ...(counts === undefined ? [] : [counts])];
};

export const commands = {
  "pin/remote": defineGroup({ help: "Pin at remote services." }),
  "pin/remote/add": defineCommand({
    help: "Has a service pin something.",
    example: { service: "<service>" },
    arguments: [{ name: "ipfs-path", required: true, help: "What to pin." }],
    options: {
      service,
      name: { type: "string", help: "Name of the pin." },
      background: { type: "bool", default: false, help: "Do not wait until it is pinned." },
    },
    returns: pins,
    async *run(call) {
      const { lowLevel: node, options, signal } = call;
      const client = node.remotePins.service(options.service);
      const { cid } = await node.resolve(call.arguments["ipfs-path"], call);
      const { name, background } = options;
      yield shown(await node.remotePins.add(client, cid, { name, background, signal }));
    },
    text({ Cid, Name, Status }) {
      const lines = `CID:\t${Cid}\nName:\t${Name}\nStatus:\t${Status}`.split("\n");
      return columns(
        lines.map((line) => line.split("\t")),
        0,
      );
    },
  }),
  "pin/remote/ls": defineCommand({
    help: "Lists the pins at a service.",
    example: { service: "<service>" },
    options: chosen,
    returns: pins,
    async *run({ lowLevel: node, options, signal }) {
      const { remotePins } = node;
      const client = remotePins.service(options.service);
      for await (const pin of remotePins.list(client, queryOf(options), signal)) yield shown(pin);
    },
    text: ({ Cid, Status, Name }) => `${Cid}\t${Status}\t${printable(Name)}\n`,
  }),
  "pin/remote/rm": defineCommand({
    help: "Removes pins at a service.",
    example: { service: "<service>", cid: "<cid>" },
    options: { ...chosen, force: { type: "bool", default: false, help: "Allow it to be more than one." } },
    returns: nothing,
    async run({ lowLevel: node, options, signal }) {
      const { remotePins } = node;
      const { force } = options;
      await remotePins.remove(remotePins.service(options.service), queryOf(options), { force, signal });
    },
  }),
  "pin/remote/service": defineGroup({ help: "Keep the list of services." }),
  "pin/remote/service/add": defineCommand({
    help: "Adds a service.",
    arguments: [
      serviceName,
      { name: "endpoint", required: true, help: "Its URL." },
      { name: "key", required: true, secret: true, help: "The key that it gave." },
    ],
    returns: nothing,
    async run({ lowLevel: node, arguments: { service: name, endpoint, key } }) {
      await addService(node.repo.config, name, { endpoint, key });
    },
  }),
  "pin/remote/service/ls": defineCommand({
    help: "Lists the services.",
    options: { stat: { type: "bool", default: false, help: "Ask them how many pins they have." } },
    returns: value(fields("PinServicesList", { RemoteServices: [details] })),
    async run({ lowLevel: node, options, signal }) {
      const services = await node.remotePins.services(options.stat, signal);
      return {
        RemoteServices: services.map(({ name, endpoint, counts }) => ({
          Service: name,
          ApiEndpoint: endpoint,
          ...(counts === undefined ? {} : { Stat: statOf(counts) }),
        })),
      };
    },
    text: ({ RemoteServices }) => columns(RemoteServices.map(cells), 0),
  }),
  "pin/remote/service/rm": defineCommand({
    help: "Removes a service.",
    arguments: [serviceName],
    returns: nothing,
    async run({ lowLevel: node, arguments: { service: name } }) {
      await removeService(node.repo.config, name);
    },
  }),
} satisfies Commands;
