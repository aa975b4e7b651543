/** What happens in the routing system, as clients are told: as an event, and as lines of text. */
import { eventTypes, type RoutingEvent, type RoutingEvents } from "../../mod_node/network/kad/events.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { lines } from "./shapes.ts";

export const queryEvent = fields("QueryEvent", {
  /** An error, or a record in base64. */
  Extra: "string",
  ID: "string",
  Responses: nullable([fields("AddrInfo", { ID: "string", Addrs: ["string"] })]),
  Type: "int",
});

type ShownEvent = ValueOf<typeof queryEvent>;

const shown = ({ type, id, responses, text, value }: RoutingEvent): ShownEvent => ({
  Extra: text ?? (value === undefined ? "" : Buffer.from(value).toString("base64")),
  ID: id?.toString() ?? "",
  Responses: responses?.map(({ id: of, multiaddrs }) => ({ ID: of.toString(), Addrs: multiaddrs.map(String) })) ?? null,
  Type: type,
});

export async function* shownEvents(events: RoutingEvents): AsyncGenerator<ShownEvent, void, undefined> {
  for await (const event of events) yield shown(event);
}

type Print = (event: ShownEvent, verbose: boolean) => string | Uint8Array;

const addresses = ({ Responses }: ShownEvent): readonly string[] => (Responses ?? []).flatMap(({ Addrs }) => Addrs);
const chatter =
  (print: (event: ShownEvent) => string): Print =>
  (event, verbose) =>
    verbose ? print(event) : "";

/** What commands print where they have nothing of their own for it. */
const usual: Readonly<Record<number, Print>> = {
  [eventTypes.sendingQuery]: chatter(({ ID }) => `* querying ${ID}\n`),
  [eventTypes.peerResponse]: chatter(
    ({ ID, Responses }) => `* ${ID} says use ${(Responses ?? []).map((peer) => `${peer.ID} `).join("")}\n`,
  ),
  [eventTypes.queryError]: chatter(({ Extra }) => `error: ${Extra}\n`),
  [eventTypes.dialingPeer]: chatter(({ ID }) => `dialing peer: ${ID}\n`),
};

export const printId: Print = ({ ID }) => `${ID}\n`;
export const printAddresses: Print = (event) => lines(addresses(event));
export const printProvider: Print = (event, verbose) => {
  const names = (event.Responses ?? []).map(({ ID }) => `${verbose ? "provider: " : ""}${ID}`);
  return lines([...names, ...(verbose ? addresses(event).map((address) => `\t${address}`) : [])]);
};
/** The record as it is, or in quotes. */
export const printRecord: Print = ({ Extra }, verbose) =>
  verbose ? `got value: '${Extra}'\n` : Buffer.from(Extra, "base64");

/** Hour, minute, second and milliseconds, where this machine is. */
function moment(): string {
  const now = new Date();
  const two = (number: number) => String(number).padStart(2, "0");
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()].map(two).join(":");
  return `${time}.${String(now.getMilliseconds()).padStart(3, "0")}`;
}

/** The text form of the events of a command; `own` is what it prints for the events that it is called for. */
export const printing =
  (own: Readonly<Record<number, Print>>) =>
  (event: ShownEvent, { options: { verbose } }: { readonly options: { readonly verbose: boolean | undefined } }) => {
    const print = own[event.Type] ?? usual[event.Type];
    const told = print?.(event, verbose === true) ?? "";
    return verbose === true ? `${moment()}: ${told}` : told;
  };
