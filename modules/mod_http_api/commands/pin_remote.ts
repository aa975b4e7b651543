/** Pins at remote services. */
import { type Argument, defineGroup, nothing, type Option, stream, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";

const pins = stream(fields("RemotePinOutput", { Status: "string", Cid: "string", Name: "string" }));

const service: Option = { type: "string", help: "Name of the service; it must be given." };
const serviceName: Argument = { name: "service", required: true, help: "Name of the service." };

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

const count = fields("PinCount", { Queued: "int", Pinning: "int", Pinned: "int", Failed: "int" });

export const commands = later({
  "pin/remote": defineGroup({ help: "Pin at remote services." }),
  "pin/remote/add": {
    help: "Has a service pin something.",
    arguments: [{ name: "ipfs-path", required: true, help: "What to pin." }],
    options: {
      service,
      name: { type: "string", help: "Name of the pin." },
      background: { type: "bool", default: false, help: "Do not wait until it is pinned." },
    },
    returns: pins,
  },
  "pin/remote/ls": { help: "Lists the pins at a service.", options: chosen, returns: pins },
  "pin/remote/rm": {
    help: "Removes pins at a service.",
    options: { ...chosen, force: { type: "bool", default: false, help: "Allow it to be more than one." } },
    returns: nothing,
  },
  "pin/remote/service": defineGroup({ help: "Keep the list of services." }),
  "pin/remote/service/add": {
    help: "Adds a service.",
    arguments: [
      serviceName,
      { name: "endpoint", required: true, help: "Its URL." },
      { name: "key", required: true, secret: true, help: "The key that it gave." },
    ],
    returns: nothing,
  },
  "pin/remote/service/ls": {
    help: "Lists the services.",
    options: { stat: { type: "bool", default: false, help: "Ask them how many pins they have." } },
    returns: value(
      fields("PinServicesList", {
        RemoteServices: [
          fields("ServiceDetails", {
            Service: "string",
            ApiEndpoint: "string",
            "Stat?": fields("Stat", { Status: "string", "PinCount?": count }),
          }),
        ],
      }),
    ),
  },
  "pin/remote/service/rm": { help: "Removes a service.", arguments: [serviceName], returns: nothing },
});
