/**
 * Prevents identify push from notifying peers of changed protocols and addresses. It does so a
 * second after a change, even if the change is that libp2p stops.
 */
import { disableMethod } from "../disable_method.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/identify",
  version: "4.1.14",
  without: "closing the node takes a second longer",
};

const METHOD = "_push";

/** Whether `stopPush` will work; call it after libp2p was created. */
export const canStopPush = (identifyPush: object, notices: PatchNotices): boolean =>
  notices.isApplicable(patch, { [`identifyPush.${METHOD}`]: Reflect.get(identifyPush, METHOD) });

/** Must be called just before libp2p stops. */
export const stopPush = (identifyPush: object): void => disableMethod(identifyPush, METHOD);
