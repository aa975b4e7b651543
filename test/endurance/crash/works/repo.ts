/** Work on keys and settings. */

import { key, setting, settings } from "#test/endurance/crash/items.ts";
import { anything } from "#test/endurance/crash/model.ts";
import { type CrashWorks, pick, type Weighted } from "#test/endurance/crash/works.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";

const names = ["k0", "k1", "k2", "k3", "k4", "k5"];

const anyFree = ({ model }: CrashWorks, isThere: boolean): string | undefined =>
  pick(names.filter((name) => model.isFree(key(name)) && (model.get(key(name)) !== undefined) === isThere));

async function makeKey(works: CrashWorks, server: RpcServer): Promise<void> {
  const name = anyFree(works, false);
  if (name === undefined) return;
  await works.model.change({ [key(name)]: anything }, async () => {
    const text = await works.ask(server, "key/gen", { arg: name });
    return text !== undefined && { [key(name)]: (JSON.parse(text) as { readonly Id: string }).Id };
  });
}

/** The new name may belong to another key, which is replaced then. */
async function renameKey(works: CrashWorks, server: RpcServer): Promise<void> {
  const from = anyFree(works, true);
  const to = anyFree(works, Math.random() < 0.5);
  if (from === undefined || to === undefined || from === to) return;
  const query = [
    ["arg", from],
    ["arg", to],
    ["force", "true"],
  ] as const;
  const values = { [key(from)]: undefined, [key(to)]: works.model.get(key(from)) };
  await works.model.change(values, () => works.does(server, "key/rename", query));
}

async function removeKey(works: CrashWorks, server: RpcServer): Promise<void> {
  const name = anyFree(works, true);
  if (name === undefined) return;
  await works.model.change({ [key(name)]: undefined }, () => works.does(server, "key/rm", { arg: name }));
}

async function configure(works: CrashWorks, server: RpcServer): Promise<void> {
  const path = pick(settings.filter((each) => works.model.isFree(setting(each))));
  if (path === undefined) return;
  const value = `/${Math.random()}`;
  const query = [
    ["arg", path],
    ["arg", value],
  ] as const;
  await works.model.change({ [setting(path)]: value }, () => works.does(server, "config", query));
}

export const repoWorks = (works: CrashWorks): Weighted => [
  [5, (server) => makeKey(works, server)],
  [4, (server) => renameKey(works, server)],
  [3, (server) => removeKey(works, server)],
  [4, (server) => configure(works, server)],
];
