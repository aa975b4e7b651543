/** Operations on remote pinning services and their pins. */
import { contentPath } from "../content_path.ts";
import { within } from "../failures.ts";
import { pageFields, pageOf } from "../paging.ts";
import type { RemotePinPage, RemotePinState, RemoteServiceState } from "../types.ts";
import { listOf, nodeOperation } from "./operation.ts";

/** Seconds that a service has to respond. */
const SERVICE_SECONDS = 30;
const USUAL_PAGE = 100;
const statuses = ["queued", "pinning", "pinned", "failed"] as const;

const service = { type: "string", required: true, describe: "Name of the service" } as const;
const cid = { type: "string", describe: "Only pins of this CID" } as const;
const name = { type: "string", describe: "Only pins of this name" } as const;
const status = {
  type: "string",
  describe: `Statuses, separated by commas: ${statuses.join(",")}; default: all`,
} as const;

export const remotePinOperations = [
  nodeOperation({
    name: "node_remote_services",
    method: "GET",
    path: "/node/remote",
    scope: "read",
    help: "Remote pinning services that are configured",
    input: { counts: { type: "boolean", describe: "Also request the number of pins from each; default: false" } },
    response: listOf("RemoteServiceState"),
    run: async ({ node, input: { counts = false }, signal }) => {
      const options = { stat: counts, text: true, signal: within(signal, SERVICE_SECONDS) } as const;
      const services = await node.pin.remote.service.ls(options);
      return services.map(({ service: called, endpoint, stat }): RemoteServiceState => {
        if (stat === undefined) return { service: called, endpoint };
        if (stat.status === "invalid") return { service: called, endpoint, is_valid: false };
        return { service: called, endpoint, is_valid: true, counts: stat.pinCount };
      });
    },
  }),
  nodeOperation({
    name: "node_remote_service_add",
    method: "POST",
    path: "/node/remote",
    scope: "admin",
    help: "Add a remote pinning service",
    input: {
      service,
      endpoint: { type: "string", required: true, describe: "URL of its API" },
      key: { type: "string", required: true, describe: "The key from the service; it is never shown again" },
    },
    response: "RemoteServiceState",
    records: (input) => `add the pinning service ${input.service}`,
    run: async ({ node, input: { service: called, endpoint, key } }): Promise<RemoteServiceState> => {
      await node.pin.remote.service.add(called, { endpoint, key });
      return { service: called, endpoint };
    },
  }),
  nodeOperation({
    name: "node_remote_service_remove",
    method: "POST",
    path: "/node/remote/{service}/remove",
    scope: "admin",
    help: "Remove a remote pinning service from the configuration; its pins stay there",
    input: { service },
    response: { type: "object", properties: { service: { type: "string" } } },
    records: (input) => `remove the pinning service ${input.service}`,
    run: async ({ node, input }) => {
      await node.pin.remote.service.rm(input.service);
      return { service: input.service };
    },
  }),
  nodeOperation({
    name: "node_remote_pins",
    method: "GET",
    path: "/node/remote/{service}/pins",
    scope: "read",
    help: "Pins at a remote pinning service, the newest first",
    input: { service, status, name, cid, limit: pageFields.limit },
    response: "RemotePinPage",
    run: async ({ node, input, signal }): Promise<RemotePinPage> => {
      const { limit } = pageOf({ offset: undefined, limit: input.limit }, USUAL_PAGE);
      const pins: RemotePinState[] = [];
      const options = { ...filterOf(input), text: true, signal: within(signal, SERVICE_SECONDS) } as const;
      for await (const pin of node.pin.remote.ls(options)) {
        if (pins.length === limit) return { pins, has_more: true };
        pins.push({ cid: pin.cid, name: pin.name, status: pin.status });
      }
      return { pins, has_more: false };
    },
  }),
  nodeOperation({
    name: "node_remote_pin_add",
    method: "POST",
    path: "/node/remote/{service}/pins",
    scope: "admin",
    help: "Pin content at a remote pinning service, which fetches it itself",
    input: {
      service,
      path: { type: "string", required: true, describe: "A CID, or a path that leads to one" },
      name: { type: "string", describe: "Name of the pin" },
    },
    response: "RemotePinState",
    records: (input) => `have ${input.service} pin ${input.path}`,
    run: async ({ node, signal, input }): Promise<RemotePinState> => {
      const options = { service: input.service, name: input.name, background: true, text: true } as const;
      const path = contentPath(input.path);
      return node.pin.remote.add(path, { ...options, signal: within(signal, SERVICE_SECONDS) });
    },
  }),
  nodeOperation({
    name: "node_remote_pin_remove",
    method: "POST",
    path: "/node/remote/{service}/pins/remove",
    scope: "admin",
    help: "Remove the pins of a CID from a remote pinning service",
    input: { service, cid: { ...cid, required: true, describe: "The pins' CID" }, name, status },
    response: { type: "object", properties: { removed: { type: "boolean" } } },
    records: (input) => `have ${input.service} remove the pins of ${input.cid}`,
    run: async ({ node, signal, input }) => {
      await node.pin.remote.rmAll({ ...filterOf(input), signal: within(signal, SERVICE_SECONDS) });
      return { removed: true };
    },
  }),
];

interface RemotePinRequest {
  readonly service: string;
  readonly status: string | undefined;
  readonly name: string | undefined;
  readonly cid: string | undefined;
}

function filterOf({ service: at, status: wanted, name: called, cid: of }: RemotePinRequest) {
  const chosen = wanted === undefined ? statuses : wanted.split(",").map((word) => word.trim());
  return { service: at, status: chosen, name: called, ...(of === undefined ? {} : { cid: [of] }) };
}
