/** One node lets another pin content for it through the pinning service API. */
import { digestOf, keystream } from "#test/support/content.ts";
import { type Report, untilRight } from "./report.ts";
import type { Rpc } from "./rpc.ts";

export interface PinningService {
  /** URL at which `to` serves it. */
  readonly endpoint: string;
  readonly token: string;
}

interface Pin {
  readonly Status: string;
  readonly Cid: string;
  readonly Name: string;
}

interface Services {
  readonly RemoteServices: readonly { readonly Service: string; readonly Stat?: object }[];
}

const size = 3_000_000;

/** Pins content on `to` that `from` has not pinned. Lists, counts and removes the pin. */
export async function pinsRemotely(
  report: Report,
  from: Rpc,
  to: Rpc,
  { endpoint, token }: PinningService,
): Promise<void> {
  const service = to.name;
  await from.all("pin/remote/service/add", { arg: [service, endpoint, token] });
  const sent = [...keystream(size, 55)];
  const cid = await from.add({ file: sent }, { pin: "false" });
  const pinned = { Status: "pinned", Cid: cid, Name: "far away" };
  const query = { service, name: pinned.Name };
  report.same(
    `${size} bytes of ${from.name} pinned on ${service}`,
    await from.one<Pin>("pin/remote/add", { arg: cid, ...query }),
    pinned,
  );
  report.same(`the file on ${service}`, await to.digest(cid), digestOf(sent));
  const pinsOnService = async () => (await to.one<{ Keys: object }>("pin/ls", { type: "recursive" })).Keys;
  report.holds(
    `pins of ${service}`,
    Object.keys(await pinsOnService()).length,
    "with that one",
    cid in (await pinsOnService()),
  );
  report.same(`pins of ${from.name} at ${service}`, await from.all<Pin>("pin/remote/ls", { service }), [pinned]);
  const { RemoteServices } = await from.one<Services>("pin/remote/service/ls", { stat: "true" });
  const PinCount = { Queued: 0, Pinning: 0, Pinned: 1, Failed: 0 };
  report.same(
    "the services and their counts",
    RemoteServices.map(({ Service, Stat }) => [Service, Stat]),
    [[service, { Status: "valid", PinCount }]],
  );
  await from.all("pin/remote/rm", query);
  const left = await untilRight(pinsOnService, (pins) => !(cid in pins));
  report.holds(`pins of ${service}`, Object.keys(left).length, "without it", !(cid in left));
  await from.all("pin/remote/service/rm", { arg: service });
}
