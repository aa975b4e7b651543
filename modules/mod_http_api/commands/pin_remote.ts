/** `pin/remote`: pins at remote pinning services. */
import { printable, type RemotePin, type RemoteService } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type Argument,
  type Commands,
  defineGroup,
  nothing,
  type Option,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const pins = stream(fields("RemotePinOutput", { Status: "string", Cid: "string", Name: "string" }));

const service = { type: "string", help: "Name of the service; required." } as const satisfies Option;
const serviceName = { name: "service", required: true, help: "Name of the service." } as const satisfies Argument;

/** Options that select pins. */
const chosen = {
  service,
  name: { type: "string", help: "Only pins with this name." },
  cid: { type: "list", help: "Only pins of these CIDs." },
  status: {
    type: "list",
    default: ["pinned"],
    help: "Only pins that are `queued`, `pinning`, `pinned` or `failed`.",
  },
} as const satisfies Record<string, Option>;

const shown = ({ status, cid, name }: RemotePin<string>) => ({ Status: status, Cid: cid, Name: name });

const count = fields("PinCount", { Queued: "int", Pinning: "int", Pinned: "int", Failed: "int" });

const statOutput = fields("Stat", { Status: "string", "PinCount?": count });
const details = fields("ServiceDetails", { Service: "string", ApiEndpoint: "string", "Stat?": statOutput });

function statOf(stat: NonNullable<RemoteService["stat"]>): ValueOf<typeof statOutput> {
  if (stat.status === "invalid") return { Status: "invalid" };
  const { queued, pinning, pinned, failed } = stat.pinCount;
  return { Status: "valid", PinCount: { Queued: queued, Pinning: pinning, Pinned: pinned, Failed: failed } };
}

const cells = ({ Service, ApiEndpoint, Stat }: ValueOf<typeof details>): readonly string[] => {
  const { Queued, Pinning, Pinned, Failed } = Stat?.PinCount ?? {};
  const counts = Stat?.PinCount === undefined ? Stat?.Status : [Queued, Pinning, Pinned, Failed].join("/");
  return [Service, ApiEndpoint, ...(counts === undefined ? [] : [counts])];
};

export const remoteCommands = {
  "pin/remote": defineGroup({ help: "Pin at remote pinning services." }),
  "pin/remote/add": writeCommand({
    help: "Pins an object at a service.",
    example: { service: "<service>" },
    arguments: [{ name: "ipfs-path", path: true, required: true, help: "What to pin." }],
    options: {
      service,
      name: { type: "string", help: "Name of the pin." },
      background: { type: "bool", default: false, help: "Return without waiting until it is pinned." },
    },
    returns: pins,
    async *run({ node, arguments: { "ipfs-path": path }, options: { service, name, background }, signal, offline }) {
      yield shown(await node.pin.remote.add(path, { service, name, background, signal, offline, text: true }));
    },
    text({ Cid, Name, Status }) {
      const lines = `CID:\t${Cid}\nName:\t${Name}\nStatus:\t${Status}`.split("\n");
      return columns(
        lines.map((line) => line.split("\t")),
        0,
      );
    },
  }),
  "pin/remote/ls": readCommand({
    help: "Lists the pins at a service.",
    example: { service: "<service>" },
    options: chosen,
    returns: pins,
    async *run({ node, options: { service, name, cid, status }, signal }) {
      const found = node.pin.remote.ls({ service, name, cid, status, signal, text: true });
      for await (const pin of found) yield shown(pin);
    },
    text: ({ Cid, Status, Name }) => `${Cid}\t${Status}\t${printable(Name)}\n`,
  }),
  "pin/remote/rm": writeCommand({
    help: "Removes pins at a service.",
    example: { service: "<service>", cid: "<cid>" },
    options: { ...chosen, force: { type: "bool", default: false, help: "Allow removing more than one pin." } },
    returns: nothing,
    run({ node, options: { service, name, cid, status, force }, signal }) {
      const { remote } = node.pin;
      return (force ? remote.rmAll : remote.rm)({ service, name, cid, status, signal });
    },
  }),
  "pin/remote/service": defineGroup({ help: "Manage the list of services." }),
  "pin/remote/service/add": writeCommand({
    help: "Adds a service.",
    arguments: [
      serviceName,
      { name: "endpoint", required: true, help: "Its URL." },
      { name: "key", required: true, secret: true, help: "The key from the service." },
    ],
    returns: nothing,
    run: ({ node, arguments: { service, endpoint, key } }) => node.pin.remote.service.add(service, { endpoint, key }),
  }),
  "pin/remote/service/ls": readCommand({
    help: "Lists the services.",
    options: { stat: { type: "bool", default: false, help: "Also ask each service for its number of pins." } },
    returns: value(fields("PinServicesList", { RemoteServices: [details] })),
    async run({ node, options: { stat }, signal }) {
      const services = await node.pin.remote.service.ls({ stat, signal, text: true });
      return {
        RemoteServices: services.map(({ service, endpoint, stat }) => ({
          Service: service,
          ApiEndpoint: endpoint,
          ...(stat !== undefined && { Stat: statOf(stat) }),
        })),
      };
    },
    text: ({ RemoteServices }) => columns(RemoteServices.map(cells), 0),
  }),
  "pin/remote/service/rm": writeCommand({
    help: "Removes a service.",
    arguments: [serviceName],
    returns: nothing,
    run: ({ node, arguments: { service } }) => node.pin.remote.service.rm(service),
  }),
} satisfies Commands;
